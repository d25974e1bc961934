#!/usr/bin/python3 -P
"""ask_progress.py NAME PATTERN COMMAND... - asks a command how far it has come

Starts the command, waits until it handles SIGUSR1, and sends that again and
again to its end.  What it writes on standard error is the file NAME.  When
a line there matches PATTERN, the file NAME.matched is made.

Ends with the command's status; or with 99 if no line has matched.
"""

import os
import re
import signal
import subprocess
import sys
import time

PAUSE_S = 0.0005


def handles_the_signal(process):
    try:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
            caught = re.search(r"SigCgt:\s*(\S+)", status.read())
    except OSError:
        return False
    return caught and int(caught[1], 16) >> (signal.SIGUSR1 - 1) & 1


def main(name, pattern, *command):
    lines, matched = b"", False
    with open(name, "w+b") as errors, open(name, "rb") as reader:
        # A rank of MPI has descriptors of its launcher.
        with subprocess.Popen(
            command, stderr=errors, close_fds=False
        ) as process:
            while process.poll() is None and not handles_the_signal(process):
                time.sleep(PAUSE_S)
            while process.poll() is None:
                process.send_signal(signal.SIGUSR1)
                time.sleep(PAUSE_S)
                if not matched:
                    lines += reader.read()
                    matched = re.search(pattern.encode(), lines, re.MULTILINE)
                    if matched:
                        os.close(os.open(name + ".matched", os.O_CREAT))
    if process.returncode == 0 and not matched:
        print(f"{command}: no line is {pattern}", file=sys.stderr)
        return 99
    return process.returncode


sys.exit(main(*sys.argv[1:]))
