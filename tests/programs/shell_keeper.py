#!/usr/bin/env python3
"""Keep what a job was given, past its end, and use it against the next job.

usage: shell_keeper.py BLINKSH ADDRESS:PORT ROUNDS

In each round job A passes its standard output and its secret to this program,
which is no job and keeps them, and ends.  While job B runs, the keeper reads
all secrets that it has, writes to all outputs and moves all offsets.  The exit
status is 0 if the keeper learned nothing of B's secret, B has read its whole
secret, and nothing but that is in B's output.
"""

import array
import os
import socket
import subprocess
import sys

WAIT_S = 100  # for each step: a bound, and not a measure
SECRET_BYTES = 32
INJECTED = b"INJECTED\n"
# Job A: descriptors 1 and 3 by SCM_RIGHTS.
PASS = """import array, socket, sys
one = socket.socket(socket.AF_UNIX)
one.connect(sys.argv[1])
one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                      array.array("i", [1, 3]))])
one.recv(1)"""
# Job B: says that it is there, waits for the keeper, prints its secret.
PRINT = """import os, socket, sys
one = socket.socket(socket.AF_UNIX)
one.connect(sys.argv[1])
one.recv(1)
print(os.read(3, 64).hex())"""


class Keeper:
    def __init__(self, blinksh, node):
        self.command = [blinksh, "--lost-after=60", "--lease=60", "-q", "-N",
                        "-w", node, "--", "/usr/bin/python3", "-c"]
        self.path = os.path.join(os.getcwd(), "keeper")
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(self.path)
        self.door.listen()
        self.door.settimeout(WAIT_S)
        self.outputs, self.secrets = [], []

    def begin(self, script):
        """The client of a job, and the connection that the job has made."""
        client = subprocess.Popen(self.command + [script, self.path],
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        job, _ = self.door.accept()
        job.settimeout(WAIT_S)
        return client, job

    @staticmethod
    def end(client, job):
        """Let the job go on to its end; what it has written."""
        job.send(b"x")
        out, err = client.communicate(timeout=WAIT_S)
        assert client.returncode == 0, (client.returncode, err)
        return out, err

    def keep(self):
        client, job = self.begin(PASS)
        _, messages, _, _ = job.recvmsg(1, socket.CMSG_SPACE(8))
        output, secret = array.array("i", messages[0][2])
        self.outputs.append(output)
        self.secrets.append(secret)
        self.end(client, job)

    def attack(self):
        learned = [os.pread(secret, 64, 0) for secret in self.secrets]
        for output in self.outputs:
            try:
                os.write(output, INJECTED)
            except BrokenPipeError:
                pass
        for secret in self.secrets:
            os.lseek(secret, SECRET_BYTES, os.SEEK_SET)
        return learned

    def round(self):
        self.keep()
        client, job = self.begin(PRINT)
        learned = self.attack()
        out, err = self.end(client, job)
        assert INJECTED not in out + err, ("injected", out, err)
        assert len(out) == 2 * SECRET_BYTES + 1, ("the secret is cut", out)
        assert bytes.fromhex(out.decode()) not in learned, "learned"
        assert err == b"", err


def main():
    keeper = Keeper(sys.argv[1], sys.argv[2])
    for _ in range(int(sys.argv[3])):
        keeper.round()


main()
