"""What blinktrial was asked for: its command line, read and checked."""

import argparse
import os
import re
import shutil

from trials.base.failure import FILE, USAGE, Failure, naming
from trials.base.spelling import meant, no_such_option
from trials.record.design import AS_IS
from trials.record.sweep import SORT_OPTIONS
from trials.run.noise import Limit
from trials.statistics.precision import FIRST_LOOK

# The folder of the sweeps that come with the program.
FOLDER = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
TRIALS_AT_MOST = 1_000_000
RECORDS_AT_MOST = 10**12
DEFAULT_RECORDS = 1_000_000
DEFAULT_NOISE_WAIT_S = 60
NOISE_WAIT_AT_MOST_S = 86400
UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
# Where --until ends a run: no more blocks and seconds than these.
DEFAULT_MAX_TRIALS = 1000
DEFAULT_MAX_TIME_S = 600
DEFAULT_SHELL = "/bin/sh"
_NUMBER = r"[0-9]{1,6}(?:\.[0-9]{1,6})?"
# A fact of the machine: a name and what is told of it.
_FACT = re.compile("([A-Za-z][A-Za-z0-9 _-]{0,39})=(.{1,200})")
# Options of hyperfine, which users may expect: what to do instead.
HINTS = {
    r"--export-.*": "there is --export-json, and blinkreport --format of a "
                    "record",
    r"-[mM].*|--(min|max)-runs": "use --trials",
    r"--style|-u|--time-unit": "the table has one form",
    # What a verb that is misspelt leaves.
    r"--(before|after|build|margin|junit|markdown)": "is for blinktrial gate",
}
# Options that define a record: --resume goes on with these, and they can't be
# others.
LASTING = ("scenarios", "trials", "until", "max_trials", "max_time",
           "repeats", "sweep",
           "hosts", "work", "input_device", "output_device", "records",
           "ascii", "seed", "order", "unverified", "cache_bytes", "memory",
           "price", "energy", "powercap", "meter_error", "shell", "setup",
           "prepare", "conclude", "cleanup", "command_name", "parameter_list",
           "parameter_scan", "parameter_step_size", "reference", "warmup",
           "ignore_failure", "inputs", "outputs", "stdin", "commands")
# What only trials of commands take, and what they do not.
OF_COMMANDS = ("shell", "setup", "prepare", "conclude", "cleanup",
               "command_name", "parameter_list", "parameter_scan",
               "parameter_step_size", "reference", "warmup",
               "ignore_failure", "inputs", "outputs", "stdin", "show_output",
               "repeats")
OF_SORTS = ("hosts", "key_file", "work", "input_device", "output_device",
            "records", "ascii", "price", "keep")
# A session takes these from the record unless it is given others.
REPLACEABLE = ("key_file", "meter", "noise_limit", "noise_wait")
VERBS = ("characterise", "gate", "validate")
# Examples to name where such an option is missing.
EXAMPLES = {"scenarios": "--scenario=pagecache", "trials": "--trials=40",
            "out": "--out=DIR"}
