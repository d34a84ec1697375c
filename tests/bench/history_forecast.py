"""The window as a promise: that it will be short is told in time, and with `on_full = "throttle"` it never is."""

import dataclasses
import json
import os
import pathlib
import re
import struct
import subprocess
import time

import curve
import libiscsi
import loads
import mariner
from history import Measured, Scale
from results import Row, header, line, number, say

MIB = 1 << 20
BLOCK = 4096
DEPTH = 32
AHEAD_S = 600
RATE_MIN = 0.8
SMOOTH_MIN = 0.5
WAIT_MS_MAX = 500
PIECE_S = 5
VOLUME = "bench"

NOTES = """\
- *Forecast*: a log of {log} MiB under a steady {rate} writes of 4 KiB a second at random, a window of {window} s asked for, `on_full = "shorten-window"`. *Ahead* is from when it was told first until history
  inside the window was given up, {until:.0f} s after the load had begun: by `mariner volume list`, by the metric, by the daemon's log. *Ten minutes before*: what the metric said then, beside what it came to.
- *Throttle*: a log of {throttle_log} MiB, a window of {throttle_window} s, {depth} writes of 4 KiB at random outstanding all the time, for {throttled:.0f} s. *Reached back* is how far moments could be opened, at the least, once that
  much time had passed, as a multiple of the window. *Settled*: from when two windows had passed. The rate over time is in history-throttle.svg. The log was written {room:.0%} of its size in a window and ten
  seconds (in which what leaves it is given up): so small a log keeps
  much of itself free."""


@dataclasses.dataclass(frozen=True)
class Sizes:
    log_bytes: int
    window_s: int
    writes_per_s: int
    patience_s: float
    throttle_log_bytes: int
    throttle_window_s: int
    throttled_s: float


FULL = Sizes(1024 * MIB, 3600, 120, 1800, 512 * MIB, 90, 450)
SHORT = Sizes(96 * MIB, 3600, 600, 20, 128 * MIB, 5, 16)
STORAGE = {"pending_memory": "16M", "lag_max": "32M", "apply_delay": "200ms"}


class Daemon:
    """With one volume, and what it tells of its window."""

    def __init__(self, folder: pathlib.Path, log_bytes: int, window_s: int, on_full: str):
        log = {"max_size": str(log_bytes), "track_size": "8M" if log_bytes < 512 * MIB else "16M", "on_full": on_full}
        self.daemon = mariner.Daemon(folder, log=log, storage=STORAGE, window=f"{window_s}s")

    def __enter__(self):
        self.daemon.start()
        self.iqn = self.daemon.create(VOLUME, "64M")["iqn"]
        self.created = time.time()
        return self

    def __exit__(self, *_):
        self.daemon.close()

    def metrics(self) -> dict[str, float]:
        """The sum over labels of each."""
        out: dict[str, float] = {}
        for row in self.daemon.http("/metrics")[1].splitlines():
            if not row.startswith("#"):
                name = re.split(r"[{ ]", row, maxsplit=1)[0]
                out[name] = out.get(name, 0) + float(row.split()[-1])
        return out

    def told(self, text: str) -> bool:
        return any(text in each for each in self.daemon.log_lines())


