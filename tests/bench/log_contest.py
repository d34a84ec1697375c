"""The log, the device and the usual simple logger under the same loads, in turn, several times.

A device's speed drifts, and may jump between two levels, so nothing is measured once: every entrant has a
short turn in every round, and the median of its turns counts. A ratio is the median of the rounds' ratios,
because what stood together in a round met the same device. Where several ways lead to the device's best
figure, all are tried once and the two fastest compete; the better one's median is the device's."""

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess

import device
import servers  # shows Python where the end-to-end drivers are
from device import Job
from results import say

LOAD = servers.mariner.BUILD / "tests" / "bench" / "mariner-log-load"
SMALL, LARGE = 4096, 256 << 10
BATCH_RECORDS = 32
BATCH = (BATCH_RECORDS + 1) * SMALL  # as the log writes so many records
FINALISTS = 2


@dataclasses.dataclass(frozen=True)
class OnLog:
    """A closed loop on a log: `mode` as of mariner-log-load."""
    mode: str
    block: int
    depth: int
    scrub_rate: int = 0  # with initialiser and scrubber, if any


@dataclasses.dataclass(frozen=True)
class Entrant:
    """`ways`: of which the best counts."""
    id: str
    who: str
    what: str
    ways: tuple[OnLog | Job, ...]

    @property
    def name(self) -> str:
        return f"{self.who}, {self.what}"


def ours(block: int, depth: int) -> tuple[OnLog]:
    return (OnLog("ours", block, depth),)


def naive(block: int, depth: int, mode: str = "naive") -> tuple[OnLog]:
    return (OnLog(mode, block, depth),)


OURS, DEVICE, DURABLE_DEVICE = "Mariner", "device", "device, O_DSYNC"
NAIVE, GROUP = "naive log", "naive log with group commit"
SYNCS = ("dsync", "fdatasync")
DEPTHS = (4, 16, 64)
# In the order of their turns: what is compared stands together.
ENTRANTS = [
    Entrant("naive_qd1", NAIVE, "one writer", naive(SMALL, 1)),
    Entrant("ours_qd1", OURS, "depth 1", ours(SMALL, 1)),
    Entrant("device_qd1", DEVICE, "one synchronous writer",
            tuple(Job("write", SMALL, engine=engine, sync=sync)
                  for engine in ("psync", "io_uring") for sync in SYNCS)),
    Entrant("ours_qd32", OURS, "depth 32", ours(SMALL, 32)),
    Entrant("device_32", DEVICE, "32 synchronous writers",
            tuple(Job("write", SMALL, jobs=32, sync=sync) for sync in SYNCS)),
    Entrant("device_batch", DEVICE, "one synchronous writer of 132 KiB",
            (Job("write", BATCH, sync="dsync"),)),
    Entrant("naive_32", NAIVE, "32 writers", naive(SMALL, 32)),
    Entrant("group_32", GROUP, "32 writers", naive(SMALL, 32, "naive-group")),
    Entrant("naive_256k", NAIVE, "256 KiB, 32 writers", naive(LARGE, 32)),
    Entrant("device_256k_dsync", DURABLE_DEVICE, "256 KiB sequential",
            tuple(Job("write", LARGE, depth=depth, engine="io_uring", sync="dsync") for depth in DEPTHS)),
    Entrant("ours_256k", OURS, "256 KiB, depth 32", ours(LARGE, 32)),
    Entrant("device_256k", DEVICE, "256 KiB sequential",
            tuple(Job("write", LARGE, depth=depth, engine="io_uring") for depth in DEPTHS)),
    Entrant("group_256k", GROUP, "256 KiB, 32 writers", naive(LARGE, 32, "naive-group")),
]


@dataclasses.dataclass(frozen=True)
class Space:
    """Where and on how much the entrants write."""
    folder: pathlib.Path
    log_bytes: int
    track_bytes: int
    device_bytes: int

    @property
    def device_file(self) -> pathlib.Path:
        return self.folder / "device.img"


