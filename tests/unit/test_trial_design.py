"""Designs: configurations, and the order of trials."""

import collections
import itertools
import unittest

import trial_samples
import unit  # noqa: F401
from trials.base.failure import USAGE, Failure
from trials.record import design as designs, sweep

PLAIN = "sort.threads default | 1 4\ntune.mtu 1500 | 9000\n"
FACTORIAL = """\
sort.io auto | direct
sort.threads default | 1 2
tune.mtu 1500 | 9000
factorial sort.io sort.threads
racing off
"""


def make(text=None, **options):
    return trial_samples.make_design(sweep_text=text, **options)


def names(design):
    return [c["name"] for c in design["configurations"]]


def run_names(design):
    return {name for _, name in designs.order(design, 0)}


def chi_square_p(counts):
    from scipy.stats import chisquare
    return chisquare(counts).pvalue


class Configurations(unittest.TestCase):
    def test_design_without_sweep(self):
        design = make()
        self.assertEqual(design["configurations"], [
            {"name": "reference", "role": "reference", "parameters": {},
             "tuning": None, "skipped": None}])
        self.assertIsNone(design["sweep_text"])

    def test_design_changes_one_at_a_time(self):
        design = make(PLAIN)
        self.assertEqual(names(design), ["reference", "control", "threads=1",
                                         "threads=4", "mtu=9000"])
        reference, control, *variants = design["configurations"]
        self.assertEqual([c["role"] for c in design["configurations"]],
                         ["reference", "control"] + ["variant"] * 3)
        self.assertEqual(reference["parameters"],
                         {"sort.threads": "default", "tune.mtu": "1500"})
        self.assertEqual(reference["tuning"], {"knobs": {"mtu": "1500"}})
        for key in ("parameters", "tuning", "skipped"):
            self.assertEqual(control[key], reference[key])
        for variant in variants:
            changed = [name for name, value in variant["parameters"].items()
                       if value != reference["parameters"][name]]
            self.assertEqual(len(changed), 1)
        self.assertEqual(variants[-1]["tuning"], {"knobs": {"mtu": "9000"}})
        self.assertEqual(design["sweep_text"], PLAIN)

    def test_design_profile(self):
        design = make("tune.profile reference | platter keep\n")
        self.assertEqual([c["tuning"] for c in design["configurations"][1:]],
                         [{"profile": "reference"}, {"profile": "platter"},
                          None])

    def test_design_keep_is_not_asked_for(self):
        design = make("tune.mtu 1500 | keep\ntune.turbo off | on\n")
        self.assertEqual(designs.configuration(design, "mtu=keep")["tuning"],
                         {"knobs": {"turbo": "off"}})
        alone = make("tune.mtu 1500 | keep\n")
        self.assertIsNone(designs.configuration(alone, "mtu=keep")["tuning"])

    def test_design_factorial(self):
        design = make(FACTORIAL)
        combinations = [f"io={io},threads={threads}" for io, threads in
                        itertools.product(("auto", "direct"),
                                          ("default", "1", "2"))]
        self.assertEqual(names(design), ["reference", "control", "mtu=9000",
                                         *combinations[1:]])
        last = design["configurations"][-1]
        self.assertEqual(last["parameters"], {
            "sort.io": "direct", "sort.threads": "2", "tune.mtu": "1500"})

    def test_design_spaces_in_names(self):
        design = make('tune.nic-rings max | "rx 64 tx 64"\n')
        self.assertEqual(names(design)[-1], "nic-rings=rx_64_tx_64")
        self.assertEqual(design["configurations"][-1]["tuning"],
                         {"knobs": {"nic-rings": "rx 64 tx 64"}})

    def test_design_skipped_is_listed_never_run(self):
        design = make(trial_samples.SWEEP)
        chunk = designs.configuration(design, "raid-chunk=1M")
        self.assertEqual(chunk["skipped"],
                         "a new array destroys what is on the disks")
        self.assertIsNone(chunk["tuning"])
        self.assertEqual(run_names(design), set(names(design))
                         - {"raid-chunk=1M"})
        # What can't be set is in no configuration that runs.
        self.assertNotIn("machine.raid-chunk",
                         design["configurations"][0]["parameters"])

    def test_design_cluster_only(self):
        text = PLAIN + "  only cluster\n"
        self.assertEqual(
            designs.configuration(make(text), "mtu=9000")["skipped"],
            "for a cluster only")
        self.assertIn("mtu=9000", run_names(make(text, ranks=2)))

    def test_design_io_belongs_to_the_scenario(self):
        self.assertIn("io=direct", run_names(make("sort.io auto | direct\n")))
        design = make("sort.io auto | direct\n",
                      scenarios=["pagecache", "platter"])
        self.assertEqual(run_names(design), {"reference", "control"})
        self.assertEqual(design["configurations"][-1]["skipped"],
                         "the scenario platter sets it itself")
        self.assertEqual(design["configurations"][0]["parameters"], {})

    def test_design_unsettable(self):
        design = make(PLAIN, unsettable=lambda *pair: {
            ("tune.mtu", "9000"): "no jumbo frames"}.get(pair))
        self.assertEqual(
            designs.configuration(design, "mtu=9000")["skipped"],
            "no jumbo frames")
        self.assertEqual(design["configurations"][0]["tuning"],
                         {"knobs": {"mtu": "1500"}})

    def test_design_unsettable_reference(self):
        design = make(PLAIN, unsettable=lambda *pair: {
            ("tune.mtu", "1500"): "no card"}.get(pair))
        self.assertEqual(designs.configuration(design, "mtu=9000")["skipped"],
                         "no card")
        for configuration in design["configurations"][:4]:
            self.assertNotIn("tune.mtu", configuration["parameters"])
            self.assertIsNone(configuration["tuning"])

    def test_design_unsettable_factor(self):
        design = make(FACTORIAL, unsettable=lambda *pair: {
            ("sort.threads", "default"): "no threads"}.get(pair))
        skipped = {c["name"]: c["skipped"] for c in design["configurations"]}
        self.assertEqual(skipped["io=direct,threads=1"], "no threads")
        self.assertIsNone(skipped["io=direct,threads=default"])
        self.assertEqual(
            designs.configuration(design, "io=direct,threads=default")
            ["parameters"], {"sort.io": "direct", "tune.mtu": "1500"})

    def test_design_refuses(self):
        for options, what in (({"scenarios": []}, "--scenario: names none"),
                              ({"scenarios": ["cache", "cache"]}, "twice"),
                              ({"trials": 0}, "--trials: is below 1"),
                              ({"order": "any"}, "--order: 'any'")):
            with self.assertRaisesRegex(Failure, what) as caught:
                make(**options)
            self.assertEqual(caught.exception.status, USAGE)

    def test_design_shipped_sweeps(self):
        study = sweep.load(str(unit.ROOT / "results/datamation-2011.sweep"))
        for scenarios in (["pagecache"], ["platter", "cache"]):
            for hosts in (None, ["a", "b"]):
                design = designs.make(scenarios, study, 3, 1, hosts=hosts)
                self.assertEqual(len(set(names(design))), len(names(design)))
                skipped = [c["name"] for c in design["configurations"]
                           if c["skipped"]]
                self.assertIn("raid-chunk=1024", skipped)
                self.assertEqual("mtu=1500" in skipped, hosts is None)

    def test_design_targets_of_a_knob(self):
        design = make("tune.mtu:eth0 9000 | 1500\n")
        self.assertEqual(
            designs.configuration(design, "mtu=1500")["tuning"],
            {"knobs": {"mtu:eth0": "1500"}})

    def test_design_places_and_changes_together(self):
        text = ("machine.chunk 64 | 32 512\n  work 512 /a\n  skip no\n"
                "machine.net 10G | 1G\n  nodes 1G a,b\n"
                "sort.threads default |\n"
                "together machine.chunk=512 sort.threads=2\n"
                "together machine.chunk=32 sort.threads=2\n")
        for hosts, why in ((None, "for a cluster only"), (["a", "b"], None)):
            design = designs.make(["cache"], sweep.parse(text), 3, 1,
                                  hosts=hosts)
            reasons = {c["name"]: c["skipped"]
                       for c in design["configurations"]}
            self.assertEqual(reasons, {
                "reference": None, "control": None, "chunk=32": "no",
                "chunk=512": None, "net=1G": why,
                "chunk=512,threads=2": None, "chunk=32,threads=2": "no"})
        found = designs.configuration(design, "chunk=512,threads=2")
        self.assertEqual(found["parameters"], {
            "machine.chunk": "512", "machine.net": "10G", "sort.threads": "2"})


