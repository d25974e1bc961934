"""blinktrial gate: is a commit slower than another?

Both are built in trees of their own, and the commands run in these trees by
turns, those of the tree before twice: the difference between these is noise
(statistics/verdict.py).  Each command has a record of its own.
"""

import argparse
import copy
import os
import re
import shutil
import statistics
import tempfile
from dataclasses import dataclass, replace

from trials.base import text_table
from trials.base.failure import USAGE, Failure, naming
from trials.base.programs import Programs
from trials.base.stdout import print_text
from trials.record import store
from trials.run import arms, gate_forms, options as command_line, session
from trials.run.supervisor import Supervisor
from trials.run.trees import Repository, build
from trials.statistics import comparison, precision, verdict

DEFAULT_MARGIN_PERCENT = 1.0
DEFAULT_MAX_TRIALS = 60
DEFAULT_REPEATS = 5
# Below that the exact law of the ranks has no p as small as the test's level.
LEAST_TRIALS = 10
BEFORE, AFTER = "before", "after"
# Options without which there is no gate.
NEEDED = (BEFORE, AFTER, "build")
AGAIN = f"{BEFORE} (control)"
# The exit status of the worst verdict; the first of these that there is.
STATUSES = {"failed": 1, verdict.SLOWER: 1, verdict.INCONCLUSIVE: 7,
            verdict.FASTER: 6, verdict.SAME: 0}
FORMS = {"json": gate_forms.json_text, "junit": gate_forms.junit,
         "markdown": gate_forms.markdown}


@dataclass
class Judged:
    """One command in both trees."""
    name: str
    verdict: str
    why: str | None = None  # in words, where there is more to say
    blocks: int = 0
    before_ns: float | None = None  # medians of what counts in a block
    after_ns: float | None = None
    again: verdict.Change | None = None
    change: verdict.Change | None = None


@dataclass
class Result:
    before: str  # short name and subject
    after: str
    margin_percent: float
    judged: list[Judged]

    @property
    def verdict(self) -> str:
        found = {each.verdict for each in self.judged}
        return next(word for word in STATUSES if word in found)

    @property
    def status(self) -> int:
        return STATUSES[self.verdict]


# --- what was asked for -------------------------------------------------------

def margin(text: str) -> float:
    if re.fullmatch(r"0+(\.0*)?%?", text):
        raise argparse.ArgumentTypeError(
            "0 would let no commit pass: trials show that a change is small, "
            "and never that there is none")
    return command_line.percentage(text)


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options of trials of commands, and those of a gate."""
    parser = command_line.parser()
    for name in NEEDED:
        parser.add_argument(f"--{name}", type=command_line.given)
    parser.add_argument("--margin", type=margin,
                        default=DEFAULT_MARGIN_PERCENT)
    parser.set_defaults(least_trials=LEAST_TRIALS)
    for form in FORMS:
        parser.add_argument(f"--{form}", type=command_line.result_path)
    options = command_line.parsed(arguments, parser)
    if options.help:
        return options
    if not options.commands:
        raise Failure("gate", "names no command; see --help=gate", USAGE)
    for name in NEEDED:
        if getattr(options, name) is None:
            raise Failure(f"--{name}", "is missing; see --help=gate", USAGE)
    command_line.refuse(options, ("until",),
                        "is half the margin in a gate: see --margin")
    command_line.refuse(options, ("trials",),
                        "is not for a gate: see --max-trials")
    command_line.refuse(options, ("resume", "reference", "sweep",
                                  "ignore_failure"), "is not for a gate")
    options.until = round(options.margin / 2, 6)
    return command_line.checked(options)


def complete(options: argparse.Namespace) -> None:
    """Fill in the options that were not given."""
    options.max_trials = options.max_trials or DEFAULT_MAX_TRIALS
    options.repeats = options.repeats or DEFAULT_REPEATS
    options.has_table = False
    command_line.complete(options)


# --- the gate -----------------------------------------------------------------

def run(arguments: list[str], called: str) -> int:
    """Returns the exit status."""
    options = parse(arguments)
    if options.help:
        print_text(command_line.HELPS["gate"])
        return 0
    # Logs of CI services are narrow.
    text_table.follow_terminal(otherwise=80)
    programs = Programs.beside(called)
    kept = options.out
    with Supervisor(programs) as supervisor:
        # The trees go when all is done, however it ends.
        folder = tempfile.mkdtemp(prefix="blinktrial-gate-")
        try:
            if kept is not None:
                session.expect_free(kept)
            options.out = kept or os.path.join(folder, "records")
            complete(options)
            result = judge_all(options, folder, programs, supervisor)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    put(options, result)
    return result.status


def judge_all(options, folder: str, programs: Programs,
              supervisor: Supervisor) -> Result:
    # What can be refused is refused before anything is built.
    asked = arms.of_options(options, os.environ)
    repository = Repository(programs)
    commits = {name: repository.commit(f"--{name}", getattr(options, name))
               for name in (BEFORE, AFTER)}
    # Names of one length: where a program's stack lies follows from them.
    trees = {BEFORE: f"{folder}/1", AFTER: f"{folder}/2"}
    for name, tree in trees.items():
        print_text(f"building {name}: {repository.subject(commits[name])}\n")
        try:
            repository.check_out(commits[name], tree)
        except Failure:
            # A signal of the terminal ends git, too.
            if supervisor.signal:
                raise Failure("interrupted", f"while {name} was checked out",
                              128 + supervisor.signal) from None
            raise
        build(tree, options.build, name, supervisor)
    judged = [measure(options, number, arm, trees, programs, supervisor)
              for number, arm in enumerate(asked, 1)]
    for each in judged:
        if each.change is not None:
            each.verdict = verdict.judge(each.again, each.change,
                                         options.margin / 100, len(judged))
    return Result(*map(repository.subject, commits.values()), options.margin,
                  judged)


def measure(options, number: int, arm: arms.Arm, trees: dict,
            programs: Programs, supervisor: Supervisor) -> Judged:
    """Trials of one command; without a verdict."""
    print_text(f"timing {arm.name}\n")
    options = copy.copy(options)
    options.out = os.path.join(options.out, str(number))
    sides = [replace(arm, name=name, directory=tree)
             for name, tree in trees.items()]
    try:
        session.begin(options, programs, supervisor, sides)
    except Failure as reason:
        # A command that fails after the change, and not before, is a finding.
        if supervisor.signal or reason.what != AFTER:
            raise
        return Judged(arm.name, "failed", reason.why)
    return found_in(arm.name, store.read(options.out))


def found_in(name: str, record: store.Run) -> Judged:
    scenario, = record.design["scenarios"]
    samples = precision.samples_of(record.trials, scenario)
    before, again, after = (samples.get(side, ([], []))
                            for side in (BEFORE, AGAIN, AFTER))
    changes = [verdict.change(before[0], other[0], (before[1], other[1]))
               for other in (again, after)]
    return Judged(name, verdict.INCONCLUSIVE, None, len(set(before[1])),
                  middle(*before), middle(*after), *changes)


def middle(times_ns: list[int], blocks: list[int]) -> float:
    """The median over blocks of the shortest run in each."""
    return statistics.median(comparison.by_block(times_ns, blocks).values())


def put(options, result: Result) -> None:
    """Print it, and write the files that were asked for."""
    print_text(gate_forms.text(result))
    for form, render in FORMS.items():
        path = getattr(options, form)
        if path is None:
            continue
        with naming(path):
            # A name may be of bytes that are no UTF-8.
            with open(path, "w", encoding="utf-8", errors="replace") as file:
                file.write(render(result))
