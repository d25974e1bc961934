"""Sweep files: what they mean, and what is refused."""

import random
import tempfile
import unittest
from pathlib import Path

import unit
from trials.base.failure import FILE, Failure
from trials.record import sweep

RESULTS = unit.ROOT / "results"

GOOD = """\
# a comment
sort.io  auto | mmap "two words"   # and another
  because  it's the "reason" # all of it
\tsource\tours
  only     cluster

machine.raid-chunk 64K | 1M
  skip no
sort.threads default | 1 2
factorial sort.io sort.threads
racing every=5 alpha=0.05
"""

# The last line of each is the wrong one, unless its number stands behind.
REFUSED = (
    ("sort.io auto mmap", "NAME REFERENCE | ALTERNATIVE"),
    ("sort.io auto|mmap", "with blanks around the bar"),
    ("sort.io | auto mmap", "NAME REFERENCE | ALTERNATIVE"),
    ("sort.io", "NAME REFERENCE | ALTERNATIVE"),
    ("sort.io auto | mmap | direct", "NAME REFERENCE | ALTERNATIVE"),
    ("sort.io auto |", "has no alternative"),
    ("sort.io auto | mmap auto", "'auto' is the reference"),
    ("sort.io auto | mmap mmap", "twice"),
    ("sort.io auto | a=b", "'a=b' can't be a value"),
    ("sort.io auto | a,b", "'a,b' can't be a value"),
    ('sort.io auto | ""', "'' can't be a value"),
    ('sort.io auto | "mmap', "no closing quotation"),
    ("sort.output a | b", "'sort.output': of sort. a sweep may set by-ref"),
    ("sort.plain no | on", "yes or no"),
    ("disk.chunk 1 | 2", "begins with sort., tune., ranks., machine."),
    ("ranks.speed 1 | 2", "may set mpirun, exchange, count"),
    ("ranks.count 2 | 0", "ranks.count can't be '0'"),
    ("ranks.count 2x | 3", "ranks.count can't be '2x'"),
    ("ranks.mpirun openmpi | lam", "ranks.mpirun can't be 'lam'"),
    ("ranks.exchange udp | tcp", "ranks.exchange can't be 'tcp'"),
    ("io auto | mmap", "'io' is not a parameter's name; sort.io is"),
    ("moon a | b", "name; there are tune.KNOB of blinktune, ranks.mpirun, "
     "ranks.exchange, ranks.count, and sort. with "
     "by-reference, io, "),
    ("tune. a | b", "'tune.' is not a parameter's name"),
    ("tune.mtu: a | b", "'tune.mtu:' is not a parameter's name"),
    ("sort.io:x a | b", "'sort.io:x' is not a parameter's name"),
    ("tune.mtu:a 1 | 2\ntune.mtu:b 1 | 2", "would share its variants' names"),
    ("tune.Read a | b", "'tune.Read' is not a parameter's name"),
    ("sort.io auto | mmap\nsort.io auto | mmap", "on line 1 already"),
    ("sort.io auto | mmap\ntune.io a | b", "would share its variants' names"),
    ("tune.profile a | b\ntune.mtu 1 | 2", "beside single knobs"),
    ("tune.mtu 1 | 2\ntune.profile a | b", "beside single knobs"),
    ("  because of that", "'because' belongs to no parameter"),
    ("sort.io auto | mmap\nracing off\n  because of that",
     "'because' belongs to no parameter"),
    ("sort.io auto | mmap\n  why not", "'why' is not because"),
    ("sort.io auto | mmap\n  because ", "says nothing"),
    ("sort.io auto | mmap\n  because a\n  because b", "a second 'because'"),
    ("sort.io auto | mmap\n  only you", "'only cluster'"),
    ("sort.io auto | mmap\nfactorial sort.io", "two parameters or more"),
    ("sort.io auto | mmap\nfactorial sort.io sort.io", "twice"),
    ("sort.io auto | mmap\nfactorial sort.io sort.threads",
     "no parameter 'sort.threads' above"),
    ("sort.io a | b\nsort.memory a | b\nfactorial sort.io sort.memory\n"
     "factorial sort.io sort.memory", "a second factorial"),
    ("racing", "off, or its figures"),
    ("racing on", "knows no 'on'"),
    ("racing every=x", "'x' is not a number"),
    ("racing every=1.5", "'1.5' is not a number"),
    ("racing every=0", "every is below 1"),
    ("racing first_block=1", "first_block is below 2"),
    ("racing alpha=0", "alpha is not within"),
    ("racing alpha=nan", "alpha is not within"),
    ("racing margin_ratio=0.9", "margin_ratio is below 1"),
    ("racing margin_ratio=nan", "margin_ratio is below 1"),
    ("racing margin_ratio=inf", "margin_ratio is below 1"),
    ("racing off\nracing off", "a second racing"),
    ("scaling", "what is known is 'scaling weak'"),
    ("machine.raid 1 | 2", "needs a skip line"),
    ("machine.raid 1 | 2 3\n  work 2 /a", "needs a skip line", 1),
    ("sort.io auto | mmap\n  work mmap /a", "sort.io is set, and has no place"),
    ("machine.raid 1 | 2\n  work 1 /a", "written work ALTERNATIVE FOLDER"),
    ("machine.raid 1 | 2\n  work 2 a", "written work ALTERNATIVE FOLDER"),
    ("machine.raid 1 | 2\n  work 2 /a /b", "written work ALTERNATIVE FOLDER"),
    ("machine.net 1 | 2\n  nodes 2 a;b", "written nodes VALUE HOSTS"),
    ("machine.net 1 | 2\n  nodes 2 a,b\n  work 2 /a", "a second place of 2"),
    ("sort.io a | b\ntogether sort.io=b", "two changes or more"),
    ("sort.io a | b\ntogether sort.io=b sort.memory=1",
     "together: no parameter 'sort.memory' above"),
    ("sort.io a | b\nsort.memory a | b\ntogether sort.io=b sort.memory=a",
     "'sort.memory=a' changes nothing"),
    ("sort.io a | b\nsort.memory a | b\ntogether sort.io=b sort.memory=c=d",
     "'c=d' can't be a value"),
    ("sort.io a | b\nsort.memory a |\ntogether sort.io=b sort.memory=c\n"
     "together sort.memory=c sort.io=b", "stands there twice"),
    ("machine.a 1 | 2\n  work 2 /a\nmachine.b 1 | 2\n  work 2 /b\n"
     "together machine.a=2 machine.b=2", "a trial is in one", 3),
    ("unverified trials", "'unverified' is not a parameter's name"),
)


