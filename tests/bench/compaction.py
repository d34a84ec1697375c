"""The compaction of a daemon's log, as its administrator drives it."""

import os
import pathlib
import random
import subprocess
import time

import mariner

THREAD = "compact"
PATIENCE_S = 1800
TICKS = os.sysconf("SC_CLK_TCK")


class Compaction:
    def __init__(self, daemon: mariner.Daemon):
        self._daemon = daemon

    def lacks(self) -> str:
        """Empty: the daemon can do it."""
        told = self._daemon.http("/metrics")[1]
        return "" if "\nmariner_log_history_bytes" in told else "a marinerd that compacts its log"

    def set(self, on: bool, cpu_percent: int):
        """From now on, and at the next start. Everything that is complete counts as cold."""
        self._daemon.configure_log(
            compact="on" if on else "off", compact_after="0s", compact_cpu=f"{cpu_percent}%"
        )

    def finish(self):
        """Until everything that is complete is compacted."""
        self._daemon.cli("log", "compact", "--wait", timeout_s=PATIENCE_S)

    def begin(self) -> subprocess.Popen:
        """The same, not waited for. It fails when the daemon is killed."""
        return subprocess.Popen(
            [
                str(mariner.MARINER),
                "--socket",
                str(self._daemon.socket),
                "log",
                "compact",
                "--wait",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def cpu_s(self) -> float:
        """CPU time that its threads have used since the daemon started (what packs, and its I/O beside)."""
        ticks = 0
        for task in pathlib.Path(f"/proc/{self._daemon.process.pid}/task").iterdir():
            try:
                name, fields = (task / "stat").read_text().split(" (", 1)[1].rsplit(") ", 1)
            except FileNotFoundError:  # it has just ended
                continue
            if name.startswith(THREAD):
                words = fields.split()
                ticks += int(words[11]) + int(
                    words[12]
                )  # proc(5): utime and stime are fields 14 and 15
        return ticks / TICKS

    def _wait_until_it_begins(self, running: subprocess.Popen):
        mariner.wait_until(
            lambda: self.cpu_s() > 0 or running.poll() is not None, 60, "the compaction begins"
        )

    def measure_cpu(self, cpu_percent: int, seconds: float) -> tuple[float, float]:
        """CPU time and wall time, in seconds, while it runs; less when all is compacted sooner."""
        self.set(True, cpu_percent)
        running = self.begin()
        try:
            self._wait_until_it_begins(running)
            used, begun = self.cpu_s(), time.monotonic()
            while time.monotonic() < begun + seconds and running.poll() is None:
                time.sleep(0.05)
            return self.cpu_s() - used, time.monotonic() - begun
        finally:
            running.kill()
            running.wait()

    def kill_within(self, cpu_percent: int, chance: random.Random, seconds_max: float) -> bool:
        """Kills the daemon at a moment by chance, and starts it again. False: it was not compacting
        then."""
        self.set(True, cpu_percent)
        running = self.begin()
        try:
            self._wait_until_it_begins(running)
            time.sleep(chance.uniform(0, seconds_max))  # the moment is by chance
            met = running.poll() is None
            self._daemon.kill()
        finally:
            running.kill()
            running.wait()
        self._daemon.start()
        return met
