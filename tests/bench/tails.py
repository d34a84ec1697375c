#!/usr/bin/env python3
"""Where the slowest writes come from: what the processors did while a write was slow, beside what they do all the time.

    tails.py [--short] [--depth N]... [--slow US] [--program MARINERD] [--folder FOLDER]

The steady state of the target's benchmark (a log that goes round with writes of 4 KiB), and `perf` beside a load. Slow is, but for
--slow, what is above the 99.9th percentile of a run without perf. Takes Debian's linux-perf and root."""

import argparse
import pathlib
import shutil
import sys
import tempfile

import servers  # first: it shows Python where the end-to-end drivers are
import perf
import stalls
from ending import end_cleanly
from loads import Limits, Load, Target, run_iscsi
from results import OUT, describe, header, line, machine, number, say
from servers import GIB, Mariner, mariner
from target import FILL, FULL, ROUND_4K, SHORT

FREQUENCY = 2500  # samples a second of each processor
SHOWN = 14        # labels of a table
EXAMPLES = 4      # stretches that are shown one by one


class Bench:
    def __init__(self, scale, folder: pathlib.Path, depths: list[int], slow_us: int, program: pathlib.Path | None):
        self.scale, self.folder, self.depths, self.slow_us = scale, folder, depths, slow_us
        self.ours = Mariner(folder / "mariner", scale.volume_bytes, scale.log_bytes, scale.storage, window=scale.window)
        if program is not None:
            self.ours.daemon.program = program
        self.parts: list[str] = []

    def measure(self):
        with self.ours as ours:
            ours.wait_initialised(self.scale.initialise_s)
            for load, bytes_max in ((FILL, self.scale.volume_bytes), (ROUND_4K, self.scale.log_bytes)):
                region = self.scale.volume_bytes if load is FILL else self.scale.region_bytes
                self._run(load, Limits(0, 600, region, bytes_max))
                say(load.what)
            for depth in self.depths:
                self._measure(Load(f"write_4k_qd{depth}", f"4 KiB random write, depth {depth}", True, True, 4096, depth))

    def _run(self, load: Load, limits: Limits, more: tuple[str, ...] = ()) -> dict:
        run = run_iscsi(load, Target(self.ours.url, self.ours.pid), limits, more)
        if run["failure"]:
            raise mariner.Failed(f"{load.what}: {run['failure']}")
        return run

    def _measure(self, load: Load):
        limits = self.scale.limits(load)
        self.ours.wait_applied(60)
        plain = self._run(load, limits)
        slow_us = self.slow_us or round(plain["latency_us"]["p99.9"])
        self.ours.wait_applied(60)
        run, found = self._watched(load, limits, slow_us)
        stretches = stalls.merged(run["slow_ns"])
        text = " / ".join(number(plain["latency_us"][p]) for p in ("p50", "p99", "p99.9", "max"))
        say(f"{load.what}: {plain['rate']:,.0f} IO/s, {text} us")
        lasted = sum(ended - begun for begun, ended in stretches) / 1e9
        lines = [f"**{load.what}**: {number(plain['rate'])} IO/s, p50 / p99 / p99.9 / max {text} µs (with perf {number(run['rate'])} IO/s). "
                 f"Slower than {slow_us} µs: {len(run['slow_ns'])} writes, in {len(stretches)} stretches of {lasted:.2f} s together."]
        if stretches:
            lines += ["", *header("the processors", "while writes are slow", "always")]
            lines += [line(each.label, f"{each.slow:.1%}", f"{each.always:.1%}") for each in stalls.shares(found, stretches)[:SHOWN]]
        for stretch in sorted(stretches, key=lambda each: each[0] - each[1])[:EXAMPLES]:
            lines += ["", f"{(stretch[1] - stretch[0]) / 1e6:.1f} ms:", "", *self._told(stalls.within(found, stretch), stretch[0])]
        self.parts.append("\n".join(lines))

    @staticmethod
    def _told(found: list[stalls.Sample], begun_ns: int) -> list[str]:
        """What each processor did, one thing after the other."""
        told = []
        for cpu in sorted({each.cpu for each in found}):
            runs: list[list] = []  # label, from, to, samples
            for each in (each for each in found if each.cpu == cpu):
                if runs and runs[-1][0] == each.label:
                    runs[-1][2:] = [each.time_ns, runs[-1][3] + 1]
                else:
                    runs.append([each.label, each.time_ns, each.time_ns, 1])
            told += [f"    processor {cpu}, {(begun - begun_ns) / 1e6:6.2f} ms: {label} ({count})" for label, begun, _, count in runs[:40]]
        return told or ["    no processor did anything: what is waited for is not here (the disk, or the host of a virtual machine)"]

    def _watched(self, load: Load, limits: Limits, slow_us: int) -> tuple[dict, list[stalls.Sample]]:
        options = ["-a", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock", "-F", str(FREQUENCY), "--call-graph", "dwarf,6144"]
        run, script = perf.beside(lambda: self._run(load, limits, ("--slow", str(slow_us))), limits.warmup_s, limits.seconds, options,
                                  "comm,tid,cpu,time,ip,sym,dso", self.folder / "perf.data")
        return run, stalls.samples(script)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="under a minute; shows that it works")
    parser.add_argument("--depth", action="append", type=int, help="commands outstanding (default: 1, 32 and 128)")
    parser.add_argument("--slow", type=int, default=0, metavar="US", help="what counts as slow, in microseconds")
    parser.add_argument("--program", type=pathlib.Path, help="another marinerd")
    parser.add_argument("--folder", type=pathlib.Path, default=OUT, help="on the file system to measure (default: %(default)s)")
    options = parser.parse_args()
    end_cleanly()
    if shutil.which("perf") is None:
        say("perf is missing: apt install linux-perf")
        return 1
    OUT.mkdir(parents=True, exist_ok=True)
    scale = SHORT if options.short else FULL
    needed = scale.log_bytes + scale.volume_bytes + 3 * GIB
    if shutil.disk_usage(options.folder).free < needed:
        say(f"{options.folder}: {needed / GIB:.0f} GiB are needed; --folder names another place")
        return 1
    about = machine(options.folder.resolve())
    with tempfile.TemporaryDirectory(prefix="tails-", dir=options.folder) as folder:
        bench = Bench(scale, pathlib.Path(folder), options.depth or [1, 32, 128], options.slow, options.program)
        bench.measure()
    text = "\n\n".join([*bench.parts, "Measured on " + describe(about)])
    (OUT / "tails.txt").write_text(text + "\n")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
