"""What sorters and ranks say of their runs, as it is recorded."""

import json
import os
import unittest

import unit
from trials.base.programs import Programs
from trials.run import sorter
from trials.run.supervisor import Supervisor

PROGRAMS = Programs(os.environ.get("BIN") or str(unit.ROOT / "bin"))
SHELL = "/bin/sh"


def rank_report(number, **figures):
    """What rank 0 says of a rank."""
    report = {f"{phase}_ns": 10 for phase in sorter.CLUSTER_PHASES}
    report.update({key: 1 for key in sorter.EXCHANGE_COUNTERS})
    return {"rank": number, "begin_ns": 5, "clock_bound_ns": 3, **report,
            **figures}


def node(number, said, **figures):
    """What blinksh says of a node."""
    return {"host": f"n{number}:7300", "rank": number, "state": "exited",
            "status": 0, "elapsed_ns": 900, "user_ns": 1, "system_ns": 2,
            "max_rss_bytes": 4096, "stdout": json.dumps(said), "stderr": "",
            **figures}


class Results(unittest.TestCase):
    def setUp(self):
        self.supervisor = self.enterContext(Supervisor(PROGRAMS))

    def run_cluster(self, report, status=0):
        text = json.dumps(report).replace("'", "'\\''")
        script = f"printf '%s' '{text}'; exit {status}"
        return sorter.run_cluster([SHELL, "-c", script], self.supervisor)[1]

    def test_one_process(self):
        said = {"records": 5, "bytes": 500, "elapsed_ns": 7, "io": "mmap",
                "threads": 2, "phases_ns": {"prepare": 1, "bucket": 6}}
        timed, result = sorter.run(
            ["/bin/echo", json.dumps(said)], self.supervisor)
        self.assertEqual((result.records, result.bytes), (5, 500))
        self.assertEqual(result.whole_ns, timed.whole_ns)
        self.assertEqual(result.documents, [said])
        rank = result.ranks[0]
        self.assertEqual(rank["process_ns"], timed.whole_ns)
        self.assertEqual(rank["phases_ns"], said["phases_ns"])
        self.assertEqual(rank["elapsed_ns"], 7)
        self.assertGreater(rank["minor_faults"], 0)
        self.assertGreater(rank["max_rss_bytes"], 100_000)

    def test_ranks_of_an_mpirun(self):
        documents = [
            {"whole_records": 9, "record_size": 100, "elapsed_ns": 7,
             "mpi_init_ns": 40, "mpi_finalize_ns": 30,
             "ranks": [rank_report(0), rank_report(1)]},
            {"elapsed_ns": 8, "mpi_init_ns": None}]
        texts = [*map(json.dumps, documents), ""]
        _, result = sorter.run_ranks([SHELL, "-c", "exit 0"], self.supervisor,
                                     9.0, ["a", "b", None], lambda: texts)
        self.assertEqual((result.records, result.bytes), (9, 900))
        self.assertEqual(result.documents, [*documents, None])
        self.assertEqual([(rank["rank"], rank["host"])
                          for rank in result.ranks],
                         [(0, "a"), (1, "b"), (2, None)])
        self.assertEqual(
            [(rank["elapsed_ns"], rank["mpi_init_ns"],
              rank["mpi_finalize_ns"]) for rank in result.ranks],
            [(7, 40, 30), (8, None, None), (None, None, None)])
        self.assertEqual(result.ranks[1]["phases_ns"]["exchange"], 10)
        _, result = sorter.run_ranks(
            [SHELL, "-c", "echo no slots >&2; exit 9"], self.supervisor, 9.0,
            [None], lambda: [""])
        self.assertEqual((result.exit_status, result.message, result.records),
                         (9, "no slots", None))

    def test_a_sort_beyond_memory(self):
        said = {"external": {
            "runs": 4, "spilled_bytes": 900, "disk_rates": {"read": 1},
            "predicted_ns": None,
            "predicted_passes": [{"pass": "output", "ns": 70, "limit": "x"}],
            "passes": [{"pass": "runs", "ns": 50, "stages": []},
                       {"pass": "output", "ns": 60, "written_bytes": 8,
                        "stages": [{
                            "stage": "order", "units": 2, "rate": 9,
                            "waits": {"write": {"ns": 5, "count": 1}}},
                            {"stage": "put", "waits": {}}]}]}}
        _, result = sorter.run(
            ["/bin/echo", json.dumps(said)], self.supervisor)
        self.assertEqual(result.ranks[0]["external"], {
            "batches": None, "runs": 4, "resident_runs": None, "merges": None,
            "pieces": None, "spilled_bytes": 900, "reread_bytes": None,
            "scratch_peak_bytes": None,
            "predicted_ns": None, "passes": [
                {"pass": "runs", "ns": 50, "read_bytes": None,
                 "written_bytes": None, "predicted_ns": None, "stages": []},
                {"pass": "output", "ns": 60, "read_bytes": None,
                 "written_bytes": 8, "predicted_ns": 70,
                 "stages": [
                     {"stage": "order", "workers": None, "units": 2,
                      "bytes": None, "median_ns": None, "busy_ns": None,
                      "waits": {"write": {"ns": 5, "count": 1}}},
                     {"stage": "put", "workers": None, "units": None,
                      "bytes": None, "median_ns": None, "busy_ns": None,
                      "waits": {}}]}]})
        _, result = sorter.run(
            ["/bin/echo", json.dumps({"external": None})], self.supervisor)
        self.assertIsNone(result.ranks[0]["external"])

    def test_one_that_says_nonsense(self):
        for text in ("", "null", "[1]", "{", "\udcff"):
            _, result = sorter.run(
                ["/bin/echo", text.encode("utf-8", "surrogateescape")],
                self.supervisor)
            self.assertIsNone(result.records)
            self.assertEqual(result.documents, [None])

    def test_a_failure_has_its_first_line(self):
        _, result = sorter.run(
            [SHELL, "-c", "echo one >&2; echo two >&2; exit 3"],
            self.supervisor)
        self.assertEqual((result.exit_status, result.message), (3, "one"))
        _, result = sorter.run([SHELL, "-c", "exit 3"], self.supervisor)
        self.assertEqual(result.message, "ended with status 3")

    def test_ranks(self):
        first = {"whole_records": 9, "record_size": 100, "elapsed_ns": 800,
                 "threads": 1, "io": "mmap", "minor_faults": 11,
                 "ranks": [rank_report(0, begin_ns=0),
                           rank_report(1, bucket_ns=100, sample_ns=30)]}
        result = self.run_cluster({"whole_ns": 1000, "nodes": [
            node(0, first), node(1, {"threads": 3})]})
        self.assertEqual(result.whole_ns, 1000)
        self.assertEqual((result.records, result.bytes), (9, 900))
        zero, one = result.ranks
        self.assertEqual((zero["host"], one["host"]), ("n0:7300", "n1:7300"))
        self.assertEqual((zero["begin_ns"], one["begin_ns"]), (0, 5))
        self.assertEqual((zero["threads"], one["threads"]), (1, 3))
        self.assertEqual((zero["minor_faults"], one["minor_faults"]),
                         (11, None))
        self.assertEqual(tuple(one["phases_ns"]), sorter.CLUSTER_PHASES)
        # One after the other: their sum is what has passed.
        self.assertEqual((one["phases_ns"]["bucket"],
                          one["phases_ns"]["sample"]), (70, 30))
        self.assertEqual(one["exchange"]["resent_datagrams"], 1)

    def test_of_a_cluster_who_failed_first_is_heard(self):
        result = self.run_cluster({"whole_ns": 1000, "nodes": [
            node(0, None, state="cancelled", status=143, stderr="other"),
            node(1, None, status=4, stderr="blinksort: moon: is full\n")]}, 4)
        self.assertEqual(result.exit_status, 4)
        self.assertEqual(result.message, "n1:7300: blinksort: moon: is full")
        self.assertEqual([rank["phases_ns"] for rank in result.ranks],
                         [None, None])

    def test_of_a_lost_node_its_state_is_told(self):
        result = self.run_cluster({"whole_ns": 1000, "nodes": [
            {"host": "n0", "rank": 0, "state": "lost", "status": 127}]}, 127)
        self.assertEqual(result.message, "n0: lost")
        self.assertIsNone(result.ranks[0]["process_ns"])

    def test_of_no_cluster_at_all(self):
        _, result = sorter.run_cluster(
            [SHELL, "-c", "echo 'blinksh: no key' >&2; exit 3"],
            self.supervisor)
        self.assertEqual((result.exit_status, result.message),
                         (3, "blinksh: no key"))
        self.assertEqual(result.ranks, [])


if __name__ == "__main__":
    unit.main()
