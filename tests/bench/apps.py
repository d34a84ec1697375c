#!/usr/bin/env python3
"""Applications on Mariner, beside tgt and a local disk: Postmark, SQLite, PostgreSQL, and single operations of a file system.

    apps.py [--short | --papers] [--load ID]... [--folder FOLDER]

Takes root, FUSE and loop devices (apps_disk.py), and PostgreSQL and nbdfuse. About two hours; --short: two minutes; --papers:
Postmark as large as the dissertation's, for a night."""

import argparse
import dataclasses
import pathlib
import shutil
import signal
import sys
import tempfile

import servers  # first: it shows Python where the end-to-end drivers are
import apps_disk
import apps_papers
import apps_pgbench
from apps_fsync import Fsync
from apps_operations import Operations
from apps_paced import BURST, PAUSE_MS, Paced
from apps_papers import short
from apps_pgbench import Pgbench
from apps_postmark import Postmark
from apps_servers import DURABLE, FLUSHED, LOCAL, MEMORY, NAMES, OURS, SYNC, Rack
from apps_sqlite import Sqlite
from apps_turns import Figures, Turns
from chart import bars
from results import OUT, Row, describe, header, line, machine, say, write_json
from servers import GIB

MIB = 1 << 20
RIVALS = (DURABLE, MEMORY, LOCAL)
INTERVALS_US = (100, 140, 180, 240, 300, 500, 1000, 2000)
BURST_INTERVALS_US = (0, 60, 120, 180, 300)

NOTES = """\
- The same path for all: ext4 on a loop device (O_DIRECT), nbdfuse, QEMU's storage daemon, libiscsi, the target on loopback; all on
  the cores of this machine. Some six requests are under way at once at most. *Local disk, same path*: the storage daemon has a file
  (O_DIRECT, fdatasync) instead of a LUN, so it lacks the network and a target, not the rest.
- Mariner keeps its history, and has made every write durable before it answers; *tgt, durable* is the better of rdwr with
  bsoflags=sync and rdwr with a write cache whose flushes are honoured, for each load by its first figure (named below).
  *tgt, in memory* has its store in tmpfs, where a flush does nothing: a ceiling that nothing durable reaches.
- Every fsync reaches the target: Mariner counted {flushes} SYNCHRONIZE CACHE and {writes} writes for each of an application that appends
  4 KiB and flushes. It makes each of these writes durable by itself; a write cache makes them durable with the flush.
- Medians of {rounds} run{s}, servers in turn, a new file system on the same LUN each time; what Mariner had to apply to its image was applied
  before the next one's turn. Its log {log}.
- Postmark: {postmark}; sizes of 500 to 10,000 bytes, pieces of 4 KiB, one thread. *sync*: mounted so; *fsync*: each file is flushed before it
  is closed. SQLite: one row a transaction, synchronous=FULL. pgbench: scale {pg_scale}, Debian's defaults, {pg_s:g} s. Operations: `sync,dirsync`,
  {operations} of each, setattr flushed as nfsd does.
- At set intervals: {paced} writes of 4 KiB at random, straight to the LUN; tgt durable by bsoflags=sync or by FUA on each.
  A latency counts from when a write was due."""


@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    volume_bytes: int
    log_bytes: int
    initialise_s: float
    rounds: int
    storage: dict
    postmark: tuple[int, int, int]  # files, folders, transactions
    sqlite_s: float
    pgbench: tuple[int, float]  # scale, seconds
    fsyncs: int
    operations: int
    paced: int  # writes
    bursts: int

    def loads(self) -> list:
        files, folders, transactions = self.postmark
        size = {"files": files, "folders": folders, "transactions": transactions}
        return [
            Fsync("fsync", "append 4 KiB, fsync", self.fsyncs),
            Postmark("postmark_sync", "Postmark, sync", **size),
            Postmark("postmark_sync_r0", "Postmark, sync, all append", **size, read_bias=0),
            Postmark("postmark_sync_r8", "Postmark, sync, 8 of 10 read", **size, read_bias=8),
            Postmark("postmark_fsync", "Postmark, fsync", **size, fsync=True),
            Sqlite("sqlite_delete", "SQLite, rollback journal", "DELETE", self.sqlite_s),
            Sqlite("sqlite_wal", "SQLite, log ahead", "WAL", self.sqlite_s),
            Pgbench("pgbench", "pgbench", *self.pgbench),
            Operations("operations", "operation", self.operations),
            *(Paced(f"interval_{us}", f"4 KiB every {us} us", us, self.paced) for us in INTERVALS_US),
            *(Paced(f"burst_{us}", f"bursts of {BURST}, 4 KiB every {us} us", us, BURST * self.bursts, bursts=True) for us in BURST_INTERVALS_US),
        ]


