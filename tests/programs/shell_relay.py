#!/usr/bin/env python3
"""A bad network between blinksh and daemons that listen in a namespace.

usage: shell_relay.py NAMESPACE PORT COUNT [LOSS DUPLICATE REORDER FLIP]

Daemons listen on 127.0.0.2:PORT and following in the network namespace; the
relay takes the same addresses outside, so that nodes have their right names.
Each datagram, either way, is lost, sent twice, held back behind the next one
of its way, or has one bit flipped, each with so many per cent of probability;
what is sent twice may be reordered.  SEED in the environment repeats a run.
"""

import ctypes
import os
import random
import selectors
import socket
import sys

CLONE_NEWNET = 0x40000000
HOLD_S = 0.02  # at most, when no next one comes


def bind(address):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    if address:
        one.bind(address)
    one.setblocking(False)
    return one


def enter(namespace):
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/run/netns/" + namespace, "rb") as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


class Node:
    def __init__(self, address):
        self.address, self.client = address, None
        self.front = bind(address)
        self.back = None
        self.held = {}  # by way: datagrams

    def send(self, way, datagram):
        try:
            if way == "in":
                self.back.sendto(datagram, self.address)
            elif self.client:
                self.front.sendto(datagram, self.client)
        except OSError:
            pass  # a full socket: lost

    def release(self, way):
        for datagram in self.held.pop(way, ()):
            self.send(way, datagram)


class Relay:
    def __init__(self, rates):
        seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
        print("seed", seed, flush=True)
        self.chance = random.Random(seed)
        self.rates = rates

    def happens(self, what):
        return self.chance.random() * 100 < self.rates[what]

    def pass_on(self, node, way, datagram):
        if self.happens("loss"):
            return
        copies = 2 if self.happens("duplicate") else 1
        for _ in range(copies):
            one = bytearray(datagram)
            if self.happens("flip"):
                bit = self.chance.randrange(8 * len(one))
                one[bit // 8] ^= 1 << bit % 8
            if self.happens("reorder"):
                node.held.setdefault(way, []).append(bytes(one))
                continue
            node.send(way, bytes(one))
            node.release(way)

    def take(self, node, way):
        try:
            if way == "in":
                datagram, node.client = node.front.recvfrom(2048)
            else:
                datagram = node.back.recv(2048)
        except OSError:
            return
        self.pass_on(node, way, datagram)


def main():
    namespace, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rates = dict(zip(("loss", "duplicate", "reorder", "flip"),
                     [float(text) for text in sys.argv[4:]] + 4 * [0.0]))
    nodes = [Node(("127.0.0.%d" % (i + 2), port)) for i in range(count)]
    enter(namespace)
    selector = selectors.DefaultSelector()
    for node in nodes:
        node.back = bind(None)
        selector.register(node.front, selectors.EVENT_READ, (node, "in"))
        selector.register(node.back, selectors.EVENT_READ, (node, "out"))
    relay = Relay(rates)
    while True:
        ready = selector.select(HOLD_S)
        for key, _ in ready:
            relay.take(*key.data)
        if not ready:
            for node in nodes:
                node.release("in")
                node.release("out")


main()
