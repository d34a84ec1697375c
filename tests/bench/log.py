#!/usr/bin/env python3
"""The log beside the device's own figures and the usual simple logger.

    log.py [--short | --long] [--tail-seconds S] [--folder FOLDER]

All of them write on the same file system, in turn, in several short rounds. What is honest to say about each
figure stands in NOTES. --long gives the tail of the latencies its ten minutes."""

import argparse
import dataclasses
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Callable

import servers
from chart import bars
from ending import end_cleanly
from log_contest import BATCH_RECORDS, ENTRANTS, SMALL, Contest, OnLog, Space, run_log
from log_recovery import LogRecovery, RecoveryScale
from results import OUT, Row, describe, header, line, machine, number, say, write_json
from servers import GIB

MIB = 1 << 20

# The goals, and what it takes to have reached one.
LATENCY_MAX, RATE_OF_ONE_MIN, RATE_OF_MANY_MIN, SEQUENTIAL_MIN = 1.10, 10, 3, 0.95
CPU_US_MAX, TAIL_MAX = 6.0, 4
RATE_NEEDS_S, TAIL_NEEDS_S, TAIL_NEEDS_WRAPS = 10, 600, 2
TAIL_DEPTH = 64
TAIL_SCRUB_RATE = 32 * MIB  # the most that the daemon chooses by itself

NOTES = """\
- Every record is on stable storage before its writer appends the next one. Each figure is the median of {rounds} rounds
  of {seconds:g} s after a warm-up of {warmup:g} s, in which all took turns; a ratio is the median of the rounds' ratios,
  because a device's speed drifts.
- The device is the same file system through fio: O_DIRECT, one after another over a preallocated file that was written
  once. Of O_DSYNC and write with fdatasync, by psync and by io_uring, and of several depths for 256 KiB, the fastest
  counts. 256 KiB without O_DSYNC is without any flush: nothing of it need survive a power cut.
- The naive log is a file that grows by write() and is synchronised by fdatasync() for each record, under a mutex; with
  group commit, whoever comes first writes and synchronises for all that wait.
- At depth 1 the latency is the time of the whole cycle: one second by the rate. Mariner writes a header block and the
  payload, 8 KiB, where the device's figure is of 4 KiB.
- CPU is user and system time of the process with all its threads for one record, its load generator included; what the
  kernel's own threads do is charged to nobody. *CRC32C* is the checksum of such a record by itself, of bytes that are in
  the cache, measured apart: a part of *user*. *Gathering* lasts from append to dispatch, *writing* until the process
  knows that the batch is durable, *completing* until the record's own completion runs.
- The 99th percentile is that of a log that goes round while its tracks are initialised and, 32 MiB a second, verified.
- The log is otherwise initialised beforehand. A run ends early when it has no more space, and what was measured for too short a
  time does not hold."""


@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    rounds: int
    warmup_s: float
    seconds: float
    tail_s: float
    log_bytes: int
    track_bytes: int
    device_bytes: int
    recovery: RecoveryScale


