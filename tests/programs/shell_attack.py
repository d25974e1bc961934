#!/usr/bin/env python3
"""Send a daemon what it must not take: shell_attack.py CASE ...

usage: shell_attack.py KEYFILE ADDRESS:PORT MARK CASE [ARGUMENT...]

MARK is a file that the command under attack appends a line to: its number of
lines is the number of times it was started.  Each case ends with status 0 if
the daemon was silent, counted, and did nothing.  The one request to which it is
not silent is one with the right tag and of a session that it does not know.
"""

import os
import random
import socket
import sys

from shell_wire import (CANCEL, FORGOTTEN, FORGOTTEN_SESSION, HELLO, LONG,
                        NO_SESSION, OUTPUT, RENEW, SHORT, START, STATUS, Peer,
                        VERSION, open_reply, read_key, seal, start_body)

BURST = 16  # fit into any receive buffer


def refused(counts):
    return {name: counts[name]
            for name in ("length", "tag", "replay", "fields")}


class Attack:
    def __init__(self, key, address, mark):
        self.key, self.address, self.mark = key, address, mark
        self.peer = Peer(key, address)
        self.stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.stranger.setblocking(False)
        # A job that can be told from others, and its datagram.
        self.job = os.urandom(16)
        self.body = start_body(self.job, self.command())

    def command(self):
        return ["/bin/sh", "-c", "echo >>'%s'" % self.mark]

    def lines(self):
        if not os.path.exists(self.mark):
            return 0
        with open(self.mark, encoding="ascii") as file:
            return len(file.readlines())

    def silent(self, datagrams, reason=None, to=None):
        """Nothing comes back, each is counted, for this reason; and nothing
        has been started."""
        replies = self.send_all(datagrams, reason, to)
        assert not replies, "%d replies" % len(replies)

    def turned_away(self, datagrams, to=None):
        """As silent(), but each gets the word that its session is unknown: in
        its session, with its counter, and no longer than any request."""
        replies = self.send_all(datagrams, "replay", to)
        assert all(len(reply) == SHORT for reply in replies)
        headers = [open_reply(self.key, reply)[:3] for reply in replies]
        assert headers == [(FORGOTTEN_SESSION,
                            datagram[56:72],
                            int.from_bytes(datagram[72:80], "little"))
                           for datagram in datagrams], headers

    def send_all(self, datagrams, reason, to):
        """What comes back to datagrams that are counted and start nothing."""
        lines, peer, replies = self.lines(), to or self.peer, []
        before = peer.counts()
        for first in range(0, len(datagrams), BURST):
            for datagram in datagrams[first:first + BURST]:
                self.stranger.sendto(datagram, peer.address)
            after = peer.counts()
            replies += self.heard()
        expected = len(datagrams)
        grown = {name: after[name] - before[name] for name in refused(after)}
        assert sum(grown.values()) == expected, (grown, expected)
        assert reason is None or grown[reason] == expected, (grown, reason)
        assert after["started"] == before["started"], "started"
        assert self.lines() == lines, "it ran"
        return replies

    def heard(self):
        replies = []
        while True:
            try:
                replies.append(self.stranger.recv(2048))
            except BlockingIOError:
                return replies

    def record(self):
        """A whole conversation: a job that ends, one that is cancelled."""
        peer = self.peer
        job = peer.run(self.command())
        peer.ask(OUTPUT, job + (1).to_bytes(4, "little") + bytes(12))
        job = os.urandom(16)
        # A START is answered when the job ends.
        peer.sent.append(peer.make(START,
                                   start_body(job, ["/bin/sleep", "60"])))
        peer.send(peer.sent[-1])
        peer.ask(RENEW, job)
        peer.ask(CANCEL, job)
        peer.counts()
        # Settled: the cancelled job's own end has been told.
        while peer.counts()["running"] != 0:
            pass
        assert self.lines() == 1, self.lines()
        return list(peer.sent)

    def case_wrong_key(self):
        peer, key = self.peer, os.urandom(32)
        almost = bytearray(self.key)
        almost[-1] ^= 1
        datagrams = []
        for other in (key, bytes(almost), bytes(32)):
            for kind, body in ((HELLO, os.urandom(16)), (START, self.body),
                               (CANCEL, self.job), (STATUS, b"")):
                session = NO_SESSION if kind == HELLO else peer.session
                datagrams.append(seal(other, kind, peer.node, session,
                                      peer.counter + 100, body))
        self.silent(datagrams, "tag")

    def case_flipped_bit(self):
        good = self.peer.make(START, self.body)
        datagrams = []
        for bit in range(8 * len(good)):
            bad = bytearray(good)
            bad[bit // 8] ^= 1 << bit % 8
            datagrams.append(bytes(bad))
        self.silent(datagrams, "tag")
        # And it was the bit that mattered: as it was it starts the job.
        self.peer.send(good)
        while self.peer.counts()["running"] != 0 or self.lines() == 0:
            pass
        assert self.lines() == 1

    def case_truncated(self):
        good = self.peer.make(START, self.body, length=LONG)
        self.silent([good[:length] for length in range(LONG)
                     if length != SHORT], "length")
        self.silent([good[:SHORT]], "tag")
        longer = [good + bytes(count) for count in (1, 2, 100, 8000)]
        self.silent(longer, "length")

    def case_noise(self):
        seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
        print("seed", seed)
        noise = random.Random(seed)
        self.silent([noise.randbytes(noise.choice((SHORT, LONG)))
                     for _ in range(2000)], "tag")

    def case_sent_again(self):
        datagrams = self.record()
        self.silent(datagrams * 3, "replay")

    def case_another_node(self, other):
        datagrams = self.record()
        host, port = other.rsplit(":", 1)
        peer = Peer(self.key, (host, int(port)))
        self.silent(datagrams, to=peer)
        # Nor with the session of that node, or with its name.
        self.silent([seal(self.key, START, self.peer.node, peer.session,
                          peer.counter + 100, self.body)], to=peer)
        self.turned_away([seal(self.key, START, peer.node, self.peer.session,
                               self.peer.counter + 100, self.body)], to=peer)

    def case_reflected(self):
        self.record()
        self.silent([datagram for datagram in self.peer.heard], "fields")

    def case_future(self):
        peer = self.peer
        ahead = [peer.counter + (1 << power) for power in (24, 32, 48, 63)]
        self.silent([peer.make(START, self.body, counter=counter)
                     for counter in ahead + [(1 << 64) - 1]], "replay")
        self.silent([peer.make(START, self.body, counter=0)], "replay")
        # The window was not moved by it.
        peer.run(self.command())
        assert self.lines() == 1

    def case_unknown_session(self):
        peer = self.peer
        for length in SHORT, LONG:
            self.turned_away([seal(self.key, START, peer.node, session, 1,
                                   self.body, length=length)
                              for session in (os.urandom(16), NO_SESSION)])
        # The answer sent back: not a request.
        good = seal(self.key, FORGOTTEN_SESSION, peer.node, peer.session,
                    peer.counter + 1)
        self.silent([good], "fields")

    def case_forgotten_job(self):
        """A START sent again when the job's result has made room."""
        peer, job = self.peer, self.job
        for _ in range(2):
            peer.ask(START, self.body)
            while peer.counts()["running"] != 0:
                pass
        assert self.lines() == 1
        for _ in range(130):
            peer.run(["/bin/true"])
        before = peer.counts()["started"]
        for kind, body in ((RENEW, job), (START, self.body), (CANCEL, job),
                           (START, self.body)):
            reply = peer.ask(kind, body)
            state = int.from_bytes(reply[16:20], "little")
            assert state == FORGOTTEN, (kind, state)
        assert peer.counts()["started"] == before
        assert self.lines() == 1, self.lines()

    def case_bad_fields(self):
        """What has the key but is not well-formed is refused as well."""
        peer = self.peer
        header = (START, peer.node, peer.session)
        bodies = [self.body[:length] for length in range(0, 44, 3)]
        datagrams = [peer.make(START, body) for body in bodies]
        datagrams += [peer.make(START, start_body(
            self.job, self.command(), hosts=hosts)) for hosts in
            ("^/etc/passwd", "a b", "a!b", "a\0")]
        datagrams += [peer.make(kind, self.body) for kind in
                      (0, 6, 8, 13, 14, 15, 99, 255)]
        datagrams.append(seal(self.key, *header, peer.counter + 1, self.body,
                              version=VERSION + 1))
        datagrams.append(seal(self.key, *header, peer.counter + 1, self.body,
                              version=VERSION - 1))
        self.silent(datagrams, "fields")

    def case_record(self, path):
        with open(path, "wb") as file:
            for datagram in self.record():
                file.write(len(datagram).to_bytes(2, "little") + datagram)

    def case_after_restart(self, path):
        """Sends again what an earlier daemon of this address was sent.  An old
        HELLO gets a session, which nothing can be done with; the reply is no
        longer than the HELLO."""
        datagrams = []
        with open(path, "rb") as file:
            while head := file.read(2):
                datagrams.append(file.read(int.from_bytes(head, "little")))
        self.turned_away([datagram for datagram in datagrams
                          if datagram[33] != HELLO])


def main():
    key, address, mark, case = sys.argv[1:5]
    host, port = address.rsplit(":", 1)
    attack = Attack(read_key(key), (host, int(port)), mark)
    getattr(attack, "case_" + case)(*sys.argv[5:])


main()
