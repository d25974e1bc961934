"""A session of trials: from a command line to a record that is complete, or
can be gone on with."""

import contextlib
import math
import os
import sys
import tempfile

from trials.base import text_table
from trials.base.failure import FAILED, FILE, USAGE, Failure, naming
from trials.base.programs import Programs
from trials.base.stdout import print_text
from trials.base.text_table import wrapped
from trials.cost import energy as energies, penny, price as prices
from trials.cost.energy import Energy
from trials.machine import environment
from trials.record import design as designs, store, sweep as sweeps, timing
from trials.run import (arms, mpirun, options as command_line, summary,
                        timed)
from trials.run.cluster import Cluster
from trials.run.commands import Commands
from trials.run.devices import Devices
from trials.run.machine import Machine
from trials.run.noise import NoiseWatch
from trials.run.places import Places
from trials.run.progress import Progress
from trials.run.ranks import Ranks
from trials.run.runner import Runner
from trials.run.supervisor import Supervisor
from trials.scenario.conditions import BeyondMemory, DEFAULT_MEMORY_BYTES
from trials.scenario.inputs import RECORD_BYTES
from trials.scenario.tuning import Tuning, Unavailable
from trials.statistics import precision
from trials.statistics.racing import is_sample

# blinksort takes them only with --cluster.
OF_CLUSTERS = {"sort.plain", "sort.schedule", "sort.transport",
               "sort.by-reference", "sort.payload"}
# A run that was killed before it had a record leaves these.
LEFT_OVER = {"work", store.TRIALS, f"{store.DESIGN}.new"}
# The number of trials of each command, where none is asked for: as many as fit
# into this time if each takes as long as the longest rehearsal, with all that
# is done for it; and within these limits.
COMMAND_S = 3.0
LEAST_TRIALS, MOST_TRIALS = 10, 1000


def run(options, called: str) -> int:
    """Returns the exit status."""
    programs = Programs.beside(called)
    if options.help:
        print_text(command_line.HELPS[options.help])
        return 0
    if options.version:
        print_text(f"blinktrial {programs.version()}\n")
        return 0
    text_table.follow_terminal()
    with Supervisor(programs) as supervisor, contextlib.ExitStack() as stack:
        if options.resume:
            return resume(options, programs, supervisor)
        if options.out is None:
            # Nothing but the table is wanted.
            options.out = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="blinktrial-"))
            options.is_kept = False
        return begin(command_line.complete(options), programs, supervisor)


def target_of(options, programs: Programs, supervisor: Supervisor,
              sweep: sweeps.Sweep | None, commands: list[arms.Arm]):
    """What is timed: commands; or what sorts: one process, from file to file or
    from device to device, ranks on this machine, or a cluster."""
    if commands:
        return Commands(options, commands, programs, supervisor)
    if Ranks.wanted_by(sweep):
        return Ranks(options, programs, supervisor, sweep)
    kind = (Cluster if options.hosts else
            Devices if options.input_device else Machine)
    if sweep and sweep.places(sweeps.WORK):
        if options.input_device:
            raise Failure("--input-device", "does not go with a sweep whose "
                          "values have folders", USAGE)
        return Places(kind, options, programs, supervisor, sweep)
    return kind(options, programs, supervisor, sweep)


def begin(options, programs: Programs, supervisor: Supervisor,
          commands: list[arms.Arm] | None = None) -> int:
    """A new record, of these commands rather than those that the options name.
    What can be refused is refused before anything is written."""
    expect_free(options.out)
    price = prices.read(options.price) if options.price else None
    energy, measured = open_energy(options)
    sweep = sweeps.load(options.sweep) if options.sweep else None
    if commands is None:
        commands = arms.of_options(options, os.environ) \
            if options.commands else []
    target = target_of(options, programs, supervisor, sweep, commands)
    target.check(refuses_unverified(options, sweep))
    tuning = Tuning(programs, options.hosts, options.key_file)
    design = designs.make(
        options.scenarios, sweep, blocks_of(options), options.seed,
        until=until_of(options), repeats=options.repeats or 1,
        arms=[(arm.name, arm.document()) for arm in commands],
        commands=target.design if commands else None, hosts=target.hosts,
        devices=target.devices, records=options.records,
        record_bytes=RECORD_BYTES,
        kind="ascii" if options.ascii else "binary", order=options.order,
        command=command_line.command_of(options),
        program_version=programs.version(),
        unsettable=settings(tuning, target),
        memory_bytes=memory_of(options), price=price, energy=measured)
    folders = missing_folders(options.out)
    try:
        target.make_inputs(reuse=False)
        rehearse(design, target, tuning, supervisor)
        if supervisor.signal:
            raise Failure("interrupted", "before the first trial")
        if options.trials is None and options.until is None:
            design["trials"] = trials_of(target.rehearsed_ns)
        if not target.hosts:
            design["timing"] = timed.facts(programs, target.shortest_ns)
        if price:
            price["penny_sort"] = penny_sort(options, price, programs)
        record = store.Record.create(options.out, design)
    except BaseException as reason:
        with contextlib.suppress(Failure):
            target.close(keep=False)
        remove_folders(folders)
        if supervisor.signal and isinstance(reason, Failure):
            raise Failure("interrupted", "before the first trial",
                          128 + supervisor.signal) from None
        raise
    with record:
        return trials(options, record, target, tuning, supervisor, programs,
                      energy)