USAGE_TEXT = """\
Usage: blinktrial [OPTION]... COMMAND...
       blinktrial gate --before=REV --after=REV --build=COMMAND -- COMMAND...
       blinktrial --scenario=NAME,... --trials=N --out=DIR [OPTION]...
       blinktrial --resume --out=DIR [OPTION]...
       blinktrial characterise --out=DIR [-w HOSTS] [--key-file=FILE]
                  [--work=DIR] [--file=FILE]... [--write] [--quick]
                  [--fact=NAME=VALUE]...
       blinktrial validate DIR
Time commands, or blinksort, repeatedly, in a random order, and record trials.
For commands see --help=commands, for a gate --help=gate; and for blinksort:

  --scenario=NAME,...  run under these conditions: pagecache (the input is in
                       the page cache), cache (files are read and written past
                       it), platter (the same, and flushed to the medium),
                       beyond-memory (by way of scratch files)
  --trials=N           run N trials of each configuration in each scenario
  --until=PERCENT      or until half the 95 % interval of each ratio is at most
                       PERCENT of it; see --help=commands for its limits
  --out=DIR            put the record into DIR, a new or empty folder
  --resume             continue the record in DIR, with its options
  --sweep=FILE         vary the parameters in FILE, each in a line such as
                       'sort.threads 1 | 2': the reference 1, which is also run
                       again as a control, and what is compared with it
  --records=N          sort N records (1000000)
  --ascii              sort records of printable characters
  --order=ORDER        blocks (each is shuffled; the default) or sequence
  --seed=N             derive the order from N (random)
  -w HOSTS             sort on these nodes, in the notation of blinksh
  --key-file=FILE      read the cluster's key from FILE ($BLINK_KEY)
  --work=DIR           sort files in this folder (the record's work)
  --input-device=DEVICE
                       overwrite this block device with the input, from its
                       first byte on, and sort from there
  --output-device=DEVICE
                       overwrite this block device with each output
  --cache-bytes=SIZE   assume SIZE, such as 64M, for a cache of unknown size
  --memory=SIZE        in beyond-memory, let the sorter take SIZE (256M)
  --price=FILE         report what a sort costs: FILE has parts and prices
  --energy             read the processor's counters of energy (RAPL)
  --powercap=DIR       look for them in DIR (/sys/class/powercap)
  --meter=FILE         take energy from FILE, which a meter is writing
  --meter-error=ERROR  show its largest error; 0.5,0.06 is 0.5 % and 0.06 W
  --fact=NAME=VALUE    record a fact of the machine, such as switch=XG2600
  --noise-limit=PERCENT[,refuse]
                       before each block, wait until no CPU loses more of its
                       time to others, then label the block, or refuse and end
  --noise-wait=SECONDS wait no longer for that (60)
  --unverified         run even if a condition can't be verified
  --keep               keep the files that were sorted
  --quiet              print errors only
  -h, --help           print this text
  -V, --version        print the version

characterise measures memory, disk, network and the start of a program; it
shows where each FILE is on its disk; with --write it measures writing, too.

Statuses: 0 done, 1 a trial failed or a condition is not met, 2 usage,
3 input or output file, 4 another node or the network, 5 resources,
128 + n after signal n.
A word @FILE stands for the lines of FILE.  See blinktrial(1).
"""
COMMANDS_TEXT = """\
Usage: blinktrial [OPTION]... COMMAND...
Time commands by turns: each block of trials has every command once, and the
first one twice, in a random order.  Times are compared with those of the first
one in the same block: a ratio above 1 is slower.  The ratio of the first one
to itself shows how much is noise.

A COMMAND is split into words as a shell does it, and run without a shell.

  --out=DIR             keep a record in DIR, for blinkreport and --resume
  -r, --trials=N        run N blocks (as many as fit into 3 s for each command,
                        but at least 10)
  --until=PERCENT       instead of --trials: run blocks until half the 95 %
                        interval of each ratio is at most PERCENT of it
  --max-trials=N        with --until, run at most N blocks (1000)
  --max-time=SECONDS    with --until, end after SECONDS (600)
  --repeats=N           run each command N times in each block; the shortest of
                        these counts in ratios
  -n, --command-name=NAME
                        name a command, in the order of the commands
  -L, --parameter-list VAR VALUE,...
                        run each command with each value in place of {VAR}
  -P, --parameter-scan VAR MIN MAX
                        the same with numbers from MIN to MAX
  -D, --parameter-step-size=STEP
                        in steps of STEP (1)
  --reference=COMMAND   compare with this one instead of the first
  -s, --setup=COMMAND   run this once before all trials of a command
  -p, --prepare=COMMAND
                        run this before each trial; once for all, or for each
  -C, --conclude=COMMAND
                        run this after each trial, likewise
  -c, --cleanup=COMMAND
                        run this once after all trials
  --warmup=N            run each command N more times before the first trial
  -i, --ignore-failure  count the times of commands that fail
  --shell[=SHELL], -S SHELL
                        run commands by a shell (/bin/sh)
  --stdin=FILE          let commands read FILE as standard input (/dev/null)
  --show-output         pass on what commands print
  --export-json=FILE    write the times to FILE, as hyperfine does
  --scenario=NAME,...   prepare the files that are named: pagecache, cache,
                        platter or beyond-memory, as for sorts (as-is: leave
                        files as they are)
  --input=FILE          bring FILE into the state that the scenario asks for;
                        more than once for several
  --output=FILE         remove FILE before each trial; with platter, a time
                        ends when it is on the medium
  --sweep=FILE          run each command under each of the settings of
                        blinktune in FILE: tune.KNOB VALUE | VALUE...

--order, --seed, --memory, --energy, --meter, --meter-error, --fact,
--noise-limit, --noise-wait, --unverified, --quiet, --resume: see --help.

A word @FILE stands for the lines of FILE.
The commands of --setup, --prepare, --conclude and --cleanup are run by
/bin/sh, and are not timed.  A command that fails ends the run with status 1.
See blinktrial-commands(7).
"""
GATE_TEXT = """\
Usage: blinktrial gate --before=REV --after=REV --build=COMMAND [OPTION]...
                       -- COMMAND...
Tell whether commands are slower with one commit of a git repository than with
another.  Both are built in trees of their own; the commands run in these trees
by turns, those of the commit before twice, which shows how much is noise.

  --before=REV       compare with this commit
  --after=REV        judge this one
  --build=COMMAND    build a tree by this, run by /bin/sh in it
  --margin=PERCENT   let smaller changes pass (1)
  --max-trials=N     run at most N blocks (60), and fewer if each change is
                     known to half the margin
  --max-time=SECONDS
                     time each command for at most SECONDS (600)
  --repeats=N        run each command N times in a block, of which the shortest
                     counts (5)
  --out=DIR          keep a record of each command in DIR/1, DIR/2, ...
  --json=FILE, --junit=FILE, --markdown=FILE
                     write the result into FILE, too

Options of trials of commands are taken, too: see --help=commands.

Statuses: 0 the same, 1 slower or a command fails after the change, 6 faster,
7 inconclusive, 2 usage, 3 a file, 128 + n after signal n.
See blinktrial-commands(7).
"""
HELPS = {True: USAGE_TEXT, "commands": COMMANDS_TEXT, "gate": GATE_TEXT}


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def __init__(self, no_operand=""):
        super().__init__("blinktrial", add_help=False, allow_abbrev=False)
        self.no_operand = no_operand

    def error(self, message):
        kind, _, rest = message.partition(": ")
        if kind == "unrecognized arguments":
            raise Failure(*self.unknown(rest), USAGE)
        # "argument --key-file/--key", "argument -h/--help"
        names = kind.removeprefix("argument ").split("/")
        name = next((n for n in names if n.startswith("--")), names[0])
        if rest.startswith("ignored explicit argument "):
            rest = "takes no value"
        raise Failure(name, rest, USAGE)

    def unknown(self, words: str) -> tuple[str, str]:
        """The first of these words of a command line, and why it is refused."""
        word = words.removeprefix("-- ").split(" ")[0]
        name = word.partition("=")[0].removeprefix("--")
        if not word.startswith("-"):
            verb = meant(word, VERBS)
            return word, f"is {verb} meant?" if verb else self.no_operand
        if name in SORT_OPTIONS:
            return word, f"is for a sweep, as sort.{name}; see --sweep"
        for pattern, instead in HINTS.items():
            if re.fullmatch(pattern, word.partition("=")[0]):
                return word, instead
        return word, no_such_option(word, self._option_string_actions)


