"""The command datagrams of shell/wire.h, written a second time.

An implementation of its own, so that the tests do not share the mistakes of
what they test; and one that can also make what no honest program would send.
"""

import hashlib
import os
import socket
import struct

SHORT, LONG, HEADER = 256, 1200, 80
HELLO, SESSION, START, JOB, RENEW = 1, 2, 3, 4, 5
CANCEL, OUTPUT, OUTPUT_PART, STATUS, NODE = 7, 9, 10, 11, 12
UNKNOWN, RUNNING, EXITED, FORGOTTEN = 0, 1, 2, 8
VERSION = 2
FORGOTTEN_SESSION = 14  # NO_SESSION of wire.h
NO_SESSION = bytes(16)
COUNTS = ("uptime_ns started running length tag replay fields "
          "resident_bytes").split()


def read_key(path):
    with open(path, encoding="ascii") as file:
        return bytes.fromhex(file.read().strip())


def node_id(address):
    return hashlib.blake2b(("%s:%d" % address).encode(), digest_size=16,
                           person=b"blink node 1").digest()


def tag(key, rest):
    return hashlib.blake2b(rest, digest_size=32, key=key,
                           person=b"blink datagram 1").digest()


def seal(key, kind, node, session, counter, body=b"", length=None,
         version=VERSION):
    """A datagram; the length that its body needs, or the one given."""
    if length is None:
        length = SHORT if HEADER + len(body) <= SHORT else LONG
    rest = struct.pack("<BBBBI16s16sQ", version, kind, 0, 0, len(body), node,
                       session, counter) + body
    rest = rest.ljust(length - 32, b"\0")
    return tag(key, rest) + rest


def open_reply(key, datagram):
    """(kind, session, counter, body), or an exception."""
    assert len(datagram) in (SHORT, LONG), len(datagram)
    assert tag(key, datagram[32:]) == datagram[:32], "tag"
    version, kind, flags, zero, body_bytes, _, session, counter = \
        struct.unpack_from("<BBBBI16s16sQ", datagram, 32)
    assert (version, flags, zero) == (VERSION, 0, 0)
    return kind, session, counter, datagram[HEADER:HEADER + body_bytes]


def start_body(job, arguments, rank=0, nodes=1, lease_ms=10000, timeout_ms=0,
               hosts="", host="host"):
    text = b"".join(argument.encode() + b"\0" for argument in arguments)
    return job + struct.pack("<7I", rank, nodes, lease_ms, timeout_ms,
                             len(arguments), len(hosts), len(host)) + \
        text + hosts.encode() + host.encode()


class Peer:
    """A client of one daemon that keeps all that is said."""

    def __init__(self, key, address):
        self.key, self.address, self.node = key, address, node_id(address)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(100)
        self.session, self.counter = NO_SESSION, 0
        self.sent, self.heard = [], []
        self.hello()

    def send(self, datagram):
        self.socket.sendto(datagram, self.address)

    def receive(self):
        datagram = self.socket.recv(2048)
        self.heard.append(datagram)
        return open_reply(self.key, datagram)

    def hello(self):
        nonce = os.urandom(16)
        self.sent.append(seal(self.key, HELLO, self.node, NO_SESSION, 0,
                              nonce))
        self.send(self.sent[-1])
        kind, _, _, body = self.receive()
        assert kind == SESSION and body[:16] == nonce, (kind, body)
        self.session = body[16:32]

    def make(self, kind, body=b"", counter=None, **others):
        """The next request, sealed and not sent."""
        if counter is None:
            self.counter += 1
            counter = self.counter
        return seal(self.key, kind, self.node, self.session, counter, body,
                    **others)

    def ask(self, kind, body=b""):
        """The reply's body; what still comes to earlier ones is passed by."""
        self.sent.append(self.make(kind, body))
        self.send(self.sent[-1])
        while True:
            reply = self.receive()
            if reply[2] == self.counter:
                assert reply[1] == self.session
                return reply[3]

    def run(self, arguments, **fields):
        """A job from its START to its end; its id."""
        job = os.urandom(16)
        body = self.ask(START, start_body(job, arguments, **fields))
        while struct.unpack_from("<I", body, 16)[0] == RUNNING:
            body = self.ask(RENEW, job)
        assert body[:16] == job
        return job

    def counts(self):
        """Of the daemon.  A daemon takes datagrams in order: what was sent
        before this has been dealt with when it returns."""
        return dict(zip(COUNTS, struct.unpack("<8Q", self.ask(STATUS))))
