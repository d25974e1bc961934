"""What blinktrial was asked for: its command line, read and checked."""

import argparse
import os
import re

from trials.base.failure import USAGE, Failure
from trials.base.spelling import meant, no_such_option
from trials.record.sweep import SORT_OPTIONS
from trials.run.noise import Limit

# The folder of the sweeps that come with the program.
FOLDER = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
TRIALS_AT_MOST = 1_000_000
RECORDS_AT_MOST = 10**12
DEFAULT_RECORDS = 1_000_000
DEFAULT_NOISE_WAIT_S = 60
NOISE_WAIT_AT_MOST_S = 86400
UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
# Options of hyperfine, which users may expect: what to do instead.
HINTS = {
    r"-r.*|--runs": "use --trials",
    r"-[LP].*|--parameter-(list|scan)": "use --sweep",
    r"--export-.*": "use blinkreport --format on the record",
    r"-p.*|--prepare|--warmup": "the scenario prepares each trial",
}
# Options that define a record: --resume goes on with these, and they can't be
# others.
LASTING = ("scenarios", "trials", "sweep", "hosts", "work", "input_device",
           "output_device", "records", "ascii", "seed", "order", "unverified",
           "cache_bytes", "memory", "price", "energy", "powercap")
# A session takes these from the record unless it is given others.
REPLACEABLE = ("key_file", "meter", "noise_limit", "noise_wait")
VERBS = ("characterise", "validate")
NO_OPERAND = ("no operand is taken: blinktrial times blinksort only, and a "
              "sweep varies its options; see --sweep")
# Examples to name where such an option is missing.
EXAMPLES = {"scenarios": "--scenario=pagecache", "trials": "--trials=40",
            "out": "--out=DIR"}
USAGE_TEXT = """\
Usage: blinktrial --scenario=NAME,... --trials=N --out=DIR [OPTION]...
       blinktrial --resume --out=DIR [OPTION]...
       blinktrial characterise --out=DIR [-w HOSTS] [--key-file=FILE]
                  [--work=DIR] [--file=FILE]... [--write] [--quick]
       blinktrial validate DIR
Time blinksort repeatedly, in a random order, and record each trial.

  --scenario=NAME,...  run under these conditions: pagecache (the input is in
                       the page cache), cache (files are read and written past
                       it), platter (the same, and flushed to the medium),
                       beyond-memory (by way of scratch files)
  --trials=N           run N trials of each configuration in each scenario
  --out=DIR            put the record into DIR, a new or empty folder
  --resume             continue the record in DIR, with its options
  --sweep=FILE         vary the parameters in FILE, each in a line such as
                       'sort.threads 1 | 2': the reference 1, and what is
                       compared with it; the reference is also run again as a
                       control
  --records=N          sort N records (1000000)
  --ascii              sort records of printable characters
  --order=ORDER        shuffle each block (blocks, the default), or keep one
                       order (sequence)
  --seed=N             derive the order from N (random)
  -w HOSTS             sort on these nodes, in the notation of blinksh
  --key-file=FILE      read the cluster's key from FILE ($BLINK_KEY)
  --work=DIR           sort files in this folder (the record's work)
  --input-device=DEVICE
                       overwrite this block device with the input, from its
                       first byte on, and sort from there
  --output-device=DEVICE
                       overwrite this block device with each output
  --cache-bytes=SIZE   assume SIZE, such as 64M, for the cache of a drive that
                       does not report it
  --memory=SIZE        in beyond-memory, let the sorter take SIZE (256M)
  --price=FILE         report what a sort costs: FILE has parts and prices
  --energy             read the processor's counters of energy (RAPL)
  --powercap=DIR       look for them in DIR (/sys/class/powercap)
  --meter=FILE         take energy from FILE, which a meter is writing
  --noise-limit=PERCENT[,refuse]
                       before each block, wait until no CPU loses more than
                       PERCENT of its time to others, then label the block, or
                       refuse it and end
  --noise-wait=SECONDS
                       wait no longer for that (60)
  --unverified         run even if a condition can't be verified
  --keep               keep the files that were sorted
  --quiet              print errors only
  -h, --help           print this text
  -V, --version        print the version

characterise measures memory, disk, network and the start of a program; it
shows the position of each FILE on its disk; with --write it measures writing,
too.

Statuses: 0 done, 1 a trial failed or a condition is not met, 2 usage,
3 input or output file, 4 another node or the network, 5 resources,
128 + n after signal n.
See blinktrial(1).
"""


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def __init__(self, no_operand=NO_OPERAND):
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