def whole_number(least: int, most: int):
    """A reader of numbers for a Parser."""
    def read(text):
        if re.fullmatch("[0-9]{1,18}", text) and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a number from {least} to {most}")
    return read


def size(text: str) -> int:
    """64M as bytes, in the forms that the C programs take."""
    found = re.fullmatch("([0-9]{1,15})(?:([KMGTkmgt])(?:i?B)?)?", text)
    if not found or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size such as 64M")
    return int(found[1]) << UNITS[(found[2] or "").upper()]


def noise_limit(text: str) -> Limit:
    """5, 0.5 or 5%, and refuse if it is to be."""
    found = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%?(,refuse)?", text)
    if not found or float(found[1]) > 100:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a percentage, such as 5 or 5,refuse")
    return Limit(float(found[1]), bool(found[2]))


def percentage(text: str) -> float:
    """1, 0.5 or 0.5%."""
    found = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%?", text)
    if not found or not 0 < float(found[1]) <= 100:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a percentage, such as 1 or 0.5%")
    return float(found[1])


def fact(text: str) -> tuple[str, str]:
    """switch=XG2600: what no kernel tells of the machine."""
    found = _FACT.fullmatch(text)
    if not found or not text.isprintable():
        raise argparse.ArgumentTypeError(
            f"'{text}' is not NAME=VALUE, such as switch=XG2600")
    return found[1], found[2]


