"""Records: what is acknowledged stays, and what is damaged is refused."""

import fcntl
import functools
import json
import os
import random
import resource
import select
import shutil
import signal
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import trial_samples
import unit  # noqa: F401
from trials.base.failure import FILE, Failure
from trials.record import acceptance, design as designs, schema, store

# What older records have not.
LATER = ("commands", "memory_bytes", "devices", "energy", "measures", "noise",
         "price", "repeats", "timing", "until", "weak_scaling")
KILLS = 25
MOST_A_KILL = 80  # of the 2000 that there are


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="blinksort-record.")
        self.addCleanup(shutil.rmtree, folder)
        self.path = f"{folder}/run"
        self.trials_path = Path(self.path, "trials.jsonl")

    def make(self, **options):
        options = {"sweep_text": trial_samples.SWEEP, "trials": 3, **options}
        return trial_samples.make_record(self.path, **options)

    def lines(self):
        return self.trials_path.read_bytes().splitlines(keepends=True)

    def refused(self, pattern):
        """Readers and the writer refuse the record, and leave it as it is."""
        before = self.snapshot()
        for open_it in (store.read, store.Record.open):
            with self.assertRaisesRegex(Failure, pattern) as caught:
                open_it(self.path)
            self.assertEqual(caught.exception.status, FILE)
        self.assertEqual(self.snapshot(), before)

    def snapshot(self):
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns,
                            path.stat().st_ino)
                for path in Path(self.path).iterdir()}


class Recording(Case):
    def test_record_reads_what_was_written(self):
        design = trial_samples.make_design(trials=4)
        written = []
        with store.Record.create(self.path, design) as made:
            trial_samples.fill(made, alter=lambda t: written.append(dict(t)))
            self.assertEqual(made.trials(), written)
            self.assertIsNone(made.next())
        run = store.read(self.path)
        self.assertEqual(run.design, design)
        self.assertEqual(run.trials, written)
        self.assertEqual(run.notes, [])
        self.assertTrue(run.complete)
        self.assertEqual(run.environment["sessions"], [])

    def test_record_lines_are_as_documented(self):
        self.make()
        for number, line in enumerate(self.lines()):
            trial = json.loads(line)
            self.assertEqual(tuple(trial), schema.TRIAL_KEYS)
            self.assertEqual(trial["trial"], number)

    def test_record_keys_in_their_order(self):
        design = trial_samples.make_design(trials=1)
        with store.Record.create(self.path, design) as made:
            trial = trial_samples.make_trial(design, made.next(), 5e6, 0,
                                             random.Random(1))
            made.append(dict(reversed(trial.items())))
        self.assertEqual(tuple(json.loads(self.lines()[0])),
                         schema.TRIAL_KEYS)

    def test_record_resumed_is_the_same(self):
        self.make(most=7)
        first = self.trials_path.read_bytes()
        run = store.read(self.path)
        self.assertFalse(run.complete)
        self.assertEqual(run.notes, ["stopped in block 2 of 3, after 7 trials"])
        with store.Record.open(self.path) as resumed:
            self.assertEqual(resumed.notes, [])
            self.assertEqual(resumed.next().trial, 7)
            trial_samples.fill(resumed)
        self.assertTrue(self.trials_path.read_bytes().startswith(first))
        resumed = store.read(self.path)
        self.assertTrue(resumed.complete)
        shutil.rmtree(self.path)
        self.make()
        self.assertEqual(store.read(self.path).trials, resumed.trials)

    def test_record_refuses_to_begin_twice(self):
        design = self.make(most=1)
        before = self.snapshot()
        with self.assertRaisesRegex(Failure, "a record already") as caught:
            store.Record.create(self.path, design)
        self.assertEqual(caught.exception.status, FILE)
        self.assertEqual(self.snapshot(), before)

    def test_record_is_one_process_s(self):
        design = trial_samples.make_design()
        with store.Record.create(self.path, design) as made:
            for begin in (lambda: store.Record.open(self.path),
                          lambda: store.Record.create(self.path, design)):
                with self.assertRaisesRegex(Failure, "another blinktrial"):
                    begin()
            trial_samples.fill(made, most=1)
            self.assertEqual(len(store.read(self.path).trials), 1)
            # Or a child that outlives us would keep it.
            self.assertFalse(os.get_inheritable(made._descriptor))
        store.Record.open(self.path).close()

    def test_record_refused_creation_lets_go(self):
        design = self.make(most=1)
        with self.assertRaises(Failure):
            store.Record.create(self.path, design)
        store.Record.open(self.path).close()

    def test_record_wrong_trials_are_not_written(self):
        design = trial_samples.make_design(trials=2)
        rng = random.Random(1)
        with store.Record.create(self.path, design) as made:
            trial = trial_samples.make_trial(design, made.next(), 5e6, 0, rng)
            for change, why in (({"trial": 1}, "trial is 1, .* 0"),
                                ({"block": 1}, "block is 1, .* 0"),
                                ({"position": 2}, "position is 2"),
                                ({"scenario": "x"}, "scenario is 'x'"),
                                ({"configuration": "x"}, "configuration is"),
                                ({"extra": 1}, "its schema in extra")):
                with self.assertRaisesRegex(Failure, why):
                    made.append({**trial, **change})
            short = dict(trial)
            del short["runner"]
            with self.assertRaisesRegex(Failure, "its schema in runner"):
                made.append(short)
            with self.assertRaisesRegex(Failure, "not JSON compliant"):
                made.append({**trial, "whole_ns": float("nan")})
            self.assertEqual(self.lines(), [])
            trial_samples.fill(made)
            with self.assertRaisesRegex(Failure, "more than the design has"):
                made.append(trial)
        self.assertEqual(len(self.lines()), 2)

    def test_record_messages_of_any_bytes(self):
        self.make(most=1, alter=lambda trial: trial.update(
            message="a\nb \udc80 \u2028 é \0"))
        self.assertEqual(len(self.lines()), 1)
        self.assertEqual(store.read(self.path).trials[0]["message"],
                         "a\nb ? \u2028 é \0")


