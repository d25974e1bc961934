"""What the trials of a cluster ask of each node, and how answers are joined.

blinksh runs `blinktrial node VERB ...` on every node at once; the program does
it there and prints one JSON document, which blinksh brings back as a string.
main() is the node's side; ask() and the join_*() are the client's.

    make RECORDS RANK/RANKS ascii|binary PATH    the rank's part of the input
    examine SCENARIO WORK                        conditions before all trials
    prepare SCENARIO INPUT OUTPUT                conditions before one
    check SCENARIO INPUT OUTPUT                  conditions after it; the sum of
                                                 what is in OUTPUT
    counters WORK       environment WORK         remove PATH...
    noise                                        of its CPUs, watched now
    said PATH                                    a file that a rank has printed

Several are done one after the other if THEN is between them; their answers are
one document, in which no two have a member in common.

Options stand before the verb: --programs=FOLDER, where blinkgen and blinkval
are, since a daemon's PATH knows nothing of them; --cache-bytes=N and --reuse.
"""

import argparse
import base64
import contextlib
import json
import os
import re
import subprocess
import tempfile

from trials.base.failure import FAILED, NETWORK, USAGE, Failure, naming
from trials.base.programs import Programs, first_line
from trials.base.stdout import print_text
from trials.machine import counters, disks, environment, noise
from trials.scenario import conditions, inputs
from trials.scenario.context import Context
from trials.scenario.place import Place

SCHEMA = "blinktrial-node-1"
LAST_STATUS = 5
# Between two verbs; no path begins so.
THEN = "--then"
BOOT_ID = "/proc/sys/kernel/random/boot_id"


# --- on a node ----------------------------------------------------------------