def meter_error(text: str) -> str:
    """0.5%, or 0.5%,0.06 in watts besides; both without the sign."""
    found = re.fullmatch(rf"({_NUMBER})%?(?:,({_NUMBER}))?", text)
    if not found or float(found[1]) > 100:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a percentage, or one and watts, such as 0.5,0.06")
    return f"{found[1]},{found[2] or 0}"


def given(text: str) -> str:
    """Refuse an empty text, such as a variable that a script has not set."""
    if not text:
        raise argparse.ArgumentTypeError("is empty")
    return text


def path(text: str) -> str:
    return os.path.abspath(given(text))


def result_path(text: str) -> str:
    """A file that is written when all trials have run.  Failure: it can't be;
    who waits for hours is told before.  It is not made yet: a CI service would
    read an empty one."""
    found = path(text)
    with naming(text):
        os.stat(os.path.join(os.path.dirname(found), "."))
    if os.path.isdir(found):
        raise Failure(text, "is a folder", FILE)
    if not os.access(found if os.path.exists(found)
                     else os.path.dirname(found), os.W_OK):
        raise Failure(text, "you may not write there", FILE)
    return found


def shell(text: str) -> str | None:
    """Users of hyperfine may ask for the one that is meant there by default, or
    for none."""
    return {"none": None, "default": DEFAULT_SHELL}.get(given(text), text)


def input_path(text: str) -> str:
    """A file.  hyperfine's option of this name says what is standard input."""
    if text == "null" and not os.path.exists(text):
        raise argparse.ArgumentTypeError(
            "names a file for a scenario; standard input is /dev/null, or "
            "--stdin")
    return path(text)


def output_path(text: str) -> str:
    """A file.  hyperfine's option of this name says where output goes."""
    if text in ("null", "pipe", "inherit") and not os.path.exists(text):
        raise argparse.ArgumentTypeError(
            "names a file of the command's; what it prints is discarded "
            "without --show-output")
    return path(text)


def names(text: str) -> list[str]:
    return given(text).split(",")


def sweep_path(text: str) -> str:
    """A file, or the bare name of one of ours."""
    ours = os.path.join(FOLDER, given(text))
    if "/" not in text and not os.path.exists(text) and os.path.exists(ours):
        return ours
    # A line of such a file: "sort.threads 1 | 2".
    if (re.match(r"(sort|tune|ranks|machine)\.\S+[\s=]|[^/]*\|", text)
            and not os.path.exists(text)):
        raise argparse.ArgumentTypeError(
            f"names a file: write the line '{text}' into one")
    return os.path.abspath(text)


def parser() -> Parser:
    """Absent options are None, so that --resume can tell them from others."""
    found = Parser()
    add = found.add_argument
    add("--scenario", dest="scenarios", type=names)
    add("--trials", "-r", "--runs", type=whole_number(1, TRIALS_AT_MOST))
    add("--until", type=percentage)
    add("--max-trials", type=whole_number(1, TRIALS_AT_MOST))
    add("--max-time", type=whole_number(1, NOISE_WAIT_AT_MOST_S * 30))
    add("--out", type=path)
    add("--sweep", type=sweep_path)
    add("-w", dest="hosts", type=given)
    add("--key-file", "--key", type=path)
    add("--work", type=path)
    add("--input-device", type=path)
    add("--output-device", type=path)
    add("--records", type=whole_number(1, RECORDS_AT_MOST))
    add("--seed", type=whole_number(0, 2**53 - 1))
    add("--order")
    add("--cache-bytes", type=size)
    add("--memory", type=size)
    for name in "--price", "--powercap", "--meter":
        add(name, type=path)
    add("--meter-error", type=meter_error)
    add("--fact", dest="facts", action="append", default=[], type=fact)
    add("--noise-limit", type=noise_limit)
    add("--noise-wait", type=whole_number(0, NOISE_WAIT_AT_MOST_S))
    for flag in ("--ascii", "--energy", "--resume", "--unverified", "--keep",
                 "--quiet"):
        add(flag, action="store_const", const=True)
    add_commands(add)
    add("-h", action="store_const", const=True, dest="help")
    add("--help", nargs="?", const=True)
    add("-V", "--version", action="store_const", const=True)
    # Is there a record when all is done, and a table of it on the terminal?
    found.set_defaults(is_kept=True, has_table=True, least_trials=FIRST_LOOK)
    return found