def refuses_unverified(options, sweep: sweeps.Sweep | None) -> bool:
    return not (options.unverified or sweep and sweep.unverified)


def blocks_of(options) -> int:
    """The number of blocks, or the most of them; of commands it may be found
    when each has run once."""
    if options.until is not None:
        return options.max_trials or command_line.DEFAULT_MAX_TRIALS
    return options.trials or LEAST_TRIALS


def until_of(options) -> dict | None:
    """The member `until` of a design."""
    if options.until is None:
        return None
    return {"percent": options.until, "max_seconds":
            options.max_time or command_line.DEFAULT_MAX_TIME_S}


def trials_of(rehearsed_ns: dict) -> int:
    """The number of blocks, by what a trial of each command has taken once."""
    fits = math.ceil(COMMAND_S * 1e9 / max(rehearsed_ns.values()))
    return min(max(LEAST_TRIALS, fits), MOST_TRIALS)


def memory_of(options) -> int | None:
    """The memory that the sorter may take in beyond-memory; None without it."""
    if BeyondMemory.name not in options.scenarios:
        return None
    return options.memory or DEFAULT_MEMORY_BYTES


def open_energy(options) -> tuple[Energy, dict | None]:
    """Open what the options ask for; what this machine does not have is said,
    and the trials go on."""
    energy, measured = energies.open_sources(options)
    if measured and not options.quiet:
        for reason in measured["why_not"]:
            print(f"blinktrial: energy: not measured: {reason}",
                  file=sys.stderr)
    return energy, measured


def penny_sort(options, price: dict, programs: Programs) -> dict:
    """A few seconds, in which the disk of the work folder is measured."""
    if options.hosts:
        return penny.unpredicted("the model is of one machine")
    if options.input_device:
        return penny.unpredicted("the disk of a folder would be measured, not "
                                 "the devices")
    return penny.predict(programs, options.work, price["seconds_per_cent"])


def resume(options, programs: Programs, supervisor: Supervisor) -> int:
    with store.Record.open(options.out) as record:
        options = command_line.resumed(options, record.design["command"])
        expect_devices(options, record.design)
        if designs.of_commands(record.design):
            # Commands name files from the folder where they were begun.
            folder = record.design["commands"]["directory"]
            with naming(folder):
                os.chdir(folder)
        text = record.design["sweep_text"]
        sweep = sweeps.parse(text) if text else None
        target = target_of(options, programs, supervisor, sweep,
                           [arms.Arm(name, **command) for name, command
                            in designs.arms(record.design)])
        if target.hosts != record.design["hosts"]:
            raise Failure("-w", "names other hosts than in the record", USAGE)
        energy = resumed_energy(options, record.design)
        target.check(refuses_unverified(options, sweep))
        target.make_inputs(reuse=True)
        tuning = Tuning(programs, options.hosts, options.key_file)
        return trials(options, record, target, tuning, supervisor, programs,
                      energy)


def expect_devices(options, design: dict) -> None:
    """A design that was edited may name others than its command, which are
    overwritten."""
    asked = {"input": options.input_device, "output": options.output_device}
    if asked != (design.get("devices") or dict.fromkeys(asked)):
        raise Failure(os.path.join(options.out, store.DESIGN),
                      "devices: are not those of its command", FILE)


def resumed_energy(options, design: dict) -> Energy:
    """Open what was measured before, which has to be measured again, and no
    more."""
    before = (design.get("energy") or {"domains": []})["domains"]
    energy, measured = energies.open_sources(options, before)
    now = measured["domains"] if measured else []
    if before != now:
        raise Failure("--energy", f"is of {', '.join(now) or 'no domain'}, "
                      f"but of {', '.join(before) or 'none'} in the record")
    return energy


def expect_free(folder: str) -> None:
    """No record is written over, nor anything else."""
    with naming(folder), contextlib.suppress(FileNotFoundError):
        names = set(os.listdir(folder))
        if store.DESIGN in names:
            raise Failure(folder, "has a record already; --resume goes on "
                          "with it", FILE)
        if names - LEFT_OVER:
            raise Failure(folder, "is not empty", FILE)


