"""The steady state: a log that has gone round several times, beside the same log while it is empty."""

import dataclasses
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import time

import loads
import servers
from history import Measured, Scale
from results import Row, header, line, number, say

MIB, GIB = 1 << 20, 1 << 30
BLOCK = 4096
KIND = re.compile(r'mariner_log_payload_bytes_total\{kind="([^"]*)"\} (\S+)')
DEPTH = 32
RATE_MIN = 0.75
P99_MAX = 2
AMPLIFICATION_MAX = 1.3
FULL_TO = 0.85
NEEDS_S = 20

NOTES = """\
- Overwrites of {block} bytes at random, {depth} outstanding, over a volume of {volume} that was filled before; the log has {log}. *Hot/cold* of 80/20:
  80 % of the writes go to 20 % of the blocks, which lie scattered over the volume. No two writes have the same bytes. *Half compressible*: half of each
  512 bytes are zeros, as other generators of loads make them; *not compressible*: all are random.
- `[log] compact = "on"`, `compact_cpu = "{cpu}"`; what cannot be compressed is left as it is.
- *Empty*: from when the image's lag is at its bound until the log is {empty_to:.0%} full, nothing of it given up or compacted yet. *Steady*: from when
  {turns:g} times the log has been written until {measured:g} times it, in pieces of {slice:g} s.
- The window is chosen so that what it keeps (each version that was replaced within it) would take {full_to:.0%} of the log at {rate_min} of the empty log's rate;
  *kept* is what share it would take uncompacted at the rate that was reached. `on_full` shortens windows: *reached back* is how far moments could be opened in the end, as a
  share of the window.
- *Amplification*: what the log writes for a byte of a host's (headers, before-images and what is logged again included), as a multiple of the same while it was empty;
  *with packs*: and what compaction writes. Beside a greedy cleaner: part `cleaners`.
- *Window*: as a share of the log, at {rate_min} of the empty log's rate. Goals hold for {full_to:.0%}; a shorter one shows what a log gives that cannot be compressed."""


@dataclasses.dataclass(frozen=True)
class Sizes:
    volume_bytes: int
    log_bytes: int
    track_bytes: int
    slice_s: float
    empty_to: float   # of the log
    turns: float      # of the log, before the steady state
    measured: float   # ... and until its end
    patience_s: float
    windows: tuple[float, ...]  # as shares of the log, beside FULL_TO, of what cannot be compressed


FULL = Sizes(1 * GIB, 5 * GIB, 16 * MIB, 5, 0.7, 1.2, 2.4, 600, (0.5,))
SHORT = Sizes(64 * MIB, 320 * MIB, 8 * MIB, 1, 0.7, 1.2, 2, 12, ())
COMPACT_CPU = "60%"
STORAGE = {"pending_memory": "64M", "lag_max": "128M"}


@dataclasses.dataclass(frozen=True)
class Pattern:
    id: str
    what: str
    hot_load: int = 0
    hot_blocks: int = 0


@dataclasses.dataclass(frozen=True)
class Contents:
    id: str
    what: str
    compressible: int  # percent


PATTERNS = (Pattern("uniform", "uniform"), Pattern("80-20", "hot/cold 80/20", 80, 20), Pattern("95-5", "hot/cold 95/5", 95, 5))
CONTENTS = (Contents("half", "half compressible", 50), Contents("noise", "not compressible", 0))


@dataclasses.dataclass(frozen=True)
class Case:
    """One load."""
    pattern: Pattern
    contents: Contents

    @property
    def id(self) -> str:
        return f"{self.pattern.id}.{self.contents.id}"

    @property
    def what(self) -> str:
        return f"{self.pattern.what}, {self.contents.what}"


