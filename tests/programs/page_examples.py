#!/usr/bin/env python3
"""Make a bash script of the examples of a man page.

USAGE: page_examples.py PAGE

An example is a line that begins with the prompt "$ ", or "# " for root, and
the lines that continue it; other lines of a display are what it prints.  The
script runs all of them in one shell, as they are written: it ends with status
1 if one fails or prints something else.  Its last lines are comments: how many
examples there are, and "not run: COMMAND" for each that it leaves out.

What cannot be run by any user on one machine has a comment before it:

    .\\" not run: needs root

The script is not made if an example for root has no such comment, if a line
belongs to no example, or if a prompt stands outside of EXAMPLES.
"""
import re
import shlex
import sys

PROMPT = re.compile(r"[$#] ")
MARK = re.compile(r'\.\\" not run: needs \w')
ESCAPES = {r"\e": "\\", r"\(dq": '"', r"\-": "-", r"\&": ""}


class Example:
    """A command, with the lines that it prints."""

    def __init__(self, line, is_marked):
        self.command = line[2:]
        self.is_root = line[0] == "#"
        self.is_marked = is_marked
        self.printed = []


def literal_lines(page):
    """Yield (line, whether it is marked, whether a display begins) of
    EXAMPLES; what a page has elsewhere may have no prompt."""
    inside = in_display = is_marked = begins = False
    for line in page:
        if line.startswith(".Sh "):
            inside = line == ".Sh EXAMPLES"
        if MARK.match(line):
            is_marked = True
            continue
        if line.startswith(".Bd "):
            in_display = begins = True
            continue
        if line.startswith(".Ed"):
            in_display = False
            continue
        if line.startswith(".Dl "):
            line, begins = line[4:], True
        elif not in_display:
            continue
        line = re.sub(r"\\e|\\\(dq|\\-|\\&",
                      lambda match: ESCAPES[match[0]], line)
        if inside:
            yield line, is_marked, begins
        elif PROMPT.match(line):
            raise ValueError(f"outside of EXAMPLES: {line}")
        is_marked = begins = False


def read_examples(page):
    """Return the examples of the lines of a page."""
    examples = []
    is_text = False
    for line, is_marked, begins in literal_lines(page):
        last = examples[-1] if examples else None
        if PROMPT.match(line):
            examples.append(Example(line, is_marked))
            is_text = False
        elif last and last.command.endswith("\\"):
            last.command += "\n" + line
        elif is_marked or is_text and not begins:
            is_text = True
        elif last and not begins:
            last.printed.append(line)
        else:
            raise ValueError(f"neither a command nor what one prints: {line}")
    for example in examples:
        if example.is_root and not example.is_marked:
            raise ValueError(f"is for root, and not marked: {example.command}")
    return examples


def print_script(examples):
    """Print the script that runs them."""
    print("set -u -o pipefail")
    # What an example has started ends with it, also if one fails.
    print("trap 'jobs -p | xargs -r kill' EXIT")
    for example in examples:
        if example.is_marked:
            continue
        said = shlex.quote("of: " + example.command)
        print(f"{{\n{example.command}\n}} >said 2>&1 ||\n"
              f"\t{{ echo \"status $?\" {said}; tail -n 3 said; exit 1; }}")
        if example.printed:
            text = shlex.quote("\n".join(example.printed))
            print(f"echo {text} | diff - said ||\n"
                  f"\t{{ echo {said}; exit 1; }}")
    print(f"# {len(examples)} examples")
    for example in examples:
        if example.is_marked:
            print("# not run:", re.sub(r"\\\n\s*", "", example.command))


def main():
    with open(sys.argv[1], encoding="utf-8") as page:
        examples = read_examples(page.read().splitlines())
    if not examples:
        raise ValueError("there is no example")
    print_script(examples)


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(f"{sys.argv[1]}: {error}")
