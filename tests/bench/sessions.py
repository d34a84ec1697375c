#!/usr/bin/env python3
"""Many sessions for ten minutes, some of which come and go: shares, memory, what is given back, and what was read.

    sessions.py [--short] [--seconds SECONDS] [--window DURATION] [--folder FOLDER]

A soak: mariner-sessions-load, which knows what each block must hold, and a look at the daemon every second. The same load on tgt
for a shorter time stands beside it. What is honest to say about the figures stands in NOTES."""

import argparse
import collections
import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import servers  # first: it shows Python where the end-to-end drivers are
import soak_judge as judge
from daemon_watch import DaemonWatch
from ending import end_cleanly
from results import OUT, Row, describe, goals, header, line, machine, number, say, write_json
from servers import GIB, Mariner, Tgt, Tgtd, mariner, write_once
from sessions_picture import picture

MIB = 1 << 20
LOAD = mariner.BUILD / "tests" / "bench" / "mariner-sessions-load"
SESSIONS, PASSING, DEPTH, READS, VOLUMES = 64, 16, 32, 70, 4
LIFE_S = 4
STORAGE = {"pending_memory": "64M", "lag_max": "256M", "apply_delay": "1s"}
INDEX = {"memory": "256M"}  # as it is by itself

SHARES_MAX = 1.5
TREND_MAX = 1.01  # of memory, in TREND_S
TREND_S = 600  # or the whole of what was measured, if that is less
MINUTE_MAX = 1.02
NEEDS_S = 600
PAYLOAD_SLACK = 272 * MIB  # the index takes what it may as its cache (INDEX), and has buffers for its runs

NOTES = """\
- {sessions} sessions with {depth} commands outstanding each: 4 KiB at random, {reads} % reads, on {volumes} volumes, one initiator program with one thread.
  {steady} sessions stay. {passing} live {life} s on average and are replaced: half of them log out; of the others a third is cut in the middle
  of its commands, a third is cut and back at once with the same ISID, a third is reinstated while it still works.
- Each session has a region of {region} for itself, knows what every block of it must hold, and verifies each read; in the end the whole is read once more.
  A write that was cut may have happened or not, but what the first read shows has to stay; one that comes later than that is *late*. Behind a
  reinstatement its blocks are read and written at once, behind the other cuts after {afterlife:g} s.
- Shares: the operations of the steady session with the most, beside those of the one with the fewest, over all {seconds:g} s and in the worst {window:g} s.
- Memory is the daemon's resident set, taken every second of the {seconds:g} s, after {warmup:g} s of the same load. The trend is a least-squares line.
  `[storage] pending_memory` is {pending}, `[index] memory` {index}; the log has {log} for a window of {protection}, and went round {turns:.1f} times before the measured part ended.
- *Given back*: {after:.0f} s after the last session had logged out.
- tgt, a plain rdwr store without durability, had the same load for {rival:g} s."""


@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    region_bytes: int
    log_bytes: int
    warmup_s: float
    seconds: float
    window_s: float
    minute_s: float  # of the second and the last "minute"
    rival_warmup_s: float
    rival_s: float
    initialise_s: float  # patience with the log's first writing
    afterlife_s: float   # how long what a cut left behind may be executed
    patience_s: float    # with what is to be given back
    window: str          # of protection: what fits into the log, so that it goes round without a wait

    @property
    def volume_bytes(self) -> int:
        return SESSIONS // VOLUMES * self.region_bytes


FULL = Scale("full", 16 * MIB, 3 * GIB, 120, 600, 10, 60, 10, 120, 120, 30, 60, "30s")
SHORT = Scale("short", MIB, 512 * MIB, 2, 12, 3, 3, 1, 6, 4, 4, 10, "3s")


def run_load(urls: list[str], scale: Scale, warmup_s: float, seconds: float, pid: int, on_event=lambda name: None) -> dict:
    """What mariner-sessions-load says in the end; with `failure` if it did not."""
    command = [str(LOAD), *urls, "--sessions", str(SESSIONS), "--passing", str(PASSING), "--depth", str(DEPTH), "--reads", str(READS),
               "--region-bytes", str(scale.region_bytes), "--life", str(LIFE_S), "--warmup", str(warmup_s), "--seconds", str(seconds),
               "--window", str(scale.window_s), "--afterlife", str(scale.afterlife_s), "--server-pid", str(pid)]
    load = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    # Filling and verifying take a while of their own; the program itself gives up after half a minute of silence.
    patience = threading.Timer(warmup_s + seconds + 600, load.kill)
    patience.start()
    result = {}
    try:
        for row in load.stdout:
            said = json.loads(row)
            if "event" in said:
                on_event(said["event"])
            else:
                result = said
        load.wait()
    finally:
        patience.cancel()
        load.kill()
        load.wait()
    return result or {"failure": f"mariner-sessions-load ended with {load.returncode}"}