class SteadyWriter:
    """4 KiB at random, so many a second."""

    def __init__(self, daemon: Daemon, writes_per_s: int):
        self._session = libiscsi.Session(daemon.daemon.portal(), daemon.iqn, "iqn.2026-11.org.mariner:steady", 11)
        while self._session.command(bytes(6)).status != libiscsi.GOOD:  # unit attentions
            pass
        self._rate = writes_per_s
        self._began = time.monotonic()
        self._written = 0

    def catch_up(self):
        """Writes what is due by now."""
        due = int((time.monotonic() - self._began) * self._rate)
        data = os.urandom(BLOCK)
        for self._written in range(self._written, due):
            block = int.from_bytes(os.urandom(4), "little") % (64 * MIB // BLOCK)
            answer = self._session.command(struct.pack(">BBQIBB", 0x8A, 0, block * 8, 8, 0, 0), data)
            if answer.status != libiscsi.GOOD:
                raise mariner.Failed(f"a write failed: {answer}")
        self._written = max(self._written, due)

    def close(self):
        self._session.close()


def _foresee(sizes: Sizes, folder: pathlib.Path) -> dict:
    """When it was told first, by each way, and when it came true; in seconds since the load began."""
    out: dict = {"list": None, "metric": None, "log": None, "until": None, "told": []}
    with Daemon(folder, sizes.log_bytes, sizes.window_s, "shorten-window") as daemon:
        writer = SteadyWriter(daemon, sizes.writes_per_s)
        began = time.monotonic()
        look = began + 2
        while (now := time.monotonic() - began) < sizes.patience_s and out["until"] is None:
            writer.catch_up()
            time.sleep(0.02)
            if time.monotonic() < look:
                continue
            look += 2
            metrics = daemon.metrics()
            short_in = metrics.get("mariner_window_short_in_seconds")
            if short_in is not None:
                out["told"].append((now, short_in))
            listed = re.search(r"1h \(.+? in .+?\)", daemon.daemon.cli("volume", "list").out)
            for way, told in (("metric", short_in), ("list", listed), ("log", daemon.told("the log will be too small for a window"))):
                if told and out[way] is None:
                    out[way] = now
            if metrics["mariner_oldest_recoverable_timestamp_seconds"] > daemon.created + 1:
                out["until"] = now
        writer.close()
        out["given_up_told"] = daemon.told("history inside the window is given up")
    return out


def _overload(sizes: Sizes, folder: pathlib.Path) -> dict:
    """The samples of a second each, and what the load measured behind two windows."""
    window, seconds = sizes.throttle_window_s, sizes.throttled_s
    with Daemon(folder, sizes.throttle_log_bytes, window, "throttle") as daemon:
        warmup = min(2 * window, seconds / 2)
        load = subprocess.Popen([str(loads.LOAD), daemon.daemon.url(daemon.iqn), "--write", "--random", "--block", str(BLOCK), "--depth", str(DEPTH),
                                 "--warmup", str(warmup), "--seconds", str(seconds - warmup)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        samples = []
        began = time.monotonic()
        before, before_at = daemon.metrics(), began
        try:
            while load.poll() is None and time.monotonic() < began + seconds + loads.PATIENCE_S:
                time.sleep(max(0.0, before_at + 1 - time.monotonic()))
                metrics, at = daemon.metrics(), time.monotonic()

                def per_second(name: str) -> float:
                    return (metrics.get(name, 0) - before.get(name, 0)) / (at - before_at)
                back = time.time() - metrics["mariner_oldest_recoverable_timestamp_seconds"]
                samples.append({"at": at - began, "log": per_second("mariner_log_batch_bytes_sum"), "hosts": per_second("mariner_scsi_bytes_total"),
                                "back": back, "age": time.time() - daemon.created, "pace": metrics.get("mariner_write_pace_bytes_per_second")})
                before, before_at = metrics, at
        finally:
            load.kill()
        text, complaint = load.communicate()
        if not text:
            raise mariner.Failed(f"the load ended without a word: {complaint}\n{daemon.daemon.tail()}")
        run = json.loads(text)
        run["told"] = {"slowed": daemon.told("writes are slowed so that the log holds the windows"), "given_up": daemon.told("history inside the window is given up"),
                       "full": daemon.told("the log is full")}
    old_enough = [each["back"] / window for each in samples if each["age"] > window + 1]
    pieces = [samples[i:i + PIECE_S] for i in range(0, len(samples) - PIECE_S + 1, PIECE_S)]
    settled = [sum(each["log"] for each in piece) / PIECE_S for piece in pieces if piece[0]["at"] >= warmup] or [0.0]
    return {"samples": samples, "run": run, "back": min(old_enough, default=0), "settled": settled, "mean": sum(settled) / len(settled)}


def _rows(sizes: Sizes, scale: Scale, foreseen: dict, throttled: dict) -> list[Row]:
    def row(id: str, what: str, unit: str, ours: float | None, rival: float | None, rival_name: str, goal: float | None, less: bool = False, lacks: str = "", measured_s: float = sizes.throttled_s):
        return Row(f"forecast.{id}", what, unit, ours, rival, rival_name, measured_s, scale.name, goal, less, 0, scale.lacks or lacks)
    rows = []
    until = foreseen["until"]
    for way, what in (("list", "`mariner volume list`"), ("metric", "the metric"), ("log", "the daemon's log")):
        ahead = until - foreseen[way] if until is not None and foreseen[way] is not None else None
        rows.append(row(f"ahead.{way}", f"A window shorter than asked is told ahead, by {what}", "s", ahead, AHEAD_S, "ten minutes", 1, measured_s=until or 0))
    before = [(abs(until - AHEAD_S - at), short_in) for at, short_in in foreseen["told"]] if until is not None else []
    rows.append(row("error", "Ten minutes before, the forecast", "s", min(before)[1] if before else None, AHEAD_S, "what it came to", None, measured_s=until or 0))
    failure = throttled["run"]["failure"] or ("the log was full" if throttled["told"]["full"] or throttled["told"]["given_up"] else "")
    can_hold = sizes.throttle_log_bytes / sizes.throttle_window_s
    rows += [
        row("throttle.window", "Throttle: moments can be opened, as a multiple of the window", "", throttled["back"], 1, "the window", 1, lacks=failure),
        row("throttle.rate", "Throttle: the log is written, settled", "MB/s", throttled["mean"] / 1e6, can_hold / 1e6, "all of the log once in a window", None, lacks=failure),
        row("throttle.smooth", f"Throttle: least rate over {PIECE_S} s, settled", "MB/s", min(throttled["settled"]) / 1e6, throttled["mean"] / 1e6, "their mean", SMOOTH_MIN, lacks=failure),
        row("throttle.wait", "Throttle: longest write, settled", "ms", throttled["run"]["latency_us"]["max"] / 1000, WAIT_MS_MAX, "half a second", 1, less=True, lacks=failure)]
    return rows


def _picture(runs: dict[str, dict], window_s: int) -> str:
    series = []
    for name, run in runs.items():
        samples = run["samples"]
        means = [sum(each["log"] for each in samples[max(0, i - 2):i + 3]) / len(samples[max(0, i - 2):i + 3]) for i in range(len(samples))]
        series.append((name, [(each["at"], mean / 1e6) for each, mean in zip(samples, means)]))
    return curve.lines(f"What the log is written under an overload, a window of {window_s} s", curve.Axis("seconds"), curve.Axis("MB/s, over 5 s"), series)


def measure(scale: Scale, folder: pathlib.Path) -> Measured:
    sizes = SHORT if scale.short else FULL
    say("the throttle, under an overload")
    throttled = _overload(sizes, folder / "throttle")
    throttled["told"] = throttled["run"]["told"]
    say(f"reached back {throttled['back']:.2f} windows, {throttled['mean'] / 1e6:.2f} MB/s; the forecast of a steady load")
    foreseen = _foresee(sizes, folder / "forecast")
    table = header("", "MB/s of the log", "writes/s")
    for seconds in (5, 10, 20, 30, 45, 60, 90, 120, 150, 180, 240, 300, 360, 420, 450):
        part = [each for each in throttled["samples"] if seconds - 5 < each["at"] <= seconds]
        if part:
            table.append(line(f"{seconds - 5}-{seconds} s", f"{sum(each['log'] for each in part) / len(part) / 1e6:.2f}", number(sum(each["hosts"] for each in part) / len(part) / BLOCK)))
    notes = NOTES.format(log=sizes.log_bytes // MIB, rate=sizes.writes_per_s, window=sizes.window_s, until=foreseen["until"] or 0, throttle_log=sizes.throttle_log_bytes // MIB,
                         throttle_window=sizes.throttle_window_s, depth=DEPTH, throttled=sizes.throttled_s, room=throttled["mean"] * (sizes.throttle_window_s + 10) / sizes.throttle_log_bytes)
    return Measured(_rows(sizes, scale, foreseen, throttled), ["\n".join(table)], notes, {"foreseen": foreseen, "throttled": throttled},
                    {"throttle": _picture({"throttle": throttled}, sizes.throttle_window_s)})
