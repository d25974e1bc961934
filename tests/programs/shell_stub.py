#!/usr/bin/env python3
"""A daemon that answers as it is told to, and does nothing.

usage: shell_stub.py KEYFILE ADDRESS:PORT forgetful | forgotten

Forgetful: each session is unknown as soon as it was opened.  Forgotten: the job
that a START asks for has ended, and how is not known.  Standard output gets the
line "ready" when the socket is bound, and then "told" for each such answer.
"""

import os
import socket
import struct
import sys

from shell_wire import (FORGOTTEN, FORGOTTEN_SESSION, HELLO, JOB, NO_SESSION,
                        SESSION, node_id, open_reply, read_key, seal)


def main():
    key, (host, port) = read_key(sys.argv[1]), sys.argv[2].rsplit(":", 1)
    address, behaviour = (host, int(port)), sys.argv[3]
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(address)
    print("ready", flush=True)
    while True:
        datagram, client = one.recvfrom(2048)
        kind, session, counter, body = open_reply(key, datagram)
        if kind == HELLO:
            reply = (SESSION, NO_SESSION, counter,
                     body + os.urandom(16) + bytes(16))
        elif behaviour == "forgetful":
            reply = (FORGOTTEN_SESSION, session, counter, b"")
        else:
            reply = (JOB, session, counter,
                     body[:16] + struct.pack("<I", FORGOTTEN) + bytes(60))
        kind, session, counter, body = reply
        one.sendto(seal(key, kind, node_id(address), session, counter, body),
                   client)
        if kind != SESSION:
            print("told", flush=True)


main()