class Slices:
    """Pieces of one load, and what the daemon did in each."""

    def __init__(self, daemon: servers.mariner.Daemon, case: Case, sizes: Sizes):
        self._daemon, self._case, self._sizes = daemon, case, sizes
        self._url = daemon.volume_url("bench")
        self._seed = 0
        self.written = 0  # bytes, by the hosts
        self.pieces: list[dict] = []

    def metric(self, name: str) -> float:
        rows = self._daemon.http("/metrics")[1].splitlines()
        return sum(float(row.split()[-1]) for row in rows if row.split("{")[0].split(" ")[0] == name)

    def _kinds(self) -> dict[str, float]:
        return {kind: float(count) for kind, count in KIND.findall(self._daemon.http("/metrics")[1])}

    def run(self) -> dict:
        self._seed += 1
        before, kinds = self.metric("mariner_log_batch_bytes_sum"), self._kinds()
        pattern = self._case.pattern
        command = [str(loads.LOAD), self._url, "--write", "--random", "--block", str(BLOCK), "--depth", str(DEPTH), "--warmup", "0.05",
                   "--seconds", str(self._sizes.slice_s), "--hot-load", str(pattern.hot_load), "--hot-blocks", str(pattern.hot_blocks),
                   "--compressible", str(self._case.contents.compressible), "--seed", str(self._seed), "--server-pid", str(self._daemon.process.pid)]
        run = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=self._sizes.slice_s + loads.PATIENCE_S).stdout)
        if run["failure"]:
            raise servers.mariner.Failed(f"a load failed: {run['failure']}\n{self._daemon.tail()}")
        run["log_bytes"] = self.metric("mariner_log_batch_bytes_sum") - before
        run["kinds"] = {kind: count - kinds[kind] for kind, count in self._kinds().items()}
        run["used"] = self.metric("mariner_log_used_bytes") / self.metric("mariner_log_limit_bytes")
        self.written += run["operations"] * BLOCK
        run["written"] = self.written
        self.pieces.append(run)
        return run


def _sum(pieces: list[dict]) -> dict:
    operations = sum(piece["operations"] for piece in pieces)
    seconds = sum(piece["seconds"] for piece in pieces)
    return {"rate": operations / seconds, "seconds": seconds,
            "p99_us": statistics.median(piece["latency_us"]["p99"] for piece in pieces),
            "max_us": max(piece["latency_us"]["max"] for piece in pieces),
            "cpu_us": sum(piece["server_cpu_us"] * piece["operations"] for piece in pieces) / operations,
            "log_bytes_per_byte": sum(piece["log_bytes"] for piece in pieces) / (operations * BLOCK),
            "kinds": {kind: sum(piece["kinds"][kind] for piece in pieces) / (operations * BLOCK) for kind in pieces[0]["kinds"]}}


def _daemon(folder: pathlib.Path, sizes: Sizes, window_s: float) -> servers.mariner.Daemon:
    log = {"max_size": str(sizes.log_bytes), "track_size": str(sizes.track_bytes), "on_full": "shorten-window",
           "compact": "on", "compact_cpu": COMPACT_CPU}
    return servers.mariner.Daemon(folder, log=log, storage=STORAGE, window=f"{max(1, round(window_s))}s")


def _fill(daemon: servers.mariner.Daemon, case: Case, sizes: Sizes):
    daemon.start()
    daemon.create("bench", str(sizes.volume_bytes))
    fill = loads.Load("fill", "fill", True, False, 256 << 10, 8, compressible=case.contents.compressible)
    run = loads.run_iscsi(fill, loads.Target(daemon.volume_url("bench"), 0), loads.Limits(0.01, 600, 0, bytes_max=sizes.volume_bytes))
    if run["failure"]:
        raise servers.mariner.Failed(f"the volume could not be filled: {run['failure']}\n{daemon.tail()}")


def _empty(case: Case, sizes: Sizes, folder: pathlib.Path) -> dict:
    with _daemon(folder, sizes, 3 * 86400) as daemon:
        _fill(daemon, case, sizes)
        slices = Slices(daemon, case, sizes)
        slices.run()  # the image's lag comes to its bound
        while slices.run()["used"] < sizes.empty_to:
            pass
        return _sum(slices.pieces[1:])


def _steady(case: Case, sizes: Sizes, folder: pathlib.Path, window_s: float) -> dict:
    with _daemon(folder, sizes, window_s) as daemon:
        _fill(daemon, case, sizes)
        slices = Slices(daemon, case, sizes)
        deadline = time.monotonic() + sizes.patience_s
        while slices.written < sizes.turns * sizes.log_bytes and time.monotonic() < deadline:
            slices.run()
        ready = len(slices.pieces)
        while slices.written < sizes.measured * sizes.log_bytes and time.monotonic() < deadline or len(slices.pieces) == ready:
            slices.run()
        out = _sum(slices.pieces[ready:])
        out["turns"] = slices.written / sizes.log_bytes
        out["kept"] = out["rate"] * BLOCK * window_s / sizes.log_bytes
        out["reached_back"] = (time.time() - slices.metric("mariner_oldest_recoverable_timestamp_seconds")) / window_s
        out["pieces"] = [{key: piece[key] for key in ("rate", "used", "log_bytes", "written", "kinds")} for piece in slices.pieces]
        return out