FULL = Scale("full", 13, 0.25, 1, 60, 6 * GIB, 64 * MIB, 2 * GIB, RecoveryScale(1_000_000, 5))
LONG = dataclasses.replace(FULL, name="long", tail_s=TAIL_NEEDS_S)
SHORT = Scale("short", 2, 0.1, 0.3, 1, GIB // 2, 16 * MIB, GIB // 4, RecoveryScale(50_000, 1))


@dataclasses.dataclass(frozen=True)
class Comparison:
    id: str
    what: str
    unit: str
    ours: str
    rival: str
    goal: float | None
    figure: Callable[[str], float | None]  # of an entrant
    less_is_better: bool = False


class Bench:
    def __init__(self, scale: Scale, folder: pathlib.Path):
        self.scale = scale
        self._space = Space(folder, scale.log_bytes, scale.track_bytes, scale.device_bytes)
        self.contest = Contest(self._space, scale.warmup_s, scale.seconds)
        self.tail: dict = {"failure": "not measured"}
        self.recovery = LogRecovery(scale.recovery, folder)

    def measure(self):
        say(f"preparing in {self._space.folder}")
        servers.write_once(self._space.device_file, self.scale.device_bytes)
        run_log(OnLog("ours", SMALL, 1), self._space, 0, 0.1)  # writes the log's file once
        self.contest.choose()
        for turn in range(self.scale.rounds):
            self.contest.round(turn)
        self.tail = run_log(OnLog("ours", SMALL, TAIL_DEPTH, TAIL_SCRUB_RATE), self._space, self.scale.warmup_s,
                            self.scale.tail_s)
        self.recovery.measure()

    # -- what comes of it -------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        rows = []
        what = "4 KiB, depth 1: time of a durable write (less is better)"
        for rival, goal in (("device_qd1", LATENCY_MAX), ("naive_qd1", LATENCY_MAX)):
            rows.append(self._row(Comparison("qd1.latency", what, "us", "ours_qd1", rival, goal, self._cycle_us, True)))
        for rival, goal in (("device_qd1", RATE_OF_ONE_MIN), ("device_32", RATE_OF_MANY_MIN),
                            ("naive_qd1", RATE_OF_ONE_MIN), ("naive_32", RATE_OF_MANY_MIN), ("group_32", None)):
            rows.append(self._row(Comparison("qd32.rate", "4 KiB, depth 32: rate", "IO/s", "ours_qd32", rival, goal,
                                             self._rate)))
        # What the device itself makes of the same batches: more than that no log can reach.
        rows.append(self._row(Comparison("qd32.limit", "4 KiB, depth 32: rate, of the device's own in writes of 32 records",
                                         "IO/s", "ours_qd32", "device_batch", None, self._rate), BATCH_RECORDS))
        for rival, goal in (("device_256k", SEQUENTIAL_MIN), ("device_256k_dsync", SEQUENTIAL_MIN),
                            ("naive_256k", SEQUENTIAL_MIN), ("group_256k", None)):
            rows.append(self._row(Comparison("seq_256k.rate", "256 KiB sequential: rate", "MB/s", "ours_256k", rival,
                                             goal, self._megabytes)))
        rows.append(Row("qd32.cpu", "4 KiB, depth 32: CPU for a record (less is better)", "us",
                        self.contest.median("ours_qd32", "cpu_us", "all"), CPU_US_MAX, "the most it may take",
                        self.contest.measured_s("ours_qd32"), self.scale.name, 1, less_is_better=True,
                        needs_s=RATE_NEEDS_S))
        rows.append(self._tail_row())
        rows.extend(self.recovery.rows(self.scale.name))
        return rows

    def _row(self, c: Comparison, times: int = 1) -> Row:
        """`times`: what one write of the rival's counts for."""
        theirs, ratio = c.figure(c.rival), self.contest.ratio(c.ours, c.rival, c.less_is_better)
        return Row(f"{c.id}.{c.rival}", c.what, c.unit, c.figure(c.ours), theirs and theirs * times, self.contest.name(c.rival),
                   self.contest.measured_s(c.ours), self.scale.name, c.goal, c.less_is_better,
                   RATE_NEEDS_S if c.goal else 0, paired=ratio and ratio / times)

    def _tail_row(self) -> Row:
        run = self.tail if not self.tail["failure"] else {}
        latency = run.get("latency_us", {})
        wraps = run["written_bytes"] / run["limit_bytes"] if run else 0
        lacks = "" if wraps >= TAIL_NEEDS_WRAPS else \
            f"the log was written {wraps:.2g} times, the goal needs {TAIL_NEEDS_WRAPS}"
        return Row("qd64.p99", f"4 KiB, depth {TAIL_DEPTH}: 99th percentile of latency (less is better)", "us",
                   latency.get("p99"), latency.get("p50"), "its own median", run.get("seconds", 0), self.scale.name,
                   TAIL_MAX, less_is_better=True, needs_s=TAIL_NEEDS_S, lacks=lacks)

    def _rate(self, entrant: str) -> float | None:
        return self.contest.median(entrant, "rate")

    def _cycle_us(self, entrant: str) -> float | None:
        rate = self._rate(entrant)
        return 1e6 / rate if rate else None

    def _megabytes(self, entrant: str) -> float | None:
        rate = self.contest.median(entrant, "bytes_per_s")
        return None if rate is None else rate / 1e6

    def table(self, records: list[dict], about: dict) -> str:
        notes = NOTES.format(rounds=self.scale.rounds, seconds=self.scale.seconds, warmup=self.scale.warmup_s)
        return "\n\n".join([self._comparisons(records), self._latencies(), self._parts(),
                            self.recovery.table(), notes + "\n" + self.recovery.notes(),
                            "Measured on " + describe(about)])

    @staticmethod
    def _comparisons(records: list[dict]) -> str:
        lines = header("", "Mariner", "rival", "", "ratio", "goal", "holds")
        for record in records:
            than = "≤" if record["less_is_better"] else "≥"
            goal = "" if record["goal"] is None else f"{than} {record['goal']:g}"
            holds = "" if record["goal"] is None else "yes" if record["holds"] else record["lacks"] or "**no**"
            ratio = "–" if record["ratio"] is None else f"{record['ratio']:.2f}"
            lines.append(line(record["what"], f"**{short(record['ours'])} {record['unit']}**",
                              f"{short(record['rival'])} {record['unit']}", record["rival_name"], ratio, goal, holds))
        return "\n".join(lines)

    def _latencies(self) -> str:
        names = ("p50", "p90", "p99", "p99.9", "max")
        lines = header("latency in µs", "mean", *names)
        for entrant in ENTRANTS:
            cells = [self.contest.median(entrant.id, "latency_us", name) for name in ("mean", *names)]
            lines.append(line(self.contest.name(entrant.id), *map(number, cells)))
        tail = self.tail.get("latency_us", {})
        lines.append(line(f"Mariner, depth {TAIL_DEPTH}, {self.tail.get('seconds', 0):.3g} s",
                          *(number(tail.get(name)) for name in ("mean", *names))))
        return "\n".join(lines)

    def _parts(self) -> str:
        columns = {"gathering": ("parts_us", "gathering", "mean"), "writing": ("parts_us", "writing", "mean"),
                   "completing": ("parts_us", "completing", "mean"), "CPU": ("cpu_us", "all"),
                   "user": ("cpu_us", "user"), "system": ("cpu_us", "system"), "CRC32C": ("cpu_us", "crc"),
                   "records in a batch": ("batches", "records_mean"), "context switches": ("context_switches",)}
        lines = header("a record's time, and its CPU, in µs", *columns)
        for entrant in ENTRANTS:
            if isinstance(entrant.ways[0], OnLog):
                cells = [self.contest.median(entrant.id, *keys) for keys in columns.values()]
                lines.append(line(entrant.name, *("–" if cell is None else f"{cell:.2f}" for cell in cells)))
        return "\n".join(lines)

    def picture(self) -> str:
        def group(name: str, unit: str, figure, *entrants: str):
            return name, unit, [(next(e.who for e in ENTRANTS if e.id == entrant), figure(entrant))
                                for entrant in entrants]

        return bars("The log beside the device and a naive log", [
            group("4 KiB, depth 1: time of a durable write", "µs", self._cycle_us, "ours_qd1", "device_qd1",
                  "naive_qd1"),
            group("4 KiB, 32 outstanding", "IO/s", self._rate, "ours_qd32", "device_32", "naive_32", "group_32"),
            group("256 KiB sequential", "MB/s", self._megabytes, "ours_256k", "device_256k", "device_256k_dsync",
                  "naive_256k", "group_256k")])


def short(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f}" if value < 10 else number(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--short", action="store_const", dest="scale", const=SHORT, default=FULL,
                      help="under a minute; shows that it works")
    size.add_argument("--long", action="store_const", dest="scale", const=LONG, help="ten minutes for the tail")
    parser.add_argument("--tail-seconds", type=float, help="how long the tail of the latencies is measured")
    parser.add_argument("--folder", type=pathlib.Path, default=OUT,
                        help="on the file system to measure (default: %(default)s)")
    options = parser.parse_args()
    end_cleanly()
    scale = options.scale
    if options.tail_seconds is not None:
        scale = dataclasses.replace(scale, tail_s=options.tail_seconds)
    OUT.mkdir(parents=True, exist_ok=True)
    # The naive log's file may grow as large as ours is.
    needed = 2 * scale.log_bytes + scale.device_bytes + scale.recovery.disk_bytes + GIB
    free = shutil.disk_usage(options.folder).free
    if free < needed:
        say(f"{options.folder}: {needed / GIB:.0f} GiB are needed, {free / GIB:.0f} are free; "
            "--folder names another place")
        return 1
    about = machine(options.folder.resolve())
    with tempfile.TemporaryDirectory(prefix="log-", dir=options.folder) as folder:
        bench = Bench(scale, pathlib.Path(folder))
        bench.measure()
    records = [row.record(about) for row in bench.rows()]
    write_json(OUT / "log.json", records)
    write_json(OUT / "log-runs.json", {**bench.contest.record(), "tail": bench.tail,
                                        "recovery": [bench.recovery.records, bench.recovery.tracks]})
    (OUT / "log.svg").write_text(bench.picture())
    print(bench.table(records, about))
    missing = [record["id"] for record in records if record["ratio"] is None]
    if missing:
        say("not measured: " + ", ".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