# A fifth of the dissertation's Postmark: its files are in the page cache then, as here, and rates do not depend on how many.
FULL = Scale("full", GIB, 8 * GIB, 180, 3, {}, (2000, 200, 10_000), 20, (10, 30), 1000, 500, 10_000, 10)
DISSERTATION = (10_000, 1000, 50_000)
SHORT = Scale("short", 384 * MIB, GIB, 3, 1, {"apply_delay": "100ms"}, (40, 4, 50), 0.2, (1, 1), 30, 10, 500, 1)


class Report:
    def __init__(self, scale: Scale, loads: list, turns: Turns, log_text: str):
        self.scale, self.loads, self.turns = scale, loads, turns
        self.figures = Figures(loads, turns.runs)
        self._log_text = log_text

    def commands_each(self, operation: str) -> float | None:
        """Of Mariner, for each fsync."""
        done = self.turns.flushes
        return sum(each[operation] for each in done) / sum(each["fsync"] for each in done) if done else None

    def name_of(self, load, rival: str) -> str:
        if rival != DURABLE:
            return NAMES[rival]
        chosen = self.figures.better_tgt(load.id)
        if isinstance(load, Paced) and chosen == FLUSHED:
            return "tgt, durable (FUA on each write)"
        return f"{NAMES[rival]} ({NAMES[chosen].removeprefix('tgt, ')})" if chosen else NAMES[rival]

    def rivals(self, load) -> tuple[str, ...]:
        return (DURABLE, MEMORY) if isinstance(load, Paced) else RIVALS

    def rows(self) -> list[Row]:
        rows = []
        for load in self.loads:
            for name, (what, unit, less) in load.figures().items():
                for rival in self.rivals(load):
                    lacks = [self.figures.failures(load.id, server) for server in (OURS, rival)]
                    rows.append(Row(f"{load.id}.{name}.{rival}", f"{load.what}: {what}", unit, self.figures.value(load.id, OURS, name),
                                    self.figures.value(load.id, rival, name), self.name_of(load, rival),
                                    self.figures.seconds(load.id, OURS), self.scale.name, less_is_better=less,
                                    lacks="; ".join(filter(None, lacks))))
        if any(load.id == "fsync" for load in self.loads):
            rows.append(Row("flushes", "SYNCHRONIZE CACHE for an fsync", "", self.commands_each("flush"), 1, "fsyncs",
                            self.figures.seconds("fsync", OURS), self.scale.name, goal=1))
        return rows

    def table(self, about: dict) -> str:
        parts = [self._applications(), self._paced(), self._papers(), self._notes(), "Measured on " + describe(about)]
        return "\n\n".join(filter(None, parts))

    def _cells(self, load, name: str, unit: str, less: bool) -> list[str]:
        ours = self.figures.value(load.id, OURS, name)
        cells = [f"**{short(ours)} {unit.replace('us', 'µs')}**"]
        for rival in RIVALS:
            theirs = self.figures.value(load.id, rival, name)
            times = apps_papers.times_better(ours, theirs, less)
            cells.append("" if rival not in self.rivals(load) else short(theirs) + (f" ({times:.2f}×)" if times else ""))
        return cells

    def _applications(self) -> str:
        loads = [load for load in self.loads if not isinstance(load, Paced)]
        if not loads:
            return ""
        lines = header("", "Mariner", *(NAMES[r] for r in RIVALS), "tgt durable by")
        for load in loads:
            chosen = self.figures.better_tgt(load.id)
            for name, (what, unit, less) in load.figures().items():
                lines.append(line(f"{load.what}: {what}", *self._cells(load, name, unit, less),
                                  NAMES[chosen].removeprefix("tgt, ") if chosen else "–"))
        return "\n".join(lines) + "\n\nIn brackets: how many times better Mariner is (of times: the other's as a multiple of Mariner's)."

    def _paced(self) -> str:
        loads = [load for load in self.loads if isinstance(load, Paced)]
        if not loads:
            return ""
        lines = header("latency in µs: mean / p99", "Mariner", *(NAMES[r] for r in (DURABLE, MEMORY)))
        for load in loads:
            cells = [" / ".join(short(self.figures.value(load.id, server, name)) for name in ("mean", "p99"))
                     for server in (OURS, DURABLE, MEMORY)]
            lines.append(line(load.what, *cells))
        knees = []
        for server in (OURS, DURABLE):
            means = {load.interval_us: self.figures.value(load.id, server, "mean") for load in loads if not load.bursts}
            if means and all(means.values()):
                knee = apps_papers.knee_us(means)
                knees.append(f"{NAMES[server]} {knee} µs")
        return "\n".join(lines) + (
            f"\n\nThe shortest interval before the mean doubles: {', '.join(knees)}; Figure 4.13: {apps_papers.PAPER_KNEE_US} µs." if knees else "")

    def _papers(self) -> str:
        if not {"postmark_sync", "operations"} <= {load.id for load in self.loads}:
            return ""
        known = {load.id: load for load in self.loads}

        def less(load_id: str, name: str) -> bool:
            return load_id in known and self.figures.less_is_better(load_id, name)
        return apps_papers.shapes_table(self.figures.value, less) + "\n\nWhat the dissertation's systems were, and ours:\n" + apps_papers.systems_text()

    def _notes(self) -> str:
        files, folders, transactions = self.scale.postmark
        return NOTES.format(flushes=short(self.commands_each("flush")), writes=short(self.commands_each("write")), rounds=self.scale.rounds, s="s" * (self.scale.rounds > 1),
                            log=self._log_text, postmark=f"{files:,} files, {folders:,} folders, {transactions:,} transactions",
                            pg_scale=self.scale.pgbench[0], pg_s=self.scale.pgbench[1], operations=self.scale.operations,
                            paced=f"{self.scale.paced:,}")

    def picture(self) -> str:
        groups = []
        for load in self.loads:
            for name, (what, unit, less) in load.figures().items():
                if isinstance(load, Paced) or (less and unit != "ms"):
                    continue
                values = [(NAMES[s], self.figures.value(load.id, s, name)) for s in (OURS, *RIVALS)]
                if unit == "ms":
                    values = [(who, value and value * 1000) for who, value in values]
                groups.append((f"{load.what}: {what}", "us" if unit == "ms" else unit, values))
        return bars("Applications on Mariner, beside tgt and a local disk", groups)


