#!/usr/bin/python3
"""pipe_ends.py - run a program between unusual ends: a terminal, a socket

    pipe_ends.py input-terminal COMMAND...    its stdin is a terminal
    pipe_ends.py output-terminal COMMAND...   its stdout is a terminal, and
                                              what it prints goes to our stdout
    pipe_ends.py error-terminal COMMAND...    the same of its stderr
    pipe_ends.py input-socket COMMAND...      our stdin by a socket
    pipe_ends.py output-socket COMMAND...     its stdout, by a socket
    pipe_ends.py input-nonblocking COMMAND...  our stdin by a pipe that does not
                                               block, with pauses
    pipe_ends.py output-nonblocking COMMAND... its stdout, the same way
    pipe_ends.py memory KIB COMMAND...        status 99 if it uses more memory

The exit status is the command's.
"""
import os
import pty
import resource
import shutil
import socket
import subprocess
import sys
import time


def terminal(stream, command):
    """Nothing is typed; what is printed is read when the command has ended,
    so it must fit into the terminal's buffer."""
    screen, line = pty.openpty()
    status = subprocess.run(command, timeout=60, **{stream: line}).returncode
    os.set_blocking(screen, False)
    try:
        sys.stdout.buffer.write(os.read(screen, 4096))
    except BlockingIOError:
        pass
    return status


def ends_of(kind):
    """A reading end and a writing end."""
    if kind == "socket":
        ours, theirs = socket.socketpair()
        return ours.detach(), theirs.detach()
    return os.pipe()


def feed(kind, ours, process):
    """The command reads what we read from stdin."""
    with open(ours, "wb") as pipe:
        if kind == "nonblocking":
            pipe.write(sys.stdin.buffer.read(150))
            pipe.flush()
            time.sleep(0.1)
        shutil.copyfileobj(sys.stdin.buffer, pipe)
    return process.wait()


def drain(kind, ours, process):
    """What the command writes we write to stdout."""
    if kind == "nonblocking":
        time.sleep(0.1)
    with open(ours, "rb") as pipe:
        shutil.copyfileobj(pipe, sys.stdout.buffer)
    return process.wait()


def between(side, kind, command):
    """The command has one end, and we have the other one."""
    reading, writing = ends_of(kind)
    if side == "input":
        stream, theirs, ours, copy = "stdin", reading, writing, feed
    else:
        stream, theirs, ours, copy = "stdout", writing, reading, drain
    os.set_blocking(theirs, kind != "nonblocking")
    with subprocess.Popen(command, **{stream: theirs}) as process:
        os.close(theirs)
        return copy(kind, ours, process)


def memory(limit_kib, command):
    """The most that was resident."""
    status = subprocess.run(command).returncode
    peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if peak_kib <= int(limit_kib):
        return status
    print(f"  {peak_kib} KiB were resident", file=sys.stderr)
    return 99


def main():
    way, command = sys.argv[1], sys.argv[2:]
    if way == "memory":
        return memory(command[0], command[1:])
    side, kind = way.split("-")
    if kind == "terminal":
        return terminal({"input": "stdin", "output": "stdout",
                         "error": "stderr"}[side], command)
    return between(side, kind, command)


sys.exit(main())