def _rows(case: Case, empty: dict, steady: dict, scale: Scale) -> list[Row]:
    lacks = scale.lacks or ("" if steady["turns"] >= 2 else f"two turns of the log: {steady['turns']:.2f} were made in the time given")

    def row(what: str, unit: str, ours: float, rival: float, goal: float | None, less: bool = False) -> Row:
        return Row(f"steady.{case.id}.{what.replace(' ', '_')}", f"Steady state, {case.what}: {what}", unit, ours, rival, "with an empty log", steady["seconds"], scale.name,
                   goal, less, NEEDS_S, lacks)
    return [row("rate", "writes/s", steady["rate"], empty["rate"], RATE_MIN),
            row("p99", "ms", steady["p99_us"] / 1000, empty["p99_us"] / 1000, P99_MAX, less=True),
            row("amplification", "bytes of the log for a byte", steady["log_bytes_per_byte"], empty["log_bytes_per_byte"],
                AMPLIFICATION_MAX if case.pattern.hot_load else None, less=True)]


def _line(case: Case, window: float, empty: dict, steady: dict) -> str:
    amplification = steady["log_bytes_per_byte"] / empty["log_bytes_per_byte"]
    with_packs = (steady["log_bytes_per_byte"] + steady["kinds"]["packed"]) / empty["log_bytes_per_byte"]
    return line(case.what, f"{window:.0%}", number(empty["rate"]), f"{empty['p99_us'] / 1000:.1f}", number(steady["rate"]), f"{steady['rate'] / empty['rate']:.2f}",
                f"{steady['p99_us'] / 1000:.1f}", f"{steady['max_us'] / 1000:.0f} ms", f"{empty['cpu_us']:.1f}", f"{steady['cpu_us']:.1f}", f"{amplification:.2f}",
                f"{with_packs:.2f}", f"{steady['kinds']['before-image']:.2f}", f"{steady['kinds']['moved']:.2f}", f"{steady['kept']:.0%}", f"{steady['reached_back']:.0%}")


def measure(scale: Scale, folder: pathlib.Path) -> Measured:
    sizes = SHORT if scale.short else FULL
    rows, runs = [], {}
    table = header("", "window", "empty: writes/s", "p99 (ms)", "steady: writes/s", "of the empty", "p99", "slowest", "CPU of the daemon for a write (us): empty", "steady",
                   "amplification", "with packs", "before-images", "moved", "kept", "reached back")
    for contents in CONTENTS:
        for pattern in PATTERNS:
            case = Case(pattern, contents)
            say(f"{case.what}: an empty log")
            empty = _empty(case, sizes, folder / f"{case.id}-empty")
            shutil.rmtree(folder / f"{case.id}-empty")
            runs[case.id] = {"empty": empty}
            for window in (FULL_TO, *(() if contents.compressible else sizes.windows)):
                window_s = window * sizes.log_bytes / (RATE_MIN * empty["rate"] * BLOCK)
                say(f"{case.what}: {number(empty['rate'])} writes/s; the steady state, with a window of {window_s:.0f} s")
                steady = _steady(case, sizes, folder / f"{case.id}-steady", window_s)
                shutil.rmtree(folder / f"{case.id}-steady")
                runs[case.id][f"steady {window:g}"] = steady | {"window_s": window_s}
                if window == FULL_TO:
                    rows += _rows(case, empty, steady, scale)
                table.append(_line(case, window, empty, steady))
                say(table[-1])
    notes = NOTES.format(block=BLOCK, depth=DEPTH, volume=f"{sizes.volume_bytes / GIB:g} GiB", log=f"{sizes.log_bytes / GIB:g} GiB", empty_to=sizes.empty_to, turns=sizes.turns,
                         measured=sizes.measured, slice=sizes.slice_s, full_to=FULL_TO, rate_min=RATE_MIN, cpu=COMPACT_CPU)
    return Measured(rows, ["\n".join(table)], notes, runs)