class Soak:
    def __init__(self, scale: Scale, folder: pathlib.Path):
        self.scale = scale
        self.folder = folder
        self.ours: dict = {}
        self.rival: dict = {}
        self.samples: list[dict] = []
        self.before: dict = {}
        self.after: dict = {}
        self.times: dict[str, float] = {}
        self.given_back_s = 0.0
        self.troubles: list[str] = []

    def measure(self):
        scale = self.scale
        say(f"preparing in {self.folder}")
        with Mariner(self.folder / "mariner", scale.volume_bytes, scale.log_bytes, STORAGE, INDEX, VOLUMES, scale.window) as server:
            server.wait_initialised(scale.initialise_s)
            self._measure_ours(server)
        say("tgt")
        with tgt_units(self.folder / "tgt", scale.volume_bytes) as (tgt, urls):
            self.rival = run_load(urls, scale, scale.rival_warmup_s, scale.rival_s, tgt.pid)

    def _measure_ours(self, server: Mariner):
        scale = self.scale
        with DaemonWatch(server) as watch:
            time.sleep(2)
            self.before = self._look(watch)

            def on_event(name: str):
                self.times[name] = time.monotonic()
                say(name)

            self.ours = run_load(server.urls, scale, scale.warmup_s, scale.seconds, server.pid, on_event)
            ended = time.monotonic()
            self.after = self._look(watch)
            while not self._gave_back() and time.monotonic() < ended + self.scale.patience_s:
                time.sleep(1)
                self.after = self._look(watch)
            self.given_back_s = time.monotonic() - ended
        self.samples = watch.samples
        if watch.trouble:
            self.troubles.append(f"The daemon could not be watched to the end: {watch.trouble}")

    def _gave_back(self) -> bool:
        return (self.after["sessions"] == 0 and self.after["connections"] == 0 and
                self.after["payload"] <= self.before["payload"] + PAYLOAD_SLACK and
                not_of_store(self.after) <= not_of_store(self.before))

    @staticmethod
    def _look(watch: DaemonWatch) -> dict:
        looks = []
        for _ in range(3):  # whoever asks has a connection for a moment
            time.sleep(0.15)
            looks.append(watch.files())
        return {"files": min(looks, key=len)} | watch.sample()

    # -- what comes of it -------------------------------------------------------------------------

    def points(self, name: str) -> list[judge.Point]:
        """Of the measured time, in seconds from its beginning."""
        begin = self.times.get("measuring")
        if begin is None:
            return []
        all_points = [(sample["t"] - begin, float(sample[name])) for sample in self.samples]
        return judge.between(all_points, 0, self.scale.seconds)

    def _row(self, id: str, what: str, unit: str, ours: float, beside: float, name: str, goal: float | None,
             less_is_better: bool = True, seconds: float | None = None) -> Row:
        needs = 0 if goal is None else NEEDS_S
        return Row(id, what, unit, ours, beside, name, self.scale.seconds if seconds is None else seconds, self.scale.name, goal,
                   less_is_better, needs)

    def rows(self) -> list[Row]:
        return [*self._share_rows(), *self._memory_rows(), *self._count_rows(), *self._rival_rows()]

    def _share_rows(self) -> list[Row]:
        if not self.ours.get("windows"):
            return [Row("shares.whole", "shares of steady sessions", "IO", None, None, "the least", 0, self.scale.name, SHARES_MAX, True)]
        whole, worst = judge.shares(self.ours["steady"]), judge.worst(self.ours["windows"])
        least = "the session with the fewest"
        return [self._row("shares.whole", "steady session with the most operations, all the time", "IO", whole.most, whole.least, least,
                          SHARES_MAX),
                self._row("shares.window", f"the same in the worst {self.scale.window_s:g} s", "IO", worst.most, worst.least, least,
                          SHARES_MAX)]

    def _memory_rows(self) -> list[Row]:
        rows = []
        minute = self.scale.minute_s
        for name, what, judged in (("rss", "resident memory", True), ("anonymous", "its anonymous part", False)):
            points = self.points(name)
            if len(points) < 4:
                rows.append(Row(f"{name}.trend", what, "MiB", None, None, "", 0, self.scale.name, TREND_MAX, True))
                continue
            trend = judge.fit(points)
            length = min(TREND_S, self.scale.seconds)
            last = judge.highest(judge.between(points, self.scale.seconds - minute, self.scale.seconds))
            second = judge.highest(judge.between(points, minute, 2 * minute))
            rows.append(self._row(f"{name}.trend", f"{what}: its trend after {length:g} s", "MiB", trend.after(length) / MIB,
                                  trend.begin / MIB, "at the beginning", TREND_MAX if judged else None))
            rows.append(self._row(f"{name}.last", f"{what}: most in the last {minute:g} s", "MiB", last / MIB, second / MIB,
                                  f"in the second {minute:g} s", MINUTE_MAX if judged else None))
        return rows

    def _count_rows(self) -> list[Row]:
        ours, before, after = self.ours, self.before, self.after
        logins = ours.get("events", {}).get("login", 0)
        reads = ours.get("read_us", {}).get("count", 0)
        operations = ours.get("operations", 0)
        cut = ours.get("events", {}).get("write cut", 0)
        return [
            self._row("descriptors.after", "open descriptors in the end, without those of its store", "", not_of_store(after),
                      not_of_store(before), "before the load", 1),
            self._row("threads.after", "threads in the end", "", after["threads"], before["threads"], "before the load", None),
            self._row("sessions.after", "sessions that are gone in the end", "", logins - after["sessions"], logins, "logins", 1, False),
            self._row("connections.after", "connections that are gone in the end", "", logins - after["connections"], logins, "logins", 1,
                      False),
            self._row("payload.after", "payload in memory in the end", "MiB", after["payload"] / MIB,
                      (before["payload"] + PAYLOAD_SLACK) / MIB, f"before the load, and {PAYLOAD_SLACK // MIB} MiB that the index may have", 1),
            self._row("reads.right", "reads of what was written last", "", reads - ours.get("mismatches", reads), reads, "reads", 1, False),
            self._row("writes.late", "cut writes that did not come behind a read that did not show them", "", cut - ours.get("late", cut),
                      cut, "cut writes", 1, False),
            self._row("commands.good", "commands and logins that went as they should", "", operations + logins,
                      operations + logins + ours.get("failures", 1), "of all", 1, False)]

    def _rival_rows(self) -> list[Row]:
        if not self.rival.get("windows") or not self.ours.get("windows"):
            return []
        seconds = self.rival["seconds"]
        theirs = judge.shares(self.rival["steady"])
        name = "tgt"
        return [
            self._row("shares.tgt", "tgt: steady session with the most operations", "IO", theirs.most, theirs.least,
                      "the session with the fewest", None, True, seconds),
            self._row("shares.ratio.tgt", "most to fewest operations of a steady session", "", judge.shares(self.ours["steady"]).ratio,
                      theirs.ratio, name, None, True, seconds),
            self._row("rate.tgt", "operations a second, not durable at the rival", "IO/s", self.ours["rate"], self.rival["rate"], name,
                      None, False, seconds)]

    def table(self, records: list[dict], about: dict) -> str:
        return "\n\n".join([goals(records), self._sessions_table(), self._notes(), "Measured on " + describe(about)])

    def _sessions_table(self) -> str:
        lines = header("", "Mariner", "tgt")
        for what, cell in (("operations a second", lambda r: number(r["rate"])),
                           ("most / fewest of a steady session, all the time", lambda r: f"{judge.shares(r['steady']).ratio:.3f}"),
                           (f"... in the worst {self.scale.window_s:g} s", lambda r: f"{judge.worst(r['windows']).ratio:.3f}"),
                           ("longest time without an answer, s", lambda r: f"{r['silence_max_s']:.2f}"),
                           ("read in ms: p50 / p99 / max", lambda r: latencies(r["read_us"])),
                           ("write in ms: p50 / p99 / max", lambda r: latencies(r["write_us"])),
                           ("CPU of the server in µs for one operation", lambda r: number(r["server_cpu_s"] * 1e6 / r["operations"])),
                           ("logins / logouts / cuts / reinstatements", comings),
                           ("reads that were wrong", lambda r: str(r["mismatches"])),
                           ("cut writes / of them late", lambda r: f"{number(r['events'].get('write cut', 0))} / {r['late']}"),
                           ("what failed otherwise", lambda r: str(r["failures"]))):
            cells = [cell(run) if run.get("operations") else "not measured" for run in (self.ours, self.rival)]
            lines.append(line(what, *cells))
        told = [f"- {name}: {text}" for name, run in (("Mariner", self.ours), ("tgt", self.rival))
                for text in run.get("told", []) or ([run["failure"]] if run.get("failure") else [])]
        more = collections.Counter(self.after.get("files", [])) - collections.Counter(self.before.get("files", []))
        told += [f"- Mariner: in the end a descriptor more: {name}" + (f", {count} times" if count > 1 else "") for name, count in more.items()]
        return "\n".join([*lines, *([""] if told else []), *told, *(f"- {trouble}" for trouble in self.troubles)])

    def _notes(self) -> str:
        measured = self.times.get("measured", 0)
        logged = [sample["logged"] for sample in self.samples if sample["t"] <= measured] or [0]
        return NOTES.format(sessions=SESSIONS, depth=DEPTH, reads=READS, volumes=VOLUMES, steady=SESSIONS - PASSING, passing=PASSING,
                            life=LIFE_S, region=f"{self.scale.region_bytes // MIB} MiB", seconds=self.scale.seconds,
                            window=self.scale.window_s, warmup=self.scale.warmup_s, pending=STORAGE["pending_memory"],
                            index=INDEX["memory"], protection=self.scale.window, log=f"{self.scale.log_bytes // MIB} MiB",
                            turns=logged[-1] / self.scale.log_bytes, after=self.given_back_s, afterlife=self.scale.afterlife_s, rival=self.scale.rival_s)