class Durability(Case):
    def test_record_line_is_one_write_then_synced(self):
        calls = []

        def noting(name):
            function = getattr(os, name)

            def call(descriptor, *arguments):
                calls.append((name, descriptor, *arguments))
                return function(descriptor, *arguments)
            return mock.patch.object(os, name, call)

        design = trial_samples.make_design(trials=2)
        with store.Record.create(self.path, design) as made:
            flags = fcntl.fcntl(made._descriptor, fcntl.F_GETFL)
            self.assertTrue(flags & os.O_APPEND)
            with noting("write"), noting("fdatasync"):
                trial_samples.fill(made, most=1)
            line = self.trials_path.read_bytes()
            self.assertEqual(calls, [("write", made._descriptor, line),
                                     ("fdatasync", made._descriptor)])

    def test_record_design_is_synced_before_it_is_named(self):
        calls = []

        def noting(name):
            function = getattr(os, name)

            def call(*arguments):
                what = ""
                if name == "fsync":
                    what = os.path.basename(
                        os.readlink(f"/proc/self/fd/{arguments[0]}"))
                calls.append(f"{name} {what}".strip())
                return function(*arguments)
            return mock.patch.object(os, name, call)

        with noting("fsync"), noting("rename"):
            store.Record.create(self.path,
                                trial_samples.make_design()).close()
        parent = os.path.basename(os.path.dirname(self.path))
        self.assertEqual(calls, [f"fsync {parent}", "fsync design.json.new",
                                 "rename", "fsync run"])

    def test_record_cut_at_every_byte(self):
        """A last line that is not whole is nothing; all others stay."""
        self.make(most=3)
        whole = self.trials_path.read_bytes()
        *_, last = self.lines()
        kept = whole[:-len(last)]
        for size in range(len(kept), len(whole)):
            self.trials_path.write_bytes(whole[:size])
            run = store.read(self.path)
            self.assertEqual(len(run.trials), 2)
            self.assertEqual(self.trials_path.stat().st_size, size)
            with store.Record.open(self.path) as opened:
                self.assertEqual(len(opened.trials()), 2)
                torn = size > len(kept)
                self.assertEqual(len(opened.notes), torn)
                self.assertEqual(len(run.notes), 1 + torn)
                self.assertEqual(self.trials_path.read_bytes(), kept)
        with store.Record.open(self.path) as opened:
            trial_samples.fill(opened, most=1)
        self.assertEqual(self.trials_path.read_bytes(), whole)

    def test_record_full_medium(self):
        """The kernel writes a part of the line: the record stays whole."""
        self.make(most=2)
        before = self.trials_path.read_bytes()
        child = os.fork()
        if child == 0:
            os._exit(self._append_beyond(len(before) + 100))
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        self.assertEqual(self.trials_path.read_bytes(), before)
        with store.Record.open(self.path) as opened:
            self.assertEqual(opened.notes, [])
            trial_samples.fill(opened)

    def _append_beyond(self, limit_bytes):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
        with store.Record.open(self.path) as opened:
            for _ in range(2):
                try:
                    trial_samples.fill(opened, most=1)
                    return 1
                except Failure as failure:
                    if failure.status != FILE or len(opened.trials()) != 2:
                        return 2
        return 0

    def test_record_unsynced_is_not_acknowledged(self):
        design = trial_samples.make_design(trials=3)
        with store.Record.create(self.path, design) as made:
            trial_samples.fill(made, most=1)
            with mock.patch.object(os, "fdatasync",
                                   side_effect=OSError(5, "no")):
                with self.assertRaisesRegex(Failure, "Input/output error"):
                    trial_samples.fill(made, most=1)
            self.assertEqual(len(made.trials()), 1)
            # What is on the medium now can't be known.
            with self.assertRaisesRegex(Failure, "Input/output error"):
                trial_samples.fill(made, most=1)

    def test_record_survives_kills(self):
        """Killed at any moment, nothing acknowledged is lost or doubled."""
        self.make(trials=2000, most=0)
        rng = random.Random(3)
        known = 0
        for _ in range(KILLS):
            acknowledged = self._append_until_killed(
                rng.randrange(1, 4), rng.uniform(0, 0.02))
            found = len(store.read(self.path).trials)
            self.assertGreaterEqual(found, known + acknowledged)
            self.assertLessEqual(found, known + acknowledged + 1)
            known = found
        self.assertGreater(known, KILLS)
        # Each line is the one that the design wants: read() has checked it.
        # The last kill may have left a part of one more.
        whole = [line for line in self.lines() if line.endswith(b"\n")]
        self.assertEqual(len(whole), known)
        self.assertEqual(len(set(whole)), known)

    def _append_until_killed(self, least, after_s):
        """How many trials the child has seen to be on the medium: so many, and
        those of some time more."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            with store.Record.open(self.path) as opened:
                for _ in range(MOST_A_KILL):
                    trial_samples.fill(opened, most=1)
                    os.write(writer, b"a")
                signal.pause()
        os.close(writer)
        acknowledged = 0
        try:
            while acknowledged < least:
                self.assertEqual(os.read(reader, 1), b"a")
                acknowledged += 1
            select.select([], [], [], after_s)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        while data := os.read(reader, 65536):
            acknowledged += len(data)
        os.close(reader)
        return acknowledged


class Damage(Case):
    def damage(self, change):
        lines = self.lines()
        change(lines)
        self.trials_path.write_bytes(b"".join(lines))

    def test_record_damaged_lines(self):
        def swap(lines):
            lines[1], lines[2] = lines[2], lines[1]

        def nan(lines):
            trial = json.loads(lines[1])
            trial["whole_ns"] = float("nan")
            lines[1] = json.dumps(trial).encode() + b"\n"

        def put(line):
            return lambda lines: lines.__setitem__(1, line)

        self.make()
        whole = self.trials_path.read_bytes()
        for name, change, pattern in (
                ("garbage", put(b"{]\n"), "trials.jsonl:2: is damaged: Exp"),
                ("empty", put(b"\n"), "trials.jsonl:2: is damaged: Exp"),
                ("bytes", put(b"\xff\xfe\xff\n"), "trials.jsonl:2: is dam"),
                ("number", put(b"5\n"), "jsonl:2: .* 5 is not of type"),
                ("zeros", put(b"\0\0\0\n"), "trials.jsonl:2: is damaged"),
                ("nan", nan, "trials.jsonl:2: is damaged: NaN"),
                ("lost", lambda lines: lines.pop(1), "jsonl:2: .*trial is 2"),
                ("twice", lambda lines: lines.insert(1, lines[1]),
                 "jsonl:3: .*trial is 1, by the design 2"),
                ("swapped", swap, "jsonl:2: .*trial is 2, by the design 1"),
                ("more", lambda lines: lines.append(
                    lines[-1].replace(b'"trial":14', b'"trial":15')),
                 "jsonl:16: .*is one more than the design has"),
                ("formula", put(self.lines()[1].replace(
                    b'"7a19cff467438"', b'"@SUM(1)"')),
                 "jsonl:2: .*checksum: '@SUM.1.' does not match"),
                ("other", put(self.lines()[1].replace(
                    b'"trial":1,"block":0', b'"trial":1,"block":4')),
                 "jsonl:2: .*block is 4, by the design 0")):
            with self.subTest(name):
                self.trials_path.write_bytes(whole)
                self.damage(change)
                self.refused(pattern)

    def test_record_torn_and_damaged_is_not_cut(self):
        self.make()
        self.damage(lambda lines: lines.__setitem__(1, b"{\n"))
        with open(self.trials_path, "ab") as file:
            file.write(b'{"torn')
        self.refused("trials.jsonl:2: is damaged")

    def test_record_of_another_design(self):
        self.make()
        path = Path(self.path, "design.json")
        design = json.loads(path.read_text())
        other = trial_samples.make_design(
            sweep_text=trial_samples.SWEEP, trials=3, seed=2)
        path.write_text(json.dumps({**other, "run_id": design["run_id"]}))
        self.refused(r"trials.jsonl:\d: is damaged: \w+ is '.*', by the design")

    def test_record_damaged_design(self):
        self.make()
        path = Path(self.path, "design.json")
        design = json.loads(path.read_text())
        for change, pattern in (
                (None, "design.json: is not JSON"),
                ({"schema": "x"}, "is not of schema blinktrial-design-1"),
                ({"order": "x"}, "order: 'x' is not one of"),
                ({"trials": "x"}, "trials: 'x' is not of type"),
                ({"scenarios": []}, r"scenarios: \[\] is too short"),
                ({"configurations": None},
                 "configurations: None is not of type"),
                ({"configurations": [{}]},
                 r"configurations\[0\]: .name. is a req"),
                ({"configurations": [{**design["configurations"][0],
                                      "parameters": {"ranks.count": ""}}]},
                 "ranks.count can't be ''"),
                ({"racing": {}}, "racing: 'first_block' is a required"),
                ({"more": 1}, "Additional .*'more'")):
            path.write_text("{" if change is None
                            else json.dumps({**design, **change}))
            self.refused(pattern)

    def test_record_missing(self):
        self.refused_missing("design.json: No such file")
        self.make()
        self.trials_path.unlink()
        self.refused_missing("trials.jsonl: No such file")
        self.assertFalse(self.trials_path.exists())

    def refused_missing(self, pattern):
        for open_it in (store.read, store.Record.open):
            with self.assertRaisesRegex(Failure, pattern):
                open_it(self.path)

    def test_record_reading_modifies_nothing(self):
        self.make(most=4)
        with open(self.trials_path, "ab") as file:
            file.write(b'{"torn')
        before = self.snapshot()
        run = store.read(self.path)
        self.assertEqual(len(run.trials), 4)
        self.assertIn("was never finished", run.notes[0])
        self.assertEqual(self.snapshot(), before)


class Environment(Case):
    def sessions(self):
        return store.read(self.path).environment["sessions"]

    def test_record_sessions(self):
        changed = [{"key": "cpu.governor", "before": "a", "after": "b"}]
        self.make(most=2)
        self.assertEqual([s["after"] for s in self.sessions()], [None])
        with store.Record.open(self.path) as opened:
            opened.begin_session({"load": 1})
            opened.end_session({"load": 2}, changed)
        first, second = self.sessions()
        self.assertIsNone(first["after"])
        self.assertEqual((second["before"], second["after"],
                          second["changed"]),
                         ({"load": 1}, {"load": 2}, changed))
        self.assertEqual(schema.validate(self.path), [])

    def test_record_half_an_environment_is_not_seen(self):
        self.make(most=2)
        before = self.sessions()
        with store.Record.open(self.path) as opened:
            with mock.patch.object(os, "rename", side_effect=OSError(5, "")):
                with self.assertRaises(Failure):
                    opened.begin_session({"load": 1})
        self.assertEqual(self.sessions(), before)
        self.assertTrue(Path(self.path, "environment.json.new").exists())
        with store.Record.open(self.path) as opened:
            opened.begin_session({"load": 1})
        self.assertEqual(len(self.sessions()), 2)
        self.assertFalse(Path(self.path, "environment.json.new").exists())


class Validation(Case):
    def test_record_valid(self):
        for options in ({}, {"ranks": 3}, {"scenarios": ["cache", "platter"]},
                        {"sweep_text": "tune.mtu 1500 | 9000\n"},
                        {"times": lambda *_: None}, {"most": 4}):
            with self.subTest(options):
                self.make(**options)
                self.assertEqual(schema.validate(self.path), [])
                shutil.rmtree(self.path)

    def test_record_invalid_trials(self):
        def rank(**changes):
            return lambda trial: trial["ranks"][0].update(changes)

        def put(**changes):
            return lambda trial: trial.update(changes)

        def condition(met):
            return lambda trial: trial["conditions"][0].update(met=met)

        self.make(ranks=2)
        whole = self.lines()
        for change, pattern in (
                (put(whole_ns=-1), "whole_ns: -1 is less than the minimum"),
                (put(whole_ns=1.5), "whole_ns: 1.5 is not of type"),
                (put(outcome="good"), "outcome: 'good' is not one of"),
                (put(seed=4), "seed is not that of its block"),
                (put(position=3), r"position is 3, by the design 1"),
                (put(exit_status=1), "outcome ok, but exit_status 1"),
                (put(whole_ns=None), "did not fail, but has no whole_ns"),
                (put(outcome="failed"), "it failed, but has a whole_ns"),
                (put(records=7), "7 records, by the design 1000000"),
                (put(bytes=7), "7 bytes do not hold"),
                (put(ranks=[]), "0 ranks, by the design 2"),
                (put(tuning={"profile": "x", "journal_sha256": None}),
                 "tuning is not that of its configuration"),
                (put(begin_monotonic_ns=1_000_000_500),
                 "began before the previous trial had ended"),
                (rank(rank=1), "not numbered 0, 1, 2"),
                (rank(elapsed_ns=10**9), r"ranks\[0\]: 1000000000 ns elapsed"),
                (rank(process_ns=10**9), "a process of 1000000000 ns in"),
                (rank(phases_ns={"a": 10**9}), "phases of 1000000000 ns"),
                (rank(phases_ns={"a": None}),
                 r"ranks\[0\].phases_ns.a: None is not of type"),
                (rank(more=1), r"ranks\[0\]: Additional .*'more'"),
                (condition(False), "scenario_met, but not by its conditions"),
                (condition(None), "scenario_met, but not by its conditions"),
                (lambda trial: (condition(False)(trial),
                                trial.update(scenario_met=None)),
                 "is null, but a condition was not met"),
                (lambda trial: trial.pop("counters"), "'counters' is a req")):
            trial = json.loads(whole[1])
            change(trial)
            line = json.dumps(trial).encode() + b"\n"
            self.trials_path.write_bytes(b"".join(
                [whole[0], line, *whole[2:]]))
            found = schema.validate(self.path)
            with self.subTest(pattern):
                self.assertRegex("\n".join(found),
                                 f"trials.jsonl:2: .*{pattern}")

    def test_record_invalid_files(self):
        self.make()
        design_path = Path(self.path, "design.json")
        design = json.loads(design_path.read_text())
        for change, pattern in (
                ({"racing": {}}, "design.json: racing: 'first_block' is a"),
                ({"created_unix_ns": "x"}, "created_unix_ns: 'x' is not of"),
                ({"configurations": design["configurations"] * 2},
                 "two configurations have one name"),
                ({"configurations": design["configurations"][1:]},
                 "there is not one reference"),
                ({"configurations": [{**c, "skipped": "no"} for c in
                                     design["configurations"]]},
                 "the reference or the control is skipped"),
                ({"records": None}, "sorts have records, and commands"),
                ({"kind": None}, "sorts have records, and commands"),
                ({"commands": {
                    "directory": "/", "inputs": [], "outputs": [],
                    "stdin": "/dev/null", "ignores_failure": False,
                    "warmup_blocks": 0}}, "sorts have records, and comm")):
            design_path.write_text(json.dumps({**design, **change}))
            self.assertRegex("\n".join(schema.validate(self.path)), pattern)
        design_path.write_text(json.dumps(design))
        environment = Path(self.path, "environment.json")
        environment.write_text("{}")
        self.assertRegex("\n".join(schema.validate(self.path)),
                         "environment.json: 'schema' is a required")
        environment.unlink()
        self.assertEqual(schema.validate(self.path), [])
        with open(self.trials_path, "ab") as file:
            file.write(b"{")
        self.assertEqual(schema.validate(self.path),
                         [f"{self.trials_path}:16: was never finished"])
        self.trials_path.unlink()
        self.assertEqual(schema.validate(self.path), [
            f"{self.trials_path}: No such file or directory"])

    def test_record_from_before_noise_was_watched(self):
        self.make()
        lines = [json.loads(line) for line in self.lines()]
        for line in lines:
            del line["noise"]
        self.trials_path.write_text("".join(
            json.dumps(line) + "\n" for line in lines))
        self.assertEqual(schema.validate(self.path), [])
        self.assertEqual(store.read(self.path).trials, lines)

    def test_record_unreadable_line_ends_the_check(self):
        self.make()
        lines = self.lines()
        lines[3] = b"{]\n"
        self.trials_path.write_bytes(b"".join(lines))
        found = schema.validate(self.path)
        self.assertEqual(len(found), 2)
        self.assertIn("trials.jsonl:4: is not JSON", found[0])
        self.assertIn("after this one were not checked", found[1])

    def test_record_schema_keys_are_the_module_s(self):
        for name, keys in ((schema.TRIAL, schema.TRIAL_KEYS),
                           (designs.SCHEMA,
                            tuple(trial_samples.make_design()))):
            path = Path(schema.FOLDER, f"{name}.schema.json")
            document = json.loads(path.read_text())
            self.assertEqual(tuple(document["properties"]), keys)
            self.assertEqual(tuple(document["required"]),
                             tuple(key for key in keys if key not in LATER))

    def test_acceptance_is_the_schema_s(self):
        """The quick look accepts no document that the library refuses."""
        self.make(ranks=2, alter=lambda trial: trial.update(
            measures=trial_samples.measures(random.Random(1)),
            noise=trial_samples.noise_look(1.0, limit=5.0, over=False),
            energy={"counter_span_ns": 5, "domains_uj": {"package-0": 1}}))
        trial = json.loads(self.lines()[0])
        # One of each list is as good as all.
        for holder in (trial, trial["noise"], trial["noise"]["places"][0]):
            for name in ("ranks", "conditions", "places", "cpus"):
                if name in holder:
                    del holder[name][1:]
        path = Path(schema.FOLDER, f"{schema.TRIAL}.schema.json")
        accepted = acceptance.accepts(json.loads(path.read_text()))
        library = schema.validator(schema.TRIAL)
        self.assertTrue(accepted(trial))
        whole = json.dumps(trial)
        for steps in self.places(trial):
            for other in (None, True, -1, 0, 1.0, 2**60, "", "x", [], [1], {},
                          {"x": 1}, "DELETE", "ADD"):
                document = json.loads(whole)
                *way, last = steps
                holder = functools.reduce(lambda at, step: at[step], way,
                                          document)
                if other == "DELETE":
                    del holder[last]
                elif other == "ADD" and isinstance(holder[last], dict):
                    holder[last]["added"] = "x"
                else:
                    holder[last] = other
                if accepted(document):
                    self.assertTrue(library.is_valid(document),
                                    (steps, other))

    def places(self, document, way=()):
        """The ways to all that is in a document."""
        found = [way] if way else []
        inner = (document.items() if isinstance(document, dict) else
                 enumerate(document) if isinstance(document, list) else ())
        for step, each in inner:
            found += self.places(each, (*way, step))
        return found

    def test_acceptance_knows_its_keywords(self):
        with self.assertRaises(acceptance.Unknown):
            acceptance.accepts({"properties": {"a": {"format": "date"}}})

    def test_record_sequence_valid(self):
        self.make(order="sequence")
        self.assertEqual(schema.validate(self.path), [])
        self.assertEqual(
            [t["configuration"] for t in store.read(self.path).trials[:5]],
            [name for _, name in designs.order(
                store.read(self.path).design, 0)])


if __name__ == "__main__":
    unit.main()
