"""What of the published figures follows from others of the same document."""

import math
import unittest

import unit
from trials.record import claims

THIS = "tests/unit/test_published_arithmetic.py"


class Figures:
    """The values of a document by the ids of their claims."""

    def __init__(self, document):
        self.claims = {each["id"]: each
                       for each in claims.load(document)["claims"]}

    def __getattr__(self, name):
        claim = self.claims[name.replace("_", "-")]
        return claim["value"] if "value" in claim else claim["values"]


TRITONSORT, DEPSORT, SPSORT = (Figures(name) for name in (
    "tritonsort", "depsort", "spsort"))

# What each claim that names this test is, as computed from others.
FOLLOWS = {
    "tritonsort": lambda t: {
        "disks": t.nodes * t.node_disks,
        "record-holder-time": 100 * t.record_holder_rate
        / (1000 * t.graysort_rate),
        "node-efficiency": 1000 * t.graysort_rate / t.nodes
        / (t.record_holder_rate / t.record_holder_nodes),
        "disks-a-gigabit": 1000 // 8 // t.disk_rate["7.2k rpm, most"],
        "controller-rate": t.node_disks * t.disk_rate["7.2k rpm, most"],
        "partitions-a-disk": t.partitions_a_node / t.group_disks,
        "partition-bytes": 1000 * t.graysort_bytes / t.nodes
        / t.partitions_a_node,
        "node-buffer": t.stage_bytes["NodeDistributor"] / t.nodes,
        "ld-buffer": math.lcm(t.records, 512),
        "partitions-in-memory": t.group_disks * t.pipeline_memory,
        "network-rate": t.group_disks * t.disk_rate["7.2k rpm, most"]
        * 8 / 1000,
        "flow-rate": 1000 * t.network_rate / t.nodes,
        "window-time": t.receive_window["most"] * 8 / t.flow_rate,
        "visit-time": 1000 * t.receive_window["most"] * 8 / t.flow_rate
        / t.nodes,
        "fewer-partitions": 100 * (
            t.faster_disks["7200 rpm, 158 partitions"]
            / t.faster_disks["7200 rpm, 315 partitions"] - 1),
        "ssd-room": 3 * 80_000 / t.group_disks / t.partitions_a_disk,
        "ssd-rate": t.group_disks * t.sequential_write,
        "gb-a-node-minute": 1000 * t.graysort_rate / t.nodes,
    },
    "depsort": lambda d: {
        "near-gain": d.storage_rate["same switch"]
        / d.storage_rate["another switch"],
        "best-rate": d.storage_rate["same switch"] / 2,
        "rate-share": 100 * d.rate / d.best_rate,
        "contention": 20 / d.node_counts["storage, most"],
    },
    "spsort": lambda s: {
        "switch-rate": 2 * s.global_rate,
        "all-nodes": sum(s.nodes.values()),
        "processors": s.all_nodes * s.node_processors,
        "all-memory": s.all_nodes * s.node_memory,
        "shared-disks": 5 * s.arrays,
        "all-disks": s.shared_disks + s.all_nodes,
        "all-space": (s.shared_disks * 4.5 + s.all_nodes * s.local_disk)
        / 1000,
        "spilled": s.sub_buckets - s.resident,
        "histogram-bytes": 4 * 256 * 4,
        "scatter-bytes": 256 * (4 + 32) / 1024,
        "tie-length": s.records / 2**32,
        "local-share": s.local_rate / s.global_rate,
        "sent-share": 100 * (s.sorting_nodes - 1) / s.sorting_nodes,
        "fewer-nodes-scratch": s.records * 100 / s.fewer_nodes / 1e9,
    },
}


def digits(number) -> int:
    """Decimals that it is written with"""
    return len(repr(number).partition(".")[2])


def agrees(claim: dict, found: float) -> bool:
    """Is the figure found what the document says, as exactly as it says it?"""
    told = claim["value"]
    if claim.get("bound") == "above":
        return found >= told
    if claim.get("bound") == "below":
        return found <= told
    if claim.get("bound") == "about":
        return abs(found - told) <= 0.1 * told
    return abs(found - told) <= 10 ** -digits(told)


class Follows(unittest.TestCase):
    def test_all_are_computed(self):
        for name, follows in FOLLOWS.items():
            self.assertEqual(
                {each["id"] for each in claims.load(name)["claims"]
                 if each["ours"].get("test") == THIS},
                set(follows(Figures(name))))

    def test_figures(self):
        for name, follows in FOLLOWS.items():
            for claim, found in follows(Figures(name)).items():
                with self.subTest(document=name, claim=claim):
                    claim = claims.find(name, claim)
                    ours = claim["ours"]["value"]
                    self.assertEqual(round(found, digits(ours)), ours)
                    self.assertTrue(agrees(claim, found), found)

    def test_agrees(self):
        claim = {"value": 0.8}
        self.assertTrue(agrees(claim, 0.75))
        self.assertFalse(agrees(claim, 0.69))
        self.assertFalse(agrees(claim | {"bound": "above"}, 0.79))
        self.assertFalse(agrees(claim | {"bound": "below"}, 0.81))
        self.assertFalse(agrees(claim | {"bound": "about"}, 0.9))


class Stages(unittest.TestCase):
    """TritonSort's Figure 8"""

    def test_rates(self):
        t = TRITONSORT
        for stage, rate in t.stage_rate.items():
            found = t.stage_bytes[stage] / t.stage_time[stage] * 1000
            self.assertLess(abs(found / rate - 1), 0.01, stage)
            found *= t.stage_workers[stage]
            self.assertLess(abs(found / t.stage_total[stage] - 1), 0.01, stage)


class Passes(unittest.TestCase):
    def test_spsort(self):
        s = SPSORT
        self.assertEqual(1 + s.spilled / s.sub_buckets, s.passes)
        self.assertAlmostEqual(s.resident_bytes["400 nodes"],
                               1000 * s.node_bytes * s.resident
                               / s.sub_buckets, delta=2)
        self.assertEqual(s.records * 100 / s.sorting_nodes / 1e9, s.node_bytes)
        self.assertEqual(s.time - s.sorting_time, s.start_time)

    def test_tritonsort_time(self):
        t = TRITONSORT
        self.assertEqual(round(t.graysort_bytes / t.graysort_rate * 60),
                         t.graysort_time)


if __name__ == "__main__":
    unit.main()