def run_log(load: OnLog, space: Space, warmup_s: float, seconds: float) -> dict:
    """What mariner-log-load measured; with `failure` if it could not."""
    command = [str(LOAD), "--mode", load.mode, "--folder", str(space.folder), "--depth", str(load.depth),
               "--bytes", str(load.block), "--warmup", str(warmup_s), "--seconds", str(seconds),
               "--log-bytes", str(space.log_bytes), "--track-bytes", str(space.track_bytes)]
    if load.scrub_rate:
        command += ["--scrub-rate", str(load.scrub_rate)]
    try:
        # The first run of ours writes the whole file before it begins.
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=warmup_s + seconds + device.PATIENCE_S + space.log_bytes / 50e6)
    except subprocess.TimeoutExpired:
        return {"failure": "it hangs"}
    return json.loads(done.stdout) if done.stdout else {"failure": done.stderr.strip()}


class Contest:
    def __init__(self, space: Space, warmup_s: float, seconds: float):
        self._space = space
        self._warmup_s = warmup_s
        self._seconds = seconds
        # Of each entrant, the runs of each way that competes.
        self.runs: dict[str, dict[OnLog | Job, list[dict]]] = {e.id: {} for e in ENTRANTS}
        self.trials: dict[str, list[dict]] = {}

    def choose(self):
        """Tries what has more ways than may compete."""
        for entrant in ENTRANTS:
            ways = list(entrant.ways)
            if len(ways) > FINALISTS:
                tried = [(self._run(way), way) for way in ways]
                self.trials[entrant.id] = [run for run, _ in tried]
                tried.sort(key=lambda pair: pair[0].get("rate", 0), reverse=True)
                ways = [way for _, way in tried[:FINALISTS]]
            self.runs[entrant.id] = {way: [] for way in ways}

    def round(self, number: int):
        """Forwards and backwards in turn, so that nobody always follows the same one."""
        for entrant in ENTRANTS if number % 2 == 0 else reversed(ENTRANTS):
            for way, runs in self.runs[entrant.id].items():
                run = self._run(way)
                runs.append(run)
                say(f"{number + 1}  {entrant.name:<50} {run['failure'] or f'''{run['rate']:>10,.0f} IO/s'''}")

    def _run(self, way: OnLog | Job) -> dict:
        if isinstance(way, OnLog):
            return run_log(way, self._space, self._warmup_s, self._seconds)
        run = device.run(way, self._space.device_file, self._space.device_bytes, self._warmup_s, self._seconds)
        self._flush()
        return run

    def _flush(self):
        """What was volatile must not burden the next one's flushes."""
        file = os.open(self._space.device_file, os.O_RDWR)
        os.fdatasync(file)
        os.close(file)

    # -- what comes of it -------------------------------------------------------------------------

    def best(self, entrant: str) -> list[dict]:
        """The runs of an entrant's best way; none if a single one of them failed."""
        whole = [runs for runs in self.runs[entrant].values()
                 if runs and not any(run["failure"] for run in runs)]
        return max(whole, key=lambda runs: statistics.median(run["rate"] for run in runs), default=[])

    def median(self, entrant: str, *keys: str) -> float | None:
        """Of a figure, such as "latency_us", "p50"; None if it was not measured."""
        values = []
        for run in self.best(entrant):
            value = run
            for key in keys:
                value = value.get(key) if value is not None else None
            values.append(value)
        return None if not values or None in values else statistics.median(values)

    def ratio(self, entrant: str, rival: str, less_is_better: bool = False) -> float | None:
        """The median of the rounds' ratios of the rates, or of their inverses."""
        ratios = [one["rate"] / other["rate"] for one, other in zip(self.best(entrant), self.best(rival))]
        if less_is_better:
            ratios = [1 / ratio for ratio in ratios]
        return statistics.median(ratios) if ratios else None

    def measured_s(self, entrant: str) -> float:
        return sum(run["seconds"] for run in self.best(entrant))

    def name(self, entrant: str) -> str:
        name = next(e.name for e in ENTRANTS if e.id == entrant)
        how = next((run["how"] for run in self.best(entrant) if "how" in run), None)
        return f"{name} ({how})" if how else name

    def record(self) -> dict:
        """Everything that was measured, for the file of runs."""
        return {"trials": self.trials,
                "rounds": {entrant: {str(way): runs for way, runs in ways.items()}
                           for entrant, ways in self.runs.items()}}