def add_commands(add) -> None:
    """What trials of commands take, in hyperfine's words."""
    add("commands", nargs="*", type=given)
    add("--shell", "-S", type=shell)
    add("-N", dest="shell", action="store_const", const=None)
    for name in "--setup", "--cleanup", "--reference":
        add(f"-{name[2]}" if name != "--reference" else name, name, type=given)
    add("--prepare", "-p", action="append", type=given)
    add("--conclude", "-C", action="append", type=given)
    add("--command-name", "-n", action="append", type=given)
    add("--parameter-list", "-L", action="append", nargs=2,
        metavar=("VAR", "VALUES"))
    add("--parameter-scan", "-P", action="append", nargs=3,
        metavar=("VAR", "MIN", "MAX"))
    add("--parameter-step-size", "-D", type=given)
    add("--repeats", type=whole_number(1, 1000))
    add("--warmup", type=whole_number(0, TRIALS_AT_MOST))
    add("--input", dest="inputs", action="append", type=input_path)
    add("--output", dest="outputs", action="append", type=output_path)
    add("--stdin", type=path)
    add("--export-json", type=result_path)
    add("--ignore-failure", "-i", action="store_const", const=True)
    add("--show-output", action="store_const", const=True)


def with_shell(arguments: list[str]) -> list[str]:
    """The arguments, with a shell's name where --shell has none."""
    return [f"--shell={DEFAULT_SHELL}" if word == "--shell" else word
            for word in arguments]


def require(options: argparse.Namespace, needed: list[str]) -> None:
    """Failure: it names all of these options that are missing."""
    missing = [spelled(name) for name in needed
               if getattr(options, name) is None]
    if missing:
        example = " ".join(EXAMPLES[name] for name in needed
                           if getattr(options, name) is None)
        raise Failure(", ".join(missing),
                      ("are" if len(missing) > 1 else "is")
                      + f" missing, such as {example}; see --help", USAGE)


def parse(arguments: list[str]) -> argparse.Namespace:
    return checked(parsed(arguments))


def checked(options: argparse.Namespace) -> argparse.Namespace:
    """The options, if they go together and none is missing."""
    if options.help and options.help not in HELPS:
        raise Failure("--help", f"'{options.help}' is no part of it; there are "
                      "--help=commands and --help=gate", USAGE)
    if options.help or options.version:
        return options
    if options.resume:
        # The needs of its options were checked when the record was begun.
        require(options, ["out"])
        return options
    for name, other in (("powercap", "energy"), ("meter_error", "meter"),
                        ("parameter_step_size", "parameter_scan"),
                        ("input_device", "output_device"),
                        ("output_device", "input_device")):
        if getattr(options, name) and not getattr(options, other):
            raise Failure(spelled(name), f"needs {spelled(other)}", USAGE)
    expect_one_end(options)
    expect_no_verb(options.commands)
    if options.commands or options.reference:
        # hyperfine's -w is a number of runs.
        refuse(options, ("hosts",), "names hosts that sort; to warm up, give "
               "--warmup")
        refuse(options, OF_SORTS, "is for trials of blinksort, not of commands")
        return options
    refuse(options, OF_COMMANDS, "needs a command to time")
    needed = ["scenarios", *([] if options.until else ["trials"]), "out"]
    if all(getattr(options, name) is None for name in needed):
        raise Failure("COMMAND", "is missing, such as 'sleep 0.1'; or, to time "
                      f"blinksort, {' '.join(EXAMPLES.values())}; see --help",
                      USAGE)
    require(options, needed)
    return options


def expect_one_end(options) -> None:
    """Failure: two options say otherwise when the run ends."""
    if options.until is None:
        refuse(options, ("max_trials", "max_time"), "needs --until")
    else:
        refuse(options, ("trials",), "not with --until: see --max-trials")
        if (options.max_trials or DEFAULT_MAX_TRIALS) < options.least_trials:
            raise Failure("--max-trials", f"is below {options.least_trials}, "
                          "the fewest that tell enough", USAGE)


def expect_no_verb(commands: list[str]) -> None:
    """Failure: the first command is no program, but nearly a verb of ours."""
    verb = meant(commands[0], VERBS) if commands else None
    if verb and not shutil.which(commands[0]):
        raise Failure(commands[0], f"is {verb} meant?", USAGE)


