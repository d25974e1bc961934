#!/usr/bin/env python3
"""Open sessions with a daemon and use each once: as many clients do.

usage: shell_crowd.py KEYFILE ADDRESS:PORT COUNT
"""

import sys

from shell_wire import STATUS, Peer, read_key


def main():
    host, port = sys.argv[2].rsplit(":", 1)
    peer = Peer(read_key(sys.argv[1]), (host, int(port)))
    for _ in range(int(sys.argv[3])):
        peer.hello()
        peer.counter = 0
        peer.ask(STATUS)


main()
