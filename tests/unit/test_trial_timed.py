"""One timed run: what is timed, what the process is given, how it may end."""

import os
import signal
import tempfile
import threading
import time
import unittest

import unit
from trials.base.failure import Failure
from trials.run import timed
from trials.run.supervisor import Supervisor

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
        self.supervisor = self.enterContext(Supervisor())

    def shell(self, script, **options):
        return timed.time_command([SHELL, "-c", script], self.supervisor,
                                  **options)

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
        self.assertEqual(done.stdout.count("/memfd:"), 2)

    def test_signals_that_python_ignores_are_not_ignored(self):
        done = self.shell("grep SigIgn /proc/self/status")
        ignored = int(done.stdout.split()[1], 16)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            self.assertFalse(ignored >> (number - 1) & 1)

    def test_it_is_in_the_group_of_the_guard(self):
        done = self.shell("cut -d' ' -f5 /proc/$$/stat")
        self.assertEqual(int(done.stdout), self.supervisor.group)
        self.assertNotEqual(self.supervisor.group, os.getpgrp())

    def test_time_spans_all_of_it(self):
        before_ns = time.monotonic_ns()
        done = self.shell("sleep 0.05")
        after_ns = time.monotonic_ns()
        self.assertGreaterEqual(done.whole_ns, 50_000_000)
        self.assertGreaterEqual(done.begin_monotonic_ns, before_ns)
        self.assertLessEqual(done.end_monotonic_ns, after_ns)
        self.assertGreaterEqual(done.runner_user_ns, 0)
        self.assertGreaterEqual(done.runner_system_ns, 0)

    def test_usage_is_that_of_the_process_alone(self):
        self.shell("head -c 50000000 /dev/zero | tail -c 40000000 | wc -c")
        done = self.shell(":")
        self.assertLess(done.usage.ru_maxrss, 20_000)

    def test_a_hung_one_is_ended(self):
        done = self.shell("exec sleep 1000", timeout_s=0.05)
        self.assertEqual(done.exit_status, timed.STATUS_TIMED_OUT)

    def test_also_one_that_ignores_it(self):
        """And what it leaves goes with us."""
        script = "trap '' TERM; sleep 1000 & echo $!; wait; wait"
        for timeout_s in (0.05, 0.5, 5, 50):
            with Supervisor() as supervisor:
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
            # To this thread: the wait of the other goes on, as it does when a
            # signal comes just before it begins.
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
        with Supervisor() as supervisor:
            os.kill(os.getpid(), signal.SIGHUP)
            self.assertEqual(supervisor.signal, 0)
        self.supervisor.__enter__()

    def test_a_program_that_is_not_there(self):
        with self.assertRaises(Failure) as caught:
            timed.time_command(["/nowhere/blinksort"], self.supervisor)
        self.assertEqual(str(caught.exception),
                         "/nowhere/blinksort: No such file or directory")
        self.assertEqual(self.shell("echo on").stdout, "on\n")


if __name__ == "__main__":
    unit.main()