class Sweeps(unittest.TestCase):
    def test_sweep_means(self):
        found = sweep.parse(GOOD)
        io, chunk, threads = found.parameters
        self.assertEqual((io.name, io.reference, io.alternatives),
                         ("sort.io", "auto", ["mmap", "two words"]))
        self.assertEqual(io.reason, 'it\'s the "reason" # all of it')
        self.assertEqual(io.source, "ours")
        self.assertTrue(io.cluster_only)
        self.assertIsNone(io.skip)
        self.assertEqual((chunk.skip, chunk.cluster_only), ("no", False))
        self.assertEqual(threads.values, ["default", "1", "2"])
        self.assertEqual(found.factorial, ["sort.io", "sort.threads"])
        self.assertEqual(found.racing, {"first_block": 20, "every": 5,
                                        "alpha": 0.05, "margin_ratio": 1.02})
        self.assertEqual(found.text, GOOD)

    def test_sweep_places_and_more(self):
        found = sweep.parse("""\
machine.raid-chunk 64 | 32 512
  work 512 /mnt/a
  skip destroys
machine.network 10G | 1G
  nodes 10G 10.0.0.[2-17]
  nodes 1G 10.1.0.[2-17]
sort.threads default |
together machine.network=1G sort.threads=2
unverified
""")
        chunk, network, threads = found.parameters
        self.assertEqual([chunk.why_not(value) for value in chunk.values],
                         [None, "destroys", None])
        self.assertEqual(found.places(sweep.WORK),
                         {("machine.raid-chunk", "512"): "/mnt/a"})
        self.assertEqual(list(found.places(sweep.NODES).items()),
                         [(("machine.network", "1G"), "10.1.0.[2-17]"),
                          (("machine.network", "10G"), "10.0.0.[2-17]")])
        self.assertEqual(threads.alternatives, [])
        self.assertEqual(found.together, [{"machine.network": "1G",
                                           "sort.threads": "2"}])
        self.assertTrue(found.unverified)
        self.assertFalse(sweep.parse(GOOD).unverified)

    def test_sweep_races_by_default_if_factorial(self):
        one = "sort.io a | b\nsort.memory a | b\n"
        both = one + "factorial sort.io sort.memory\n"
        self.assertIsNone(sweep.parse(one).racing)
        self.assertEqual(sweep.parse(both).racing, sweep.RACING)
        self.assertIsNone(sweep.parse(both + "racing off\n").racing)
        self.assertEqual(sweep.parse(one + "racing every=10\n").racing,
                         sweep.RACING)

    def test_sweep_refuses(self):
        for text, why, *line in REFUSED:
            with self.subTest(text):
                with self.assertRaises(Failure) as caught:
                    sweep.parse(text, "a.sweep")
                self.assertEqual(caught.exception.status, FILE)
                number = line[0] if line else text.count("\n") + 1
                self.assertEqual(caught.exception.what, f"a.sweep:{number}")
                self.assertIn(why, caught.exception.why)

    def test_sweep_of_nothing(self):
        with self.assertRaisesRegex(Failure, "^a: scaling weak: no ranks"):
            sweep.parse("sort.io auto | mmap\nscaling weak\n", "a")
        with self.assertRaisesRegex(Failure, "^a: varies nothing$"):
            sweep.parse("# only this\n", "a")

    def test_sweep_skipped_factor(self):
        text = ("sort.io a | b\nsort.memory a | b\n  skip no\n"
                "factorial sort.io sort.memory\n")
        with self.assertRaisesRegex(Failure, "a:2: sort.memory is skipped"):
            sweep.parse(text, "a")

    def test_sweep_too_many_combinations(self):
        values = " ".join(str(n) for n in range(1, 32))
        text = (f"sort.io 0 | {values}\nsort.memory 0 | {values}\n"
                "factorial sort.io sort.memory\n")
        with self.assertRaisesRegex(Failure, "1024 combinations"):
            sweep.parse(text)

    def test_sweep_files_unread(self):
        with self.assertRaisesRegex(Failure, "none: No such file"):
            sweep.load("/nowhere/none")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "latin"
            path.write_bytes(b"\xe4\n")
            with self.assertRaisesRegex(Failure, "is not UTF-8") as caught:
                sweep.load(str(path))
            self.assertEqual(caught.exception.status, FILE)
        with self.assertRaisesRegex(Failure, "zero: is too long"):
            sweep.load("/dev/zero")

    def test_sweep_garbage_is_refused_in_order(self):
        """Whatever stands there, a Failure is all that comes of it."""
        rng = random.Random(5)
        words = GOOD.split() + ["|", "\n", "\n  ", '"', "#", "\x00", "é", "="]
        for _ in range(2000):
            text = " ".join(rng.choices(words, k=rng.randrange(1, 25)))
            try:
                sweep.parse(text)
            except Failure as failure:
                self.assertRegex(str(failure), r"^sweep(:\d+)?: .")