def missing_folders(folder: str) -> list[str]:
    """The folders that will have been made for a record, the lowest first."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing


def remove_folders(folders: list[str]) -> None:
    """Remove the folders, as far as they are empty."""
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:
            return


def settings(tuning: Tuning, target):
    """A function for designs.make(), which tells why a parameter can't be set
    to a value."""
    def why_not(name: str, value: str) -> str | None:
        kind, _, knob = name.partition(".")
        if isinstance(target, Commands) and kind in ("sort", "ranks"):
            raise Failure(name, "is for trials of blinksort, not of commands",
                          USAGE)
        if name in OF_CLUSTERS and not target.hosts:
            return "needs a cluster"
        if name == "sort.io" and target.devices:
            return "each scenario sets it itself for devices"
        if kind == "ranks" and target.hosts:
            why = mpirun.why_not_on_nodes(knob, value)
            if why:
                return why
        if name == "ranks.mpirun":
            return mpirun.why_not(value)
        if kind != "tune" or value == "keep":
            return None
        try:
            tuning.want({"profile": value} if knob == "profile"
                        else {"knobs": {knob: value}})
            tuning.close()
        except Unavailable as reason:
            return str(reason)
        return None
    return why_not


def rehearse(design: dict, target, tuning: Tuning,
             supervisor: Supervisor) -> None:
    """Every configuration has to sort a few records, or is skipped; without
    the reference there is nothing to compare."""
    try:
        for configuration in design["configurations"]:
            if configuration["skipped"] is not None:
                continue
            why = why_not_sorted(configuration, design, target, tuning)
            if supervisor.signal:
                return
            if why and (configuration["role"] == "reference"
                        or design["commands"]):
                raise Failure(configuration["name"], why)
            if why:
                configuration.update(skipped=why, tuning=None)
    finally:
        tuning.close()
    target.end_rehearsals()


def why_not_sorted(configuration: dict, design: dict, target,
                   tuning: Tuning) -> str | None:
    try:
        tuning.want(configuration["tuning"])
    except Unavailable as reason:
        return str(reason)
    for scenario in design["scenarios"]:
        why = target.rehearse(scenario, configuration)
        if why:
            return why
    return None


def trials(options, record, target, tuning: Tuning, supervisor: Supervisor,
           programs: Programs, energy: Energy) -> int:
    """Run those that are left, and say what came out."""
    # Racing may drop some of them.
    trials_at_most = (len(designs.order(record.design, 0))
                      * record.design["trials"])
    progress = Progress(trials_at_most, bool(options.quiet),
                        precision=record.precision)
    supervisor.counts_events = timing.counts_events(record.design)
    # A resumed record keeps what it was told, unless it is told otherwise.
    facts = {**record.facts, **dict(options.facts)}
    before = environment.with_facts(target.describe(), facts)
    record.begin_session(before)
    progress.begin(len(record.trials()))
    try:
        Runner(record, target, tuning, supervisor, progress, energy,
               NoiseWatch(target.noise, options.noise_limit,
                          options.noise_wait, supervisor, progress)).run()
    except Failure:
        # The same failure, such as a lost node, may meet this call, too.
        with contextlib.suppress(Failure):
            end(options, record, target, before)
        if not supervisor.signal:
            raise
    else:
        end(options, record, target, before)
    if supervisor.signal:
        raise Failure("interrupted", where_to_go_on(options, record, programs),
                      128 + supervisor.signal)
    if options.has_table and not options.quiet:
        say(options, record, programs)
    if options.export_json:
        programs.must_call("blinkreport", "--format=hyperfine",
                           f"--output={options.export_json}", options.out)
    return exit_status(record)


def where_to_go_on(options, record, programs: Programs) -> str:
    count = len(record.trials())
    if not options.is_kept:
        return f"after {count} trials, of which --out would keep a record"
    return f"{count} trials are recorded; to go on: " + programs.words(
        "blinktrial", "--resume", f"--out={options.out}")


def say(options, record, programs: Programs) -> None:
    """What came out; and where more is to be seen."""
    if designs.of_commands(record.design):
        from trials.run import arms_table
        text = arms_table.text(record)
    else:
        text = summary.text(record)
    ended = precision.sentence(record.design, record.trials())
    if ended:
        text += f"\n{wrapped(ended)}\n"
    if options.is_kept:
        text += ("\nSee the results: "
                 + programs.words("blinkreport", options.out) + "\n")
    print_text(text)


def end(options, record, target, before: dict) -> None:
    after = environment.with_facts(target.describe(), before.get("facts"))
    record.end_session(after, environment.changes(before, after))
    target.close(bool(options.keep))


def exit_status(record) -> int:
    found = record.trials()
    failed = sum(not is_sample(trial) for trial in found)
    if failed:
        raise Failure("failed", f"{failed} of {len(found)} trials", FAILED)
    return 0