def log_text(rack: Rack) -> str:
    used, limit = (rack.mariner.metric(f"mariner_log_{name}_bytes") for name in ("used", "limit"))
    if not limit:
        return "is not known: its daemon does not answer any more"
    text = f"was {100 * used / limit:.0f} % full in the end"
    return text if rack.initialised else text + ", and its space had not all been written once when the measurement began"


def lacks(scale: Scale, folder: pathlib.Path) -> str:
    needed = scale.log_bytes + 3 * scale.volume_bytes + GIB
    free = shutil.disk_usage(folder).free
    if free < needed:
        return f"{folder}: {needed / GIB:.0f} GiB are needed, {free / GIB:.0f} are free; --folder names another place"
    return apps_disk.lacks() or apps_pgbench.lacks()


def end_once(*_):
    """The first ^C or SIGTERM; what is cleaned up then is not to be disturbed by another one."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="two minutes; shows that it works")
    parser.add_argument("--papers", action="store_true", help="Postmark as large as the dissertation's, which takes a night")
    parser.add_argument("--load", action="append", metavar="ID", help="only this one (again: and that), such as postmark_sync")
    parser.add_argument("--folder", type=pathlib.Path, default=OUT, help="on the file system to measure (default: %(default)s)")
    options = parser.parse_args()
    scale = SHORT if options.short else FULL
    if options.papers and not options.short:
        scale = dataclasses.replace(scale, name="papers", postmark=DISSERTATION)
    loads = [load for load in scale.loads() if not options.load or load.id in options.load]
    if not loads:
        parser.error(f"--load: one of {', '.join(load.id for load in scale.loads())}")
    OUT.mkdir(parents=True, exist_ok=True)
    if why := lacks(scale, options.folder):
        say(why)
        return 1
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end_once)
    about = machine(options.folder.resolve())
    with tempfile.TemporaryDirectory(prefix="apps-", dir=options.folder) as folder:
        folder = pathlib.Path(folder)
        say(f"preparing in {folder}")
        with Rack(folder, scale.volume_bytes, scale.log_bytes, scale.initialise_s, scale.storage) as rack:
            turns = Turns(rack, loads, folder)
            turns.measure(scale.rounds)
            report = Report(scale, loads, turns, log_text(rack))
    records = [row.record(about) for row in report.rows()]
    name = "apps" if not options.load else "apps-part"
    write_json(OUT / f"{name}.json", records)
    write_json(OUT / f"{name}-runs.json", turns.runs | {"flushes": turns.flushes})
    (OUT / f"{name}.svg").write_text(report.picture())
    print(report.table(about))
    missing = [record["id"] for record in records if not record["holds"]]
    if missing:
        say("do not hold: " + ", ".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