class Arguments(unittest.TestCase):
    def test_sweep_sort_arguments(self):
        self.assertEqual(
            sweep.sort_arguments({
                "sort.io": "mmap", "tune.mtu": "9000", "sort.plain": "yes",
                "sort.threads": "default", "machine.raid-chunk": "1M"}),
            ["--io=mmap", "--plain"])
        self.assertEqual(sweep.sort_arguments({"sort.plain": "no"}), [])


class Shipped(unittest.TestCase):
    def test_sweep_sorter_has_reasons(self):
        found = sweep.load(str(RESULTS / "sorter.sweep"))
        for parameter in found.parameters:
            self.assertEqual(parameter.kind, "sort")
            self.assertTrue(parameter.reason, parameter.name)
            self.assertTrue(parameter.source, parameter.name)

    def test_sweep_transports_is_of_ranks(self):
        found = sweep.load(str(RESULTS / "transports.sweep"))
        self.assertEqual([parameter.name for parameter in found.parameters],
                         found.factorial)
        self.assertIsNone(found.racing)
        for parameter in found.parameters:
            self.assertEqual(parameter.kind, "ranks")
            self.assertTrue(parameter.reason, parameter.name)
            self.assertTrue(parameter.source, parameter.name)


if __name__ == "__main__":
    unit.main()