def given(text: str) -> str:
    """Refuse an empty text, such as a variable that a script has not set."""
    if not text:
        raise argparse.ArgumentTypeError("is empty")
    return text


def path(text: str) -> str:
    return os.path.abspath(given(text))


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
    add("--trials", type=whole_number(1, TRIALS_AT_MOST))
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
    add("--noise-limit", type=noise_limit)
    add("--noise-wait", type=whole_number(0, NOISE_WAIT_AT_MOST_S))
    for flag in ("--ascii", "--energy", "--resume", "--unverified", "--keep",
                 "--quiet"):
        add(flag, action="store_const", const=True)
    add("-h", "--help", action="store_const", const=True)
    add("-V", "--version", action="store_const", const=True)
    return found


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
    options = parser().parse_args(arguments)
    if options.help or options.version:
        return options
    require(options, ["out"] if options.resume
            else ["scenarios", "trials", "out"])
    if options.resume:
        # The needs of its options were checked when the record was begun.
        return options
    for name, other in (("powercap", "energy"),
                        ("input_device", "output_device"),
                        ("output_device", "input_device")):
        if getattr(options, name) and not getattr(options, other):
            raise Failure(spelled(name), f"needs {spelled(other)}", USAGE)
    return options


def parse_characterise(arguments: list[str]) -> argparse.Namespace:
    found = Parser("no operand is taken: name the folder with --out=DIR")
    add = found.add_argument
    add("--out", type=path)
    add("--work", type=path)
    add("-w", dest="hosts", type=given)
    add("--key-file", "--key", type=path)
    add("--file", dest="files", action="append", default=[],
        type=path)
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
        "records": DEFAULT_RECORDS, "order": "blocks",
        "work": default_work(options.out),
        "noise_wait": DEFAULT_NOISE_WAIT_S,
        # A double holds it, as readers of JSON may take it for one.
        "seed": int.from_bytes(os.urandom(4), "little")}
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def of_command(command: list[str]) -> argparse.Namespace:
    """The options that a record was begun with."""
    return complete(parser().parse_args(command[1:]))


def resumed(options: argparse.Namespace,
            command: list[str]) -> argparse.Namespace:
    """What a record was begun with, and what was asked for now and may be
    another thing each time.  Failure: something else is another."""
    recorded = of_command(command)
    # The folder may have another name by now.
    if recorded.work == default_work(recorded.out):
        recorded.work = default_work(options.out)
    for name in LASTING:
        now, then = getattr(options, name), getattr(recorded, name)
        if now is not None and now != then:
            raise Failure(spelled(name), f"is {written(now)}, but "
                          f"{written(then)} in the record", USAGE)
    for name in ("out", "resume", "keep", "quiet"):
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
        if value is True:
            command.append(spelled(name))
        elif value is not None:
            # An option of one letter has its value as another word.
            glue = [spelled(name), written(value)]
            command += glue if name == "hosts" else ["=".join(glue)]
    return command


def spelled(name: str) -> str:
    special = {"scenarios": "--scenario", "hosts": "-w"}
    return special.get(name, f"--{name.replace('_', '-')}")


def written(value) -> str:
    if isinstance(value, list):
        return ",".join(value)
    # The comparison is by identity, since 1 == True.
    if value is True:
        return "given"
    return "absent" if value is None else str(value)