def number(text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise Failure(text, "is not a number", USAGE)
    return int(text)


def share_of(text: str) -> tuple:
    """"3/16" -> (3, 16)"""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if not found or int(found[1]) >= int(found[2]):
        raise Failure(text, "is no rank of ranks, as 3/16", USAGE)
    return int(found[1]), int(found[2])


def make(options, records, share, kind, path) -> dict:
    if kind not in ("ascii", "binary"):
        raise Failure(kind, "is neither ascii nor binary", USAGE)
    start, count = inputs.share(number(records), *share_of(share))
    made = inputs.make(path, count, kind == "ascii", start, options.programs,
                       options.reuse)
    return {"records": made.records, "bytes": made.bytes,
            "checksum": made.checksum, "boot_id": disks.read_text(BOOT_ID)}


def examine(options, scenario, work) -> dict:
    wanted = conditions.scenario(scenario, Place.folder(work), options)
    return {"conditions": wanted.check(False)}


def folder_of(path: str) -> Place:
    return Place.folder(os.path.dirname(path) or ".")


def prepare(options, scenario, source, output) -> dict:
    wanted = conditions.scenario(scenario, folder_of(source), options)
    return {"conditions": wanted.prepare(Context(source, output))}


def check(options, scenario, source, output) -> dict:
    """The conditions first: to sum an output up brings it into the cache."""
    after = conditions.scenario(scenario, folder_of(source), options)
    found = after.verify_files(Context(source, output))
    summary, message = summary_of(output, options.programs)
    return {"conditions": found, "message": message,
            "summary_base64": base64.b64encode(summary).decode()}


def summary_of(output: str, programs) -> tuple:
    """A rank may have got no records; then there is nothing to sum up."""
    try:
        if os.path.getsize(output) == 0:
            return b"", None
    except OSError as error:
        return b"", f"{output}: {os.strerror(error.errno)}"
    return inputs.summary_of(output, programs)


def count(options, work) -> dict:
    return {"counters": counters.read(work)}


def describe(options, work) -> dict:
    return {"environment": environment.describe([work], options.programs)}


def watch(options) -> dict:
    return noise.watch(options.programs)


def said(options, path) -> dict:
    """The output of a rank; one that has not begun has no file."""
    return {"text": disks.read_text(path) or ""}


def remove(options, *paths) -> dict:
    removed = 0
    for path in paths:
        with naming(path), contextlib.suppress(FileNotFoundError):
            os.unlink(path)
            removed += 1
    return {"removed": removed}


VERBS = {"make": make, "examine": examine, "prepare": prepare,
         "check": check, "counters": count, "environment": describe,
         "noise": watch, "remove": remove, "said": said}


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Failure("node", message, USAGE)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser("node", add_help=False, allow_abbrev=False)
    parser.add_argument("--programs", type=Programs, default=None)
    parser.add_argument("--cache-bytes", type=number)
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("requests", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


def requests_of(words: list[str]) -> list[list[str]]:
    """Each a verb and its arguments, as many as it takes."""
    requests: list[list[str]] = [[]]
    for word in words:
        if word == THEN:
            requests.append([])
        else:
            requests[-1].append(word)
    for verb, *rest in (request or [""] for request in requests):
        if verb not in VERBS:
            raise Failure(verb, f"no verb; there are {', '.join(VERBS)}",
                          USAGE)
        takes = VERBS[verb].__code__.co_argcount - 1
        if len(rest) != takes and VERBS[verb] is not remove:
            raise Failure(verb, f"takes {takes} arguments", USAGE)
    return requests


def main(arguments: list[str], programs=None) -> int:
    """programs: where they are unless --programs says it."""
    options = parse(arguments)
    options.programs = options.programs or programs or Programs("/usr/bin")
    answer = {"schema": SCHEMA}
    for verb, *rest in requests_of(options.requests):
        answer.update(VERBS[verb](options, *rest))
    print_text(json.dumps(answer) + "\n")
    return 0


# --- at the client ------------------------------------------------------------


def command(programs, verb: str, *arguments, options=()) -> list[str]:
    """What blinksh is to run: the programs lie in one place on all nodes.
    %r and %n in arguments become rank and number of ranks."""
    folder = os.path.dirname(programs.path("blinksort"))
    return [programs.path("blinktrial"), "node", f"--programs={folder}",
            *options, verb, *map(str, arguments)]


def ask(programs, shell_options: list[str], verb: str, *arguments,
        options=()) -> list[dict]:
    """Have it done on all nodes; their answers, in the order of ranks.
    shell_options are blinksh's own, as -w HOSTS."""
    done = programs.call("blinksh", *shell_options, "--json", "--",
                         *command(programs, verb, *arguments,
                                  options=options))
    try:
        document = json.loads(done.stdout)
    except ValueError:
        raise Failure("blinksh", first_line(done.stderr) or "says nothing",
                      NETWORK) from None
    return answers(document)


def answers(document: dict) -> list[dict]:
    """The answer of each node in the document of blinksh, with "host" and
    "rank" added; a Failure that names the first node that has none."""
    nodes = sorted(document["nodes"], key=lambda node: node["rank"])
    # Nodes that blinksh stopped because of another are not to blame.
    blamed = [node for node in nodes
              if node["status"] != 0 and node["state"] != "cancelled"]
    return [answer_of(node) for node in blamed + nodes]


def answer_of(node: dict) -> dict:
    host = node["host"]
    if node["status"] != 0:
        why = (first_line(node["stderr"]) or "").removeprefix("blinktrial: ")
        raise Failure(host, why or node["state"], status_of(node))
    # A daemon keeps only the end of what a program has printed.
    if node["stdout_total_bytes"] != len(node["stdout"].encode()):
        raise Failure(host, "the answer is too long", NETWORK)
    try:
        answer = json.loads(node["stdout"])
    except ValueError:
        raise Failure(host, "the answer is not JSON", NETWORK) from None
    if answer.get("schema") != SCHEMA:
        raise Failure(host, f"the answer is not of {SCHEMA}", NETWORK)
    return {"host": host, "rank": node["rank"], **answer}


def status_of(node: dict) -> int:
    """The node's own, where it is one of ours."""
    if node["state"] == "exited" and node["status"] <= LAST_STATUS:
        return node["status"]
    return NETWORK


def join_conditions(by_host: dict[str, list[dict]]) -> list[dict]:
    """One condition of each name: met if it is on all nodes.  What was found is
    said once if all found the same, else for the nodes that differ most, which
    do not meet it."""
    names: list[str] = []
    for found in by_host.values():
        names += [one["name"] for one in found if one["name"] not in names]
    return [join_condition(name, {
        host: one for host, found in by_host.items()
        for one in found if one["name"] == name}) for name in names]


def join_condition(name: str, by_host: dict[str, dict]) -> dict:
    met = conditions.worst(one["met"] for one in by_host.values())
    worst = {host: one for host, one in by_host.items()
             if one["met"] is met}
    said = {one["found"] for one in by_host.values()}
    first = next(iter(by_host.values()))
    if len(said) == 1:
        found = said.pop()
    else:
        found = ", ".join(f"{host}: {one['found']}"
                          for host, one in worst.items())
    return conditions.condition(name, first["wanted"], found, met)


def join_check(checks: list[dict],
               programs) -> "subprocess.CompletedProcess[str]":
    """The verdict of blinkval on all outputs as one, from the answers to check.
    """
    for one in checks:
        if one["message"]:
            return subprocess.CompletedProcess(
                ["blinkval"], FAILED, "",
                f"ERROR - {one['host']}: {one['message']}\n")
    with tempfile.NamedTemporaryFile(prefix="blinktrial-") as file:
        for one in checks:
            file.write(base64.b64decode(one["summary_base64"]))
        file.flush()
        return programs.call("blinkval", "-s", file.name)


def join_checksums(checksums: list[str]) -> str:
    """The checksum of an input made in parts: the sum of theirs."""
    return f"{sum(int(one, 16) for one in checksums):x}"
