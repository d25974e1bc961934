#!/usr/bin/python3
"""What a characterisation shows: the profile, tables, pictures, the page."""

import csv
import functools
import io
import json
import os
import random
import shutil
import tempfile
import unittest
from statistics import median

import profile_samples
import unit
from report_page import Page, picture_texts, segments
from trials.base import units
from trials.base.failure import FILE, Failure
from trials.characterise import (curves, disk_map, headline_figures,
                                 machine_profile, measurements, profile_page,
                                 profile_plots, profile_table)
from trials.drawing import style
from trials.record import schema

NASTY = '<script>alert("&amp;")</script>\' onload="x" $x_1$ ]]> \u202e\n\x1b[2J'
MIB, GIB = 1 << 20, 1 << 30


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="blinksort-check.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, measurements.FILE_NAME)

    def write(self, *lines):
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(line if isinstance(line, str)
                            else json.dumps(line) + "\n" for line in lines)

    def refused(self, words):
        with self.assertRaisesRegex(Failure, words) as caught:
            machine_profile.read(self.folder)
        self.assertEqual(FILE, caught.exception.status)
        self.assertEqual(1, len(str(caught.exception).splitlines()))


def measure(part="memory", what="read", samples=(1e9, 2e9, 4e9), why=None,
            **setting):
    if part == "memory":
        setting = {"area_bytes": MIB, "block_bytes": 4096,
                   "threads": 1} | setting
    kinds = {"start": "ns", "extents": "extents", "chase": "ns/access",
             "round trip": "ns"}
    return {"schema": measurements.SCHEMA, "part": part, "what": what,
            "host": None, "setting": setting,
            "unit": None if why else kinds.get(part, kinds.get(
                what, "bytes/s")),
            "samples": [] if why else list(samples), "why": why}


@functools.lru_cache
def shown(how, **options):
    """What this function makes of a characterisation with everything."""
    with tempfile.TemporaryDirectory(prefix="blinksort-check.") as folder:
        return how(profile_samples.make(folder, **options))


def text_of(folder):
    return profile_table.text(machine_profile.read(folder))


def csv_of(folder):
    return profile_table.csv(machine_profile.read(folder))


def page_text_of(folder):
    return profile_page.render(machine_profile.read(folder))


def page_of(**options):
    return Page(shown(page_text_of, **options))