def not_of_store(look: dict) -> int:
    """Descriptors but for those of RocksDB, which opens a file when one is full and keeps it."""
    return sum("/state/store" not in name for name in look["files"])


def latencies(of: dict) -> str:
    return " / ".join(f"{of[name] / 1000:,.1f}" for name in ("p50", "p99", "max"))


def comings(run: dict) -> str:
    events = run["events"]
    cuts = events.get("cut", 0) + events.get("cut and back with the same ISID", 0)
    return " / ".join(number(count) for count in (events.get("login", 0), events.get("logout", 0), cuts, events.get("reinstatement", 0)))


class tgt_units:
    """A tgtd with a target for each volume, and their URLs."""

    def __init__(self, folder: pathlib.Path, volume_bytes: int):
        self._folder, self._volume_bytes = folder, volume_bytes
        self._tgtd = Tgtd(folder)

    def __enter__(self):
        self._tgtd.__enter__()
        try:
            return self._tgtd, [self._add(number) for number in range(1, VOLUMES + 1)]
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self._tgtd.__exit__()

    def _add(self, number: int) -> str:
        file = self._folder / f"unit{number}.img"
        write_once(file, self._volume_bytes)
        iqn = self._tgtd.new_target(number, f"unit{number}", Tgt.TUNING)
        self._tgtd.admin("--mode", "logicalunit", "--op", "new", "--tid", number, "--lun", 1, "--backing-store", file, "--bstype", "rdwr")
        return f"iscsi://{servers.HOST}:{self._tgtd.port}/{iqn}/1"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="under a minute; shows that it works")
    parser.add_argument("--seconds", type=float, help="measured, instead of ten minutes")
    parser.add_argument("--window", help="of protection (default: 30s, 3s if short); 3d does not fit, so that writes wait for room once")
    parser.add_argument("--folder", type=pathlib.Path, default=OUT, help="on the file system to measure (default: %(default)s)")
    options = parser.parse_args()
    end_cleanly()
    scale = SHORT if options.short else FULL
    if options.seconds:
        part = min(1, options.seconds / scale.seconds)
        scale = dataclasses.replace(scale, seconds=options.seconds, warmup_s=scale.warmup_s * part, minute_s=scale.minute_s * part,
                                    rival_s=scale.rival_s * part)
    if options.window:
        scale = dataclasses.replace(scale, window=options.window)
    OUT.mkdir(parents=True, exist_ok=True)
    needed = scale.log_bytes + 2 * VOLUMES * scale.volume_bytes + GIB
    if (free := shutil.disk_usage(options.folder).free) < needed:
        say(f"{options.folder}: {needed / GIB:.0f} GiB are needed, {free / GIB:.0f} are free; --folder names another place")
        return 1
    about = machine(options.folder.resolve())
    with tempfile.TemporaryDirectory(prefix="sessions-", dir=options.folder) as folder:
        soak = Soak(scale, pathlib.Path(folder))
        soak.measure()
    records = [row.record(about) for row in soak.rows()]
    write_json(OUT / "sessions.json", records)
    write_json(OUT / "sessions-runs.json", {"mariner": soak.ours, "tgt": soak.rival, "before": soak.before, "after": soak.after,
                                            "times": soak.times, "samples": soak.samples})
    (OUT / "sessions.svg").write_text(picture(soak))
    print(soak.table(records, about))
    missing = [record["id"] for record in records if not record["holds"]]
    if missing:
        say("these rows do not hold: " + ", ".join(missing))
    wrong = any(soak.ours.get(name) for name in ("failure", "mismatches", "late", "failures"))
    return 1 if wrong or soak.troubles else 0


if __name__ == "__main__":
    sys.exit(main())
