"""One timed run: what is timed, what the process is given, how it may end."""

import os
import resource
import signal
import tempfile
import threading
import time
import unittest
from unittest import mock

import unit
from trials.base.failure import Failure
from trials.base.programs import Programs
from trials.run import timed
from trials.run.supervisor import Supervisor

PROGRAMS = Programs(os.environ.get("BIN") or str(unit.ROOT / "bin"))
SHELL = "/bin/sh"
BASH = "/bin/bash"


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Timed(unittest.TestCase):
    def setUp(self):
        self.supervisor = self.enterContext(Supervisor(PROGRAMS))
        self.supervisor.counts_events = True

    def shell(self, script, **options):
        return timed.time_command([SHELL, "-c", script], self.supervisor,
                                  **options)

    def assert_refused(self, line, words, **options):
        with self.assertRaises(Failure) as caught:
            timed.time_command(words, self.supervisor, **options)
        self.assertEqual(str(caught.exception), line)

    def test_output_and_status_are_brought_back(self):
        done = self.shell("echo said; echo complained >&2; exit 7")
        self.assertEqual(done.stdout, "said\n")
        self.assertEqual(done.stderr, "complained\n")
        self.assertEqual(done.exit_status, 7)

    def test_a_signal_is_a_status_as_in_the_shell(self):
        self.assertEqual(self.shell("kill -SEGV $$").exit_status,
                         128 + signal.SIGSEGV)

    def test_environment_is_the_same_for_all(self):
        os.environ["BLINKTRIAL_TEST"] = "x" * 1000
        self.addCleanup(os.environ.pop, "BLINKTRIAL_TEST")
        done = timed.time_command(["/usr/bin/env"], self.supervisor)
        self.assertEqual(sorted(done.stdout.split()),
                         ["LC_ALL=C", "PATH=/usr/local/bin:/usr/bin:/bin"])

    def test_it_gets_no_descriptor_of_ours(self):
        """As that of the record, which it would keep locked."""
        with tempfile.NamedTemporaryFile() as file:
            done = self.shell("ls -l /proc/self/fd")
        self.assertNotIn(file.name, done.stdout)
        self.assertIn(" 0 -> /dev/null\n", done.stdout)
        self.assertIn(" 1 -> /memfd:stdout", done.stdout)
        self.assertRegex(done.stdout, r" 2 -> pipe:\[\d+\]\n")
        self.assertEqual(done.stdout.count(" -> "), 4)  # and that of ls

    def test_signals_that_python_ignores_are_not_ignored(self):
        done = self.shell("grep SigIgn /proc/self/status")
        ignored = int(done.stdout.split()[1], 16)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            self.assertFalse(ignored >> (number - 1) & 1)

    def test_no_signal_is_blocked(self):
        """As those are in the process that starts it."""
        done = self.shell("grep SigBlk /proc/self/status")
        self.assertEqual(int(done.stdout.split()[1], 16), 0)

    def test_it_has_a_session_and_a_group_of_others(self):
        """What a terminal sends does not reach it, nor what it sends its own
        group those who time it."""
        done = self.shell("echo $$; cut -d' ' -f5,6 /proc/$$/stat")
        pid, group, session = map(int, done.stdout.split())
        self.assertEqual(group, pid)
        self.assertNotIn(session, (pid, os.getsid(0)))
        done = self.shell("trap '' TERM; kill 0; echo on")
        self.assertEqual(done.stdout, "on\n")

    def test_time_spans_all_of_it(self):
        before_ns = time.monotonic_ns()
        done = self.shell("sleep 0.05")
        after_ns = time.monotonic_ns()
        self.assertGreaterEqual(done.whole_ns, 50_000_000)
        self.assertGreaterEqual(done.begin_monotonic_ns, before_ns)
        self.assertLessEqual(done.end_monotonic_ns, after_ns)
        self.assertGreaterEqual(done.runner_user_ns, 0)
        self.assertGreaterEqual(done.runner_system_ns, 0)

    def test_measures_are_of_the_process_alone(self):
        self.shell("head -c 50000000 /dev/zero | tail -c 40000000 | wc -c")
        done = self.shell(":")
        self.assertLess(done.measures["max_rss_bytes"], 20 << 20)
        # Python and its modules are larger.
        self.assertGreater(resource.getrusage(
            resource.RUSAGE_SELF).ru_maxrss << 10,
            2 * done.measures["max_rss_bytes"])

    def test_measures_are_of_all_that_it_starts(self):
        done = self.shell("(head -c 50000000 /dev/zero | tail -c 40000000"
                          " | wc -c)")
        self.assertGreater(done.measures["max_rss_bytes"], 40_000_000)
        self.assertGreater(done.measures["minor_faults"], 10_000)
        self.assertGreater(done.measures["user_ns"]
                           + done.measures["system_ns"], 5_000_000)

    def test_measures_of_block_devices(self):
        with tempfile.NamedTemporaryFile(dir=unit.ROOT / "build") as file:
            write = ("dd if=/dev/zero bs=64K count=16 oflag=direct "
                     f"conv=notrunc of={file.name}")
            if self.shell(write).exit_status:
                self.skipTest("direct writes are refused here")
            done = self.shell(f"({write}; exit 0)")
        # A filesystem may add blocks of its own.
        self.assertGreaterEqual(done.measures["written_bytes"], 1 << 20)
        self.assertLess(done.measures["written_bytes"], 2 << 20)
        self.assertEqual(self.shell(":").measures["written_bytes"], 0)

    def test_measures_have_each_counter(self):
        measures = self.shell(":").measures
        self.assertEqual(tuple(measures), (*timed.FIGURES, "counters"))
        self.assertEqual(tuple(measures["counters"]), timed.COUNTERS)
        facts = timed.facts(PROGRAMS, None)
        unknown = None in measures["counters"].values()
        self.assertEqual(unknown, facts["not_counted"] is not None)
        self.supervisor.counts_events = False
        self.assertEqual(self.shell(":").measures["counters"],
                         dict.fromkeys(timed.COUNTERS))

    def test_events_are_counted_if_they_are_asked_for(self):
        """Those that any machine has: the processor's may not be here."""
        with open("/proc/sys/kernel/perf_event_paranoid",
                  encoding="ascii") as file:
            if os.geteuid() and int(file.read()) > 2:
                self.skipTest("perf_event_paranoid is above 2")
        script = "for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done"
        with mock.patch.multiple(timed, COUNT="--count=page_faults",
                                 COUNTERS=("page_faults",)):
            measures = self.shell(script).measures
            found = measures["counters"]["page_faults"]
            # Those of a process before its program do not count.
            self.assertLessEqual(found, measures["minor_faults"]
                                 + measures["major_faults"])
            self.assertGreater(found, measures["minor_faults"] // 2)
            # Nor do the starts before the one that is timed.
            measures = timed.time_command(
                [PROGRAMS.path("blinkprobe"), "nothing"],
                self.supervisor).measures
            found = measures["counters"]["page_faults"]
            self.assertLess(measures["minor_faults"], 2 * found + 10)
            self.supervisor.counts_events = False
            measures = self.shell(script).measures
            self.assertIsNone(measures["counters"]["page_faults"])

    def test_of_a_short_command_nothing_is_counted(self):
        """Which would make its start longer."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "blinkprobe")
            with open(path, "w", encoding="ascii") as file:
                file.write("""#!/bin/sh
                    echo '{"counters": {"cycles": 5, "instructions": null},
                           "counted_in": "user space",
                           "not_counted": "why"}'\n""")
            os.chmod(path, 0o700)
            programs = Programs(folder)
            for shortest_ns in (None, 10_000_000):
                self.assertEqual(
                    timed.countable(programs, shortest_ns),
                    {"counted_in": "user space", "not_counted": "why"})
            found = timed.countable(programs, 9_999_999)
        self.assertIsNone(found["counted_in"])
        self.assertIn("shorter than 10 ms", found["not_counted"])

    def test_facts_before_the_first_trial(self):
        facts = timed.facts(PROGRAMS, None)
        start_ns = facts["start_ns"]
        self.assertTrue(0 < start_ns["lower_quartile"] <= start_ns["median"]
                        <= start_ns["upper_quartile"])
        self.assertEqual(facts["starts"], timed.STARTS)

    def test_a_directory_is_where_it_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.shell("pwd -P; cd /", directory=folder)
                             .stdout, os.path.realpath(folder) + "\n")
            script = os.path.join(folder, "own")
            with open(script, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\necho own\n")
            os.chmod(script, 0o700)
            done = timed.time_command(["./own"], self.supervisor,
                                      directory=folder)
            self.assertEqual(done.stdout, "own\n")
            self.assert_refused(f"{folder}/none: No such file or directory",
                                ["/bin/true"], directory=f"{folder}/none")

    def test_a_name_is_looked_for_in_path(self):
        done = timed.time_command(["sh", "-c", "echo $X"], self.supervisor,
                                  environment={"PATH": "/bin", "X": "5"})
        self.assertEqual(done.stdout, "5\n")
        self.assert_refused("sh: no such program in PATH (/nowhere)",
                            ["sh"], environment={"PATH": "/nowhere"})

    def test_standard_input_is_a_file(self):
        done = self.shell("read line; echo $line", stdin="/proc/version")
        self.assertTrue(done.stdout.startswith("Linux version"))
        self.assertEqual(self.shell("cat").stdout, "")
        self.assert_refused("/nowhere: No such file or directory",
                            ["/bin/cat"], stdin="/nowhere")

    def test_output_may_be_discarded(self):
        done = self.shell("echo said; [ -c /dev/stdout ]; echo $? >&2",
                          keeps_stdout=False)
        self.assertEqual((done.stdout, done.stderr), ("", "0\n"))

    def test_of_any_amount_of_output_the_beginning_is_kept(self):
        script = "echo begin >&2; {} | tee /dev/stderr".format(
            "head -c 200000000 /dev/zero")
        done = self.shell(script, keeps_stdout=False)
        self.assertEqual(done.exit_status, 0)
        self.assertEqual(len(done.stderr), timed.STDERR_BYTES)
        self.assertEqual(timed.message_of(done), "begin")
        self.assertLess(resource.getrusage(
            resource.RUSAGE_SELF).ru_maxrss << 10, 150_000_000)

    def test_the_last_of_its_words_is_not_lost(self):
        for _ in range(20):
            done = self.shell("echo one >&2; echo last; exec echo two >&2")
            self.assertEqual((done.stdout, done.stderr),
                             ("last\n", "one\ntwo\n"))

    def test_who_reads_the_terminal_finds_none(self):
        done = self.shell("exec 2>&1; cat; cat /dev/tty")
        self.assertNotEqual(done.exit_status, 0)
        self.assertIn("/dev/tty", done.stdout)

    def test_what_it_leaves_is_ended_and_told(self):
        done = self.shell("sleep 1000 & echo $!; setsid sleep 1000 & echo $!")
        self.assertEqual(done.exit_status, 0)
        self.assertEqual(done.measures["left_processes"], 2)
        self.assertEqual(timed.message_of(done),
                         "left 2 processes, which were ended")
        for pid in done.stdout.split():
            self.assertFalse(is_running(int(pid)))
        self.assertEqual(timed.message_of(self.shell("sleep 1000 &")),
                         "left 1 process, which was ended")

    def test_one_that_stops_is_ended(self):
        done = self.shell("echo on; kill -STOP $$; echo off")
        self.assertEqual(done.stdout, "on\n")
        self.assertEqual(done.exit_status, 128 + signal.SIGSTOP)
        self.assertEqual(timed.message_of(done),
                         "was stopped by SIGSTOP, and ended")

    def test_how_it_ended_is_a_line(self):
        for script, line in (
                ("kill -KILL $$", "killed by SIGKILL"),
                ("echo why >&2; kill -SEGV $$", "killed by SIGSEGV"),
                ("echo why >&2; exit 139", "why"),
                ("exit 3", "ended with status 3"),
                ("echo well >&2", "well"), (":", None)):
            self.assertEqual(timed.message_of(self.shell(script)), line)
        done = self.shell("exec sleep 1000", timeout_s=0.05)
        self.assertEqual(timed.message_of(done), "did not end within 0.05 s")

    def test_what_can_not_be_started_is_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "own")
            with open(path, "w", encoding="ascii") as file:
                file.write("echo\n")
            self.assert_refused(f"{path}: cannot start: Permission denied",
                                [path])
            os.chmod(path, 0o700)
            self.assert_refused(f"{path}: cannot start: Exec format error",
                                [path])
        self.assert_refused("/nowhere/blinksort: cannot start: "
                            "No such file or directory",
                            ["/nowhere/blinksort"])
        self.assertEqual(self.shell("echo on").stdout, "on\n")

    def test_nothing_is_left_open(self):
        self.shell(":")
        before = os.listdir("/proc/self/fd")
        for _ in range(3):
            self.shell("echo said; echo complained >&2")
            with self.assertRaises(Failure):
                timed.time_command(["/nowhere"], self.supervisor)
            with self.assertRaises(Failure):
                timed.time_command([SHELL], self.supervisor, stdin="/nowhere")
        self.assertEqual(os.listdir("/proc/self/fd"), before)

    def test_a_probe_that_fails_itself_is_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "blinkprobe")
            for script, line in (
                    ("exit 5", "blinkprobe: ended with status 5"),
                    ("kill -KILL $$", "blinkprobe: killed by signal 9"),
                    ("echo '{}'", "blinkprobe: ended with status 0"),
                    ("echo blinkprobe: memory: none >&2", "memory: none"),
                    ("echo nonsense >&2", "blinkprobe: nonsense")):
                with open(path, "w", encoding="ascii") as file:
                    file.write(f"#!/bin/sh\n{script}\n")
                os.chmod(path, 0o700)
                with Supervisor(Programs(folder)) as supervisor, \
                        self.assertRaises(Failure) as caught:
                    timed.time_command([SHELL], supervisor)
                self.assertEqual(str(caught.exception), line)

    def test_a_hung_one_is_ended(self):
        done = self.shell("exec sleep 1000", timeout_s=0.05)
        self.assertEqual(done.exit_status, timed.STATUS_TIMED_OUT)

    def test_also_one_that_ignores_it(self):
        """And what it leaves goes with us."""
        script = "trap '' TERM; sleep 1000 & echo $!; wait; wait"
        for timeout_s in (0.05, 0.5, 5, 50):
            with Supervisor(PROGRAMS) as supervisor:
                done = timed.time_command([BASH, "-c", script], supervisor,
                                          timeout_s=timeout_s)
            if done.stdout:  # else it had not come so far
                break
        self.assertEqual(done.exit_status, timed.STATUS_TIMED_OUT)
        until_s = time.monotonic() + 100
        while is_running(int(done.stdout)):
            self.assertLess(time.monotonic(), until_s)
            time.sleep(0.01)

    def test_one_after_a_hung_one_has_its_own_time(self):
        self.shell("exec sleep 1000", timeout_s=0.01)
        self.assertEqual(self.shell("sleep 0.1").exit_status, 0)

    def test_a_signal_to_us_ends_it_and_is_noted(self):
        def end_it():
            while not self.supervisor.pid:
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGTERM)

        ender = threading.Thread(target=end_it)
        ender.start()
        done = self.shell("exec sleep 1000")
        ender.join()
        self.assertEqual(self.supervisor.signal, signal.SIGTERM)
        self.assertEqual(done.exit_status, 128 + signal.SIGTERM)

    def test_a_signal_that_does_not_interrupt_the_wait_ends_it(self):
        def end_it():
            while not self.supervisor.pid:
                time.sleep(0.001)
            # This thread gets it: the wait of the other goes on, as it does
            # when a signal comes just before it begins.
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

        ender = threading.Thread(target=end_it)
        ender.start()
        done = self.shell("exec sleep 1000", timeout_s=20)
        ender.join()
        self.assertEqual(self.supervisor.signal, signal.SIGTERM)
        self.assertEqual(done.exit_status, 128 + signal.SIGTERM)

    def test_what_nohup_ignores_stays_ignored(self):
        self.supervisor.__exit__()
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        with Supervisor(PROGRAMS) as supervisor:
            os.kill(os.getpid(), signal.SIGHUP)
            self.assertEqual(supervisor.signal, 0)
        self.supervisor.__enter__()


if __name__ == "__main__":
    unit.main()