# Of seed 7: block 3, and the first two blocks.
BLOCK_SEED = 6467713808721411
ORDERS = [["reference", "threads=4", "threads=1", "control"],
          ["threads=1", "threads=4", "control", "reference"]]


class Order(unittest.TestCase):
    def test_design_order_is_the_seeds(self):
        """The same on any machine, in any version: a resumed run needs it."""
        design = make("sort.threads default | 1 4\n", seed=7)
        self.assertEqual(designs.block_seed(design, 3), BLOCK_SEED)
        self.assertEqual([name for _, name in designs.order(design, 0)],
                         ORDERS[0])
        self.assertEqual([name for _, name in designs.order(design, 1)],
                         ORDERS[1])

    def test_design_blocks_are_complete(self):
        design = make(trial_samples.SWEEP, scenarios=["pagecache", "cache"])
        pairs = sorted(itertools.product(
            design["scenarios"],
            ["reference", "control", "threads=1", "threads=4",
             "kernel=scalar"]))
        for block in range(50):
            self.assertEqual(sorted(designs.order(design, block)), pairs)

    def test_design_every_order_is_as_likely(self):
        design = make("sort.threads default | 1 4\n", seed=11)
        counts = collections.Counter(
            tuple(name for _, name in designs.order(design, block))
            for block in range(4800))
        self.assertEqual(len(counts), 24)
        self.assertGreater(chi_square_p(list(counts.values())), 0.01)

    def test_design_positions_are_balanced(self):
        design = make("sort.threads default | 1 2 3 4 5\n", seed=3,
                      scenarios=["pagecache", "cache"])
        counts = collections.Counter()
        for block in range(2000):
            counts.update(enumerate(designs.order(design, block)))
        self.assertEqual(len(counts), 14 * 14)
        self.assertGreater(chi_square_p(list(counts.values())), 0.01)

    def test_design_numbers_are_uniform(self):
        """Where a remainder alone would make small ones twice as likely."""
        limit = 2**63 + 2**62
        drawn = designs._bits("some")
        small = sum(designs._below(limit, drawn) < limit // 3
                    for _ in range(3000))
        self.assertLess(abs(small - 1000), 110)

    def test_design_seeds_and_blocks_differ(self):
        text = "sort.threads default | 1 2 3 4 5 6 7 8 9\n"
        one, two = make(text, seed=1), make(text, seed=2)
        self.assertNotEqual(designs.order(one, 0), designs.order(two, 0))
        self.assertNotEqual(designs.order(one, 0), designs.order(one, 1))
        # Else block 11 of seed 1 would be block 1 of seed 11.
        self.assertNotEqual(designs.block_seed(make(seed=1), 11),
                            designs.block_seed(make(seed=11), 1))

    def test_design_sequence(self):
        design = make(PLAIN, order="sequence", scenarios=["a", "b"], trials=3)
        fixed = [(scenario, name) for scenario in "ab"
                 for name in names(design)]
        for block in range(3):
            self.assertEqual(designs.order(design, block), fixed)

    def test_design_dropping_leaves_the_order(self):
        design = make("sort.threads default | 1 2 3 4 5\n")
        whole = designs.order(design, 4)
        left = designs.order(design, 4, {"threads=2", "threads=5"})
        self.assertEqual(left, [pair for pair in whole if pair[1]
                                not in ("threads=2", "threads=5")])
        self.assertEqual(len(left), 5)

    def test_design_schedule(self):
        design = make(PLAIN, trials=4)
        asked = []

        def dropped(block):
            asked.append(block)
            return {"mtu=9000"} if block >= 2 else set()

        found = list(designs.schedule(design, dropped))
        self.assertEqual([planned.trial for planned in found],
                         list(range(5 + 5 + 4 + 4)))
        self.assertEqual([planned.block for planned in found],
                         [0] * 5 + [1] * 5 + [2] * 4 + [3] * 4)
        self.assertEqual([planned.position for planned in found[5:14]],
                         [0, 1, 2, 3, 4, 0, 1, 2, 3])
        self.assertEqual(asked, [0, 1, 2, 3])
        self.assertEqual(
            [planned[3:] for planned in found[10:14]],
            designs.order(design, 2, {"mtu=9000"}))


if __name__ == "__main__":
    unit.main()