class Figures(Folder):
    def test_middles_and_ends_are_those_of_the_samples(self):
        lines, found = shown(measurements.read), shown(machine_profile.read)
        for line in lines:
            setting = line["setting"]
            if line["what"] != "copy" or "cpu_node" in setting:
                continue
            curve = next(c for c in found.memory if c.name == "copy"
                         and c.threads == setting["threads"])
            spread = dict(curve.points)[setting["area_bytes"]]
            self.assertEqual(
                (median(line["samples"]), min(line["samples"]),
                 max(line["samples"]), len(line["samples"])),
                (spread.middle, spread.low, spread.high, spread.count))
            self.assertLess(spread.first_quartile, spread.third_quartile)

    def test_every_measurement_is_a_point(self):
        found = shown(machine_profile.read)
        self.assertEqual(
            [len(profile_samples.AREAS)] * 8,
            [len(curve.points) for _, group in found.by_threads(found.memory)
             for curve in group])
        self.assertEqual([1, 2, 4, 8, 16], [
            threads for threads, _ in found.thread_rates[0].points])
        self.assertEqual({"the device": 2, "a file on it": 3,
                          "300 files on it": 1}, {
            name: len(each) for name, each in found.transfers.items()})
        self.assertEqual(17, len(found.positions))
        self.assertEqual([1000, 1000], [len(s.samples) for s in found.starts])

    def test_what_was_measured_twice_is_taken_together(self):
        self.write(*(measure(what="random", samples=[x], block_bytes=64)
                     for x in (1, 2, 9)))
        (size, spread), = machine_profile.read(self.folder).memory[0].points
        self.assertEqual((MIB, 3, 2, None), (
            size, spread.count, spread.middle, spread.first_quartile))

    def test_slowest_drive_is_named(self):
        self.write(*(measure("disk", "drive", [rate * 1e6], transfer_bytes=MIB,
                             device=f"/dev/{drive}")
                     for drive, rate in (
                         ("sda", 145), ("sdb", 97), ("sdc", 140), ("sdb", 99),
                         ("sda", 141))))
        found = machine_profile.read(self.folder)
        self.assertEqual(
            [("/dev/sdb", 98e6), ("/dev/sdc", 140e6), ("/dev/sda", 143e6)],
            [(name, spread.middle) for name, spread in found.drives])
        self.assertIn(
            ("slowest drive", "/dev/sdb: 98.00 MB/s, the fastest 143.0 MB/s"),
            headline_figures.rows(found))
        self.assertRegex(text_of(self.folder),
                         r"/dev/sdb +98 \[97, 99\]")

    def test_blocks_are_of_the_area_that_has_them(self):
        self.write(*(measure(what="random", area_bytes=area,
                             block_bytes=block)
                     for area, block in ((MIB, 64), (GIB, 64), (GIB, 4096))))
        found = machine_profile.read(self.folder)
        self.assertEqual(GIB, found.blocks_area_bytes)
        self.assertEqual([64, 4096],
                         [size for size, _ in found.blocks[0].points])
        self.assertEqual([MIB, GIB],
                         [size for size, _ in found.memory[0].points])

    def test_threads_between_have_no_curves_of_their_own(self):
        found = shown(machine_profile.read)
        self.assertEqual(["1 thread", "all 16 CPUs"], [
            words for words, _ in found.by_threads(found.memory)])
        self.assertEqual(
            {(threads, name, 7) for threads in (1, 16) for name in (
                "sequential read", "sequential write", "random read",
                "random write")},
            {(curve.threads, curve.name, len(curve.points))
             for curve in found.blocks})

    def test_few_threads_have_nearly_all_of_the_rate(self):
        for rates, words in (((10, 17, 18), "from 2 threads on"),
                             ((10, 16, 18), "from 4 threads on"),
                             ((18, 17, 20), "from 1 thread on")):
            self.write(*(measure(samples=[rate], threads=threads)
                         for threads, rate in zip((1, 2, 4), rates)))
            self.assertIn(("read, 90 % of the most", words),
                          headline_figures.rows(
                              machine_profile.read(self.folder)))

    def test_one_number_of_threads_is_no_curve(self):
        self.write(measure())
        self.assertEqual([], machine_profile.read(self.folder).thread_rates)

    def test_nodes_are_pairs_and_no_part_of_the_curves(self):
        def pair(what, memory_node, **setting):
            return measure(what=what, cpu_node=1, memory_node=memory_node,
                           area_bytes=GIB, **setting)

        self.write(measure(), pair("chase", 1, samples=[90], placed_bytes=GIB),
                   pair("read", 1, threads=2, distance=10,
                        placed_bytes=2 * GIB),
                   pair("copy", 0, threads=2, samples=[5],
                        placed_bytes=GIB * 199 // 100))
        found = machine_profile.read(self.folder)
        far, near = found.node_pairs
        self.assertEqual((1, 0, 5, None, 0.995), (
            far.cpu_node, far.memory_node, far.copy.middle, far.access,
            round(far.placed, 4)))
        self.assertEqual((1, 1, 90, 2e9, 2, 1), (
            near.cpu_node, near.memory_node, near.access.middle,
            near.read.middle, near.threads, near.placed))
        self.assertEqual([1], found.thread_counts)
        self.assertEqual([MIB], [at for at, _ in found.memory[0].points])

    def test_table_of_nodes_has_a_row_for_each_pair(self):
        text = shown(text_of)
        rows = [line for line in text.splitlines()
                if " of node " in line]
        self.assertEqual(
            ["8 of node 0 node 0 10", "8 of node 0 node 1 21",
             "8 of node 1 node 0 21", "8 of node 1 node 1 10"],
            [" ".join(row.split()[:7]) for row in rows])
        for row in rows:
            self.assertRegex(row, r"100 %$")

    def test_codecs_have_rates_and_what_they_leave(self):
        row = next(line for line in shown(text_of).splitlines()
                   if line.startswith("lz4, ascii records: decompress"))
        self.assertRegex(row, r" +2\.[0-9]+ \[.*\] +41 % of 16\.00 MiB stored$")

    def test_a_pair_needs_both_nodes(self):
        self.write(measure(cpu_node=1))
        self.refused("memory_node")
        self.write(measure(cpu_node=64, memory_node=0))
        self.refused("64")

    def test_a_disks_spread_is_that_of_its_transfers(self):
        self.write(measure("disk", "read", [100], transfer_bytes=4096,
                           transfers=9, transfer_p99_ns=4096 * 10**8,
                           transfer_min_ns=4096 * 10**6,
                           transfer_median_ns=1))
        found = machine_profile.read(self.folder)
        (_, spread), = found.transfers["a file on it" if found.transfers.get(
            "a file on it") else "the device"][0].points
        self.assertEqual((10, 100, 1000), (spread.low, spread.middle,
                                           spread.high))

    def test_writes_to_many_files_tell_how_large_they_must_be(self):
        self.assertIn(("300 files on it, writes by turns, 90 % of the most",
                       "from 10 MiB on"),
                      headline_figures.rows(shown(machine_profile.read)))

    def test_rates_of_a_sort_are_told_if_all_are_known(self):
        lines = [measure("disk", f"stream {way}", [rate * MIB],
                         transfer_bytes=2 * MIB)
                 for way, rate in (("read", 700), ("write", 500),
                                   ("both", 900))]
        self.write(*lines)
        found = machine_profile.read(self.folder)
        self.assertIn(("blinksort --disk-rates", "700M:500M:900M"),
                      headline_figures.rows(found))
        # A disk with an arm has its small reads, too.
        for requests, more in ((110, ":110"), (20000, "")):
            self.write(*lines, measure("disk", "randread", [requests * 4096],
                                       transfer_bytes=4096))
            found = machine_profile.read(self.folder)
            self.assertIn(
                ("blinksort --disk-rates", f"700M:500M:900M{more}"),
                headline_figures.rows(found))
        self.write(*lines[:2])
        self.assertIsNone(machine_profile.read(self.folder).stream_rates)

    def test_the_whole_device_comes_before_a_files_extents(self):
        extent = measure("disk", "extent", offset_bytes=5, length_bytes=7)
        position = measure("disk", "position", offset_bytes=3,
                           device_bytes=9 * GIB)
        for lines, by_extents, at in (((extent,), True, 5),
                                      ((extent, position), False, 3)):
            self.write(*lines)
            found = machine_profile.read(self.folder)
            self.assertEqual((by_extents, [at]), (found.by_extents, [
                p.offset_bytes for p in found.positions]))

    def test_positions_are_in_order_of_place(self):
        found = shown(machine_profile.read)
        places = [p.offset_bytes for p in found.positions]
        self.assertEqual(sorted(places), places)
        words = next(p.description for p in profile_plots.pictures(found)
                     if p.name == "positions")
        for name, offset in (("fastest", places[0]), ("slowest", places[-1])):
            self.assertRegex(words,
                             f"{name} [^;]* at {units.size(offset)}(;|$)")

    def test_surface_tells_how_large_a_transfer_must_be(self):
        found = shown(machine_profile.read)
        self.assertEqual([("at 0", 6), ("at 116.3 GiB", 6)], [
            (curve.name, len(curve.points)) for curve in found.surface[:2]])
        rows = dict(headline_figures.rows(found))
        self.assertEqual(("from 4 MiB on", "from 4 MiB on"), tuple(
            rows[f"disk, random, 90 % of the most, {end} place"]
            for end in ("first", "last")))

    def test_surface_is_compared_with_the_rate_in_order(self):
        place = {"offset_bytes": 0, "device_bytes": 9 * GIB}
        cells = [measure("disk", "surface", [rate], transfer_bytes=size,
                         **place) for size, rate in ((4096, 8), (MIB, 81))]
        for rate, words in ((80, "from 1 MiB on"), (100, "not by 1 MiB")):
            self.write(*cells, measure("disk", "position", [rate], **place))
            self.assertIn(
                ("disk, random, 90 % of the most, last place", words),
                headline_figures.rows(machine_profile.read(self.folder)))

    def test_reasons_stand_where_figures_are_missed(self):
        self.write(measure(why="no memory"), measure(why="no memory"),
                   measure(why="too little", cpu_node=0, memory_node=1),
                   measure("disk", "rate", why="no fio"),
                   measure("network", "round trip", why="no answer"))
        found = machine_profile.read(self.folder)
        reasons = {topic: [(r.what, r.why) for r in found.reasons(topic)]
                   for topic in machine_profile.TOPICS if found.reasons(topic)}
        self.assertEqual({
            "memory": [("memory read, 2 measurements", "no memory")],
            "nodes": [("memory read from node 0 to 1", "too little")],
            "transfers": [("disk rate", "no fio")],
            "positions": [("disk rate", "no fio")],
            "surface": [("disk rate", "no fio")],
            "round-trip": [("round trip", "no answer")],
            "throughput": [("round trip", "no answer")]}, reasons)

    def test_size_of_a_device_from_the_environment(self):
        self.write(measure("extents", "/f", [1], device="/dev/vdb",
                           extents=profile_samples.extents([(GIB, MIB)])))
        file, = machine_profile.read(self.folder).files
        self.assertIsNone(file.device_bytes)
        profile_samples.add_environment(self.folder, storage={
            "drives": {"vdb": {"size_bytes": 8 * GIB}}})
        file, = machine_profile.read(self.folder).files
        self.assertEqual(8 * GIB, file.device_bytes)


class Damaged(Folder):
    def test_which_folder_is_one(self):
        self.assertFalse(machine_profile.is_one(self.folder))
        self.write(measure())
        self.assertTrue(machine_profile.is_one(self.folder))
        with open(os.path.join(self.folder, "design.json"), "w",
                  encoding="utf-8"):
            pass
        self.assertFalse(machine_profile.is_one(self.folder))

    def test_missing_empty_and_torn(self):
        self.refused("No such file")
        self.write()
        self.refused("has no measurement")
        self.write(measure(), '{"schema": "blinktr')
        self.refused(":2: was never finished")
        with open(self.path, "wb") as file:
            file.write(b"\xff\xfe\n")
        self.refused(":1: is damaged: byte 1 is not UTF-8 text")
        with open(self.path, "wb") as file:
            file.write(b'{"schema":' * 3000 + b"1" + b"}" * 3000 + b"\n")
        self.refused(":1: is damaged: it is nested too deeply")

    def test_lines_that_cant_be_shown(self):
        good = measure()
        for change, words in (
                ({"samples": [1, "2"]}, r"samples\[1\]: '2' is not of type"),
                ({"samples": [True]}, r"samples\[0\]: True is not of type"),
                ({"samples": [float("nan")]}, "NaN is not JSON"),
                ({"samples": [float("inf")]}, "Infinity is not JSON"),
                ({"samples": [-1]}, r"samples\[0\]: -1 is less than"),
                ({"samples": [1e300]}, r"samples\[0\]: 1e\+300 is greater"),
                ({"unit": "ns"}, "unit: 'bytes/s' was expected"),
                ({"what": "chase"}, "unit: 'ns/access' was expected"),
                (measure("network", "throughput") | {"unit": "ns"},
                 "unit: 'bytes/s' was expected"),
                (measure("start", "nothing") | {"unit": "bytes/s"},
                 "unit: 'ns' was expected"),
                ({"samples": None}, "samples: None is not of type"),
                ({"samples": [], "unit": None}, "why: None is not of type"),
                ({"setting": None}, "setting: None is not of type"),
                ({"setting": {}}, "'area_bytes' is a required"),
                ({"setting": good["setting"] | {"area_bytes": 0}},
                 "setting.area_bytes: 0 is less"),
                ({"host": 1}, "host: 1 is not of type"),
                ({"more": 1}, "Additional .*'more'"),
                (measure("disk", "read"), "'transfer_bytes' is a req"),
                (measure("disk", "read", transfer_bytes=1,
                         transfer_p99_ns="x"), "transfer_p99_ns: 'x' is not"),
                (measure("disk", "position", offset_bytes=0),
                 "'device_bytes' is a required"),
                (measure("disk", "surface", offset_bytes=0, device_bytes=1),
                 "'transfer_bytes' is a required"),
                (measure("disk", "read", device=1), "device: 1 is not of"),
                (measure("extents", "/f"), "'extents' is a required"),
                (measure("codec", "compress", codec="lz4", records="ascii",
                         plain_bytes=1), "'stored_bytes' is a required"),
                (measure("codec", "compress", codec="lz4", records="ascii",
                         plain_bytes=0, stored_bytes=1),
                 "plain_bytes: 0 is less"),
                (measure("disk", "read", transfer_bytes=1,
                         transfer_p99_ns=1e-300), "p99_ns: 1e-300 is not of"),
                (measure("disk", "drive", transfer_bytes=1),
                 "'device' is a required"),
                (measure("disk", "drive", transfer_bytes=1, device=None),
                 "device: None is not of"),
                (measure(why="no", cpu_node=0),
                 "'memory_node' is a dependency"),
                (measure("extents", "/f", extents=[{}]),
                 r"extents\[0\]: 'logical_bytes' is a req")):
            with self.subTest(words):
                self.write(good, good | change)
                self.refused(f":2: is damaged: .*{words}")

    def test_a_damaged_environment(self):
        self.write(measure())
        for text in ("{", '{"schema": "blinktrial-environment-1", '
                          '"sessions": [{}]}'):
            with open(os.path.join(self.folder, "environment.json"), "w",
                      encoding="utf-8") as file:
                file.write(text)
            self.refused("environment.json")

    def test_validate(self):
        profile_samples.make(self.folder + "/good")
        self.assertEqual([], schema.validate(self.folder + "/good"))
        for line, words in (
                (measure() | {"unit": "furlong"}, ":2: unit: 'furlong'"),
                (measure() | {"unit": None}, ":2: unit: None is not"),
                (measure() | {"why": "no"}, ":2: why: 'no' is not"),
                (measure() | {"part": "heart"}, ":2: part: 'heart'"),
                (measure(area_bytes=0), ":2: setting.area_bytes: 0 is less"),
                ("{\n", ":2: is not JSON"), ("{", ":2: was never finished")):
            with self.subTest(words):
                self.write(measure(), line)
                complaints = schema.validate(self.folder)
                self.assertEqual([], [each for each in complaints
                                      if ":2: " not in each])
                self.assertIn(words, "\n".join(complaints))
        self.write()
        self.assertIn("has no measurement", schema.validate(self.folder)[0])


class Tables(Folder):
    def test_text_fits_a_terminal(self):
        for options in ({}, {"hosts": tuple(
                f"node{i:02}.a.long.name.example.org:7300"
                for i in range(2, 17))}):
            text = shown(text_of, **options)
            self.assertLessEqual(max(map(len, text.splitlines())), 100)
            self.assertIn("100.1 to 49.61 MB/s", text)

    def test_facts_that_were_told(self):
        with open(os.path.join(self.folder, "environment.json"), "w",
                  encoding="utf-8") as file:
            json.dump({"schema": "blinktrial-environment-1", "sessions": [{
                "begin_unix_ns": 0, "after": None, "changed": [], "before": {
                    "facts": {"switch": 40 * "long ", "GPU": "\x1b"}}}]}, file)
        self.write(measure())
        text = text_of(self.folder)
        self.assertRegex(text, r"^facts    switch: long long")
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertNotIn("\x1b", text)
        self.assertIn("switch", page_text_of(self.folder))

    def test_text_says_what_was_not_measured(self):
        text = shown(text_of, without=("disk", "network"))
        self.assertIn("Not measured:\n  disk rate: fio is not installed\n"
                      "  round trip: node b:7300: no answer\n", text)

    def test_csv_has_every_sample(self):
        options = {"without": ("network",)}
        lines = shown(measurements.read, **options)
        text = shown(csv_of, **options)
        rows = list(csv.DictReader(io.StringIO(text)))
        found = {}
        for row in rows:
            found.setdefault((row["part"], row["what"]), []).append(row)
        starts = next(x for x in lines if x["what"] == "nothing")
        self.assertEqual(
            [(str(i), str(x)) for i, x in enumerate(starts["samples"])],
            [(row["sample"], row["value"])
             for row in found["start", "nothing"]])
        refused, = found["network", "round trip"]
        self.assertEqual(("", "node b:7300: no answer"),
                         (refused["value"], refused["why"]))
        self.assertEqual(13, len(found["extents", "/data/pieces"]))
        self.assertEqual(str(21 * GIB),
                         found["extents", "/data/in"][0]["physical_bytes"])
        memory = [row for row in rows if row["part"] == "memory"]
        self.assertEqual(sum(len(x["samples"]) for x in lines
                             if x["part"] == "memory"), len(memory))
        self.assertTrue(all(row["area_bytes"] for row in memory))


class Pages(Folder):
    def test_every_picture_in_both_widths(self):
        for options in ({}, {"hosts": ("a:7300", "b:7300", "c:7300")}):
            page = page_of(**options)
            self.assertEqual(
                [f"{topic}-{width}" for topic in machine_profile.TOPICS
                 if topic != "nodes" for width in (style.WIDE, style.NARROW)],
                list(page.pictures()))

    def test_nodes_are_a_table(self):
        page = page_of()
        self.assertNotIn("no measurement of it is there", page.text)
        for words in ("8 of node 0", "8 of node 1"):
            self.assertEqual(2, page.text.count(words))

    def test_nothing_comes_from_elsewhere(self):
        page = page_of()
        self.assertEqual([], page.outside())
        self.assertEqual([], page.missing_references())
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertLess(len(page.source), 2_000_000)

    def test_without_a_part_the_reason_is_in_its_place(self):
        page = page_of(without=("memory", "codec", "disk", "extents",
                                "network", "start"))
        self.assertEqual({}, page.pictures())
        for topic in machine_profile.TOPICS:
            self.assertIn(profile_plots.TITLES[topic], page.text)
        for words, count in (("memory read: no memory for the areas", 2),
                             ("disk rate: fio is not installed", 4),
                             ("/data/in: the file system does not tell", 2),
                             ("round trip: node b:7300: no answer", 3),
                             ("no measurement of it is there", 6)):
            self.assertEqual(count, page.text.count(words), words)

    def test_every_sample_of_a_time_is_drawn(self):
        roots = page_of().pictures()
        for width in (style.WIDE, style.NARROW):
            strokes = segments(roots[f"start-{width}"])
            self.assertEqual(2000, sum(s for s in strokes if s > 300)
                             + sum(self.beyond(roots[f"start-{width}"])))

    def beyond(self, root):
        return [int(text.split()[0]) for text in picture_texts(root)
                if text.endswith(" beyond")]

    def test_curves_are_named_where_they_end(self):
        roots = page_of().pictures()
        for name, words in (
                ("memory", ("read", "write", "copy", "random lines",
                            "1 thread", "all 16 CPUs")),
                ("access", ("1 thread", "all 16 CPUs")),
                ("transfers", ("sequential read", "random read",
                               "sequential write", "/dev/sda"))):
            for width in (style.WIDE, style.NARROW):
                texts = picture_texts(roots[f"{name}-{width}"])
                self.assertEqual([], [w for w in words if w not in texts])

    def test_caches_are_marked_if_the_environment_has_them(self):
        for caches, wanted in (
                (None, []), ("?", []),
                ([{"level": 1, "type": "Data", "size_bytes": 32768},
                  {"level": 1, "type": "Instruction", "size_bytes": 65536},
                  {"level": 3, "type": "Unified", "size_bytes": 32 * MIB}],
                 ["L1 32K", "L3 32M"])):
            found = machine_profile.Profile(
                shown(measurements.read),
                {"sessions": [{"before": {"cpu": {"caches": caches}}}]})
            picture = next(p for p in profile_plots.pictures(found)
                           if p.name == "access")
            texts = picture_texts(Page(picture.svg()).pictures()[
                "access-880"])
            self.assertEqual(wanted, [t for t in texts if t[0] == "L"])

    def test_small_and_odd_ones(self):
        """One sample each, zeros, a file without places: still a page."""
        self.write(
            measure(samples=[0]), measure(what="chase", samples=[5]),
            measure(what="random", samples=[0], block_bytes=64),
            measure(what="random", samples=[1], block_bytes=128),
            measure("disk", "read", [0], transfer_bytes=4096,
                    transfer_min_ns=0),
            measure("disk", "extent", [0], offset_bytes=0, length_bytes=1),
            measure("start", "nothing", [3]),
            measure("extents", "/f", [1],
                    extents=profile_samples.extents([(None, 5)])),
            measure("extents", "/g", [1],
                    extents=profile_samples.extents([(0, 5)])),
            measure("extents", "/empty", [0], extents=[]),
            measure("network", "round trip", [1]),
            measure("network", "throughput", [0]))
        page = Page(page_text_of(self.folder))
        self.assertEqual(18, len(page.pictures()))
        self.assertIn("places not told", page.text)
        self.assertIn("places not told", text_of(self.folder))

    def test_text_of_a_record_is_never_markup(self):
        lines = shown(measurements.read)
        self.write(*(line | {"host": NASTY, "what": NASTY
                             if line["part"] in ("extents", "start")
                             else line["what"]} for line in lines),
                   measure("disk", "rate", why=NASTY))
        page = Page(page_text_of(self.folder))
        self.assertEqual([], page.outside())
        self.assertEqual(24, len(page.pictures()))
        self.assertNotIn("\x1b", page.source)
        self.assertNotIn("\x1b", text_of(self.folder))

    def test_a_file_in_many_pieces_is_small(self):
        rng = random.Random(3)
        pieces = profile_samples.extents(
            [(rng.randrange(GIB) * 512, 4096) for _ in range(30_000)])
        self.write(measure("extents", "/f", [1], extents=pieces))
        self.assertLess(len(page_text_of(self.folder)), 1_000_000)


class Drawing(unittest.TestCase):
    def test_names_keep_their_order_and_distance(self):
        rng = random.Random(4)
        for _ in range(300):
            heights = sorted(rng.uniform(0, 230)
                             for _ in range(rng.randrange(1, 7)))
            placed = curves.apart(heights, 13, 230)
            self.assertTrue(all(b - a >= 13 - 1e-9
                                for a, b in zip(placed, placed[1:])))
            self.assertLessEqual(placed[-1], 230 + 1e-9)
            self.assertGreaterEqual(placed[0], 0)
        self.assertEqual([1, 50], curves.apart([1, 50], 13, 230))

    def test_pieces_are_where_they_lie(self):
        pieces = profile_samples.extents([(500, 100), (0, 100), (100, 50),
                                          (999, 1)])
        self.assertEqual(
            [(0, 15), (50, 60), (98.5, 100)],
            disk_map.covered(pieces, (0, 1000), 100))
        # One that is too short to be seen.
        self.assertEqual([(50, 51.5)], disk_map.covered(
            profile_samples.extents([(500, 1)]), (0, 1000), 100))


if __name__ == "__main__":
    unit.main()