def refuse(options: argparse.Namespace, names, why: str) -> None:
    """Failure: it names the first of these options that was given."""
    for name in names:
        if getattr(options, name) is not None:
            raise Failure(spelled(name), why, USAGE)


def parse_characterise(arguments: list[str]) -> argparse.Namespace:
    found = Parser("no operand is taken: name the folder with --out=DIR")
    add = found.add_argument
    add("--out", type=path)
    add("--work", type=path)
    add("-w", dest="hosts", type=given)
    add("--key-file", "--key", type=path)
    add("--file", dest="files", action="append", default=[],
        type=path)
    add("--fact", dest="facts", action="append", default=[], type=fact)
    for flag in ("--write", "--quick", "--quiet"):
        add(flag, action="store_true")
    options = found.parse_args(arguments)
    require(options, ["out"])
    options.work = options.work or options.out
    return options


def parse_folder(verb: str, arguments: list[str]) -> str:
    """The folder: the one argument of a verb about a record."""
    if arguments and arguments[0].startswith("-"):
        raise Failure(arguments[0], "no such option; see --help", USAGE)
    if len(arguments) != 1:
        raise Failure(verb, f"name one folder: blinktrial {verb} DIR", USAGE)
    return arguments[0]


def default_work(out: str) -> str:
    """The work folder in the record's own, where no other file can be."""
    return os.path.join(out, "work")


def complete(options: argparse.Namespace) -> argparse.Namespace:
    """The options, with defaults for those that were not given."""
    defaults = {
        "order": "blocks", **(
            {"scenarios": [AS_IS]} if options.commands else
            {"records": DEFAULT_RECORDS, "work": default_work(options.out)}),
        "noise_wait": DEFAULT_NOISE_WAIT_S,
        # A double holds it, as readers of JSON may take it for one.
        "seed": int.from_bytes(os.urandom(4), "little")}
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def parsed(arguments: list[str],
           known: Parser | None = None) -> argparse.Namespace:
    """Each by itself is as it should be; what they need is for the caller.
    Behind "--" there are commands only."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    found = (known or parser()).parse_intermixed_args(
        with_shell(arguments[:end]))
    found.commands += arguments[end + 1:]
    return found


def of_command(command: list[str]) -> argparse.Namespace:
    """The options that a record was begun with."""
    return complete(parsed(command[1:]))


def resumed(options: argparse.Namespace,
            command: list[str]) -> argparse.Namespace:
    """What a record was begun with, and what was asked for now and may be
    another thing each time.  Failure: something else is another."""
    recorded = of_command(command)
    # The folder may have another name by now.
    if recorded.work and recorded.work == default_work(recorded.out):
        recorded.work = default_work(options.out)
    for name in LASTING:
        now, then = getattr(options, name), getattr(recorded, name)
        if now not in (None, []) and now != then:
            raise Failure(spelled(name), f"is {written(now)}, but "
                          f"{written(then)} in the record", USAGE)
    for name in ("out", "resume", "keep", "quiet", "export_json", "facts"):
        setattr(recorded, name, getattr(options, name))
    for name in REPLACEABLE:
        if getattr(options, name) is not None:
            setattr(recorded, name, getattr(options, name))
    return recorded


def command_of(options: argparse.Namespace) -> list[str]:
    """A command that asks for the same, from any folder."""
    command = ["blinktrial"]
    for name in (*LASTING, *REPLACEABLE, "out"):
        value = getattr(options, name)
        if name == "commands":
            continue
        if value is True:
            command.append(spelled(name))
        elif isinstance(value, list) and name != "scenarios":
            for one in value:
                command += ([f"{spelled(name)}={one}"]
                            if isinstance(one, str) else
                            [spelled(name), *one])
        elif value is not None:
            # An option of one letter has its value as another word.
            glue = [spelled(name), written(value)]
            command += glue if name == "hosts" else ["=".join(glue)]
    return command + ["--", *options.commands] if options.commands else command


def spelled(name: str) -> str:
    special = {"scenarios": "--scenario", "hosts": "-w", "inputs": "--input",
               "outputs": "--output", "commands": "the commands"}
    return special.get(name, f"--{name.replace('_', '-')}")


def written(value) -> str:
    if isinstance(value, list):
        return ",".join(" ".join(one) if isinstance(one, list) else one
                        for one in value)
    # The comparison is by identity, since 1 == True.
    if value is True:
        return "given"
    return "absent" if value is None else str(value)
