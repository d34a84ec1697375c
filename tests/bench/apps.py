#!/usr/bin/env python3
"""Applications on Mariner, beside tgt and a local disk: Postmark, SQLite, PostgreSQL, and single operations of a file system.

    apps.py [--short | --papers] [--load ID]... [--rounds N] [--folder FOLDER]

Takes root, FUSE and loop devices (apps_disk.py), and PostgreSQL and nbdfuse. About two hours; --short: two minutes; --papers:
Postmark as large as the dissertation's, for a night. --load: only that, and into apps-part.json and so on."""

import argparse
import dataclasses
import pathlib
import shutil
import sys
import tempfile

import servers  # first: it shows Python where the end-to-end drivers are
import apps_disk
import apps_pgbench
from apps_fsync import Fsync
from apps_operations import Operations
from apps_paced import BURST, Paced
from apps_pgbench import Pgbench
from apps_postmark import Postmark
from apps_report import Report
from apps_servers import Rack
from apps_sqlite import Sqlite
from apps_turns import Turns
from ending import end_cleanly
from results import OUT, machine, say, write_json
from servers import GIB

MIB = 1 << 20
INTERVALS_US = (100, 140, 180, 240, 300, 500, 1000, 2000)
BURST_INTERVALS_US = (0, 60, 120, 180, 300)

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
FULL = Scale("full", GIB, 16 * GIB, 180, 3, {}, (2000, 200, 10_000), 20, (10, 30), 1000, 500, 10_000, 10)
DISSERTATION = (10_000, 1000, 50_000)
SHORT = Scale("short", 384 * MIB, GIB, 10, 1, {"apply_delay": "100ms"}, (30, 3, 40), 0.2, (1, 1), 25, 8, 400, 1)


def log_text(rack: Rack) -> str:
    used, limit = (rack.mariner.metric(f"mariner_log_{name}_bytes") for name in ("used", "limit"))
    if not limit:
        return "is not known: its daemon does not answer any more"
    share = used / limit
    text = f"was {100 * share:.0f} % full in the end" if share < 0.95 else "was full, so what it gave up to go round is in these figures"
    return text if rack.initialised else text + ", and its space had not all been written once when the measurement began"


def lacks(scale: Scale, folder: pathlib.Path) -> str:
    needed = scale.log_bytes + 3 * scale.volume_bytes + GIB
    free = shutil.disk_usage(folder).free
    if free < needed:
        return f"{folder}: {needed / GIB:.0f} GiB are needed, {free / GIB:.0f} are free; --folder names another place"
    return apps_disk.lacks() or apps_pgbench.lacks()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="two minutes; shows that it works")
    parser.add_argument("--papers", action="store_true", help="Postmark as large as the dissertation's, which takes a night")
    parser.add_argument("--load", action="append", metavar="ID", help="only this one (again: and that), such as postmark_sync")
    parser.add_argument("--rounds", type=int, metavar="N", help="instead of three")
    parser.add_argument("--folder", type=pathlib.Path, default=OUT, help="on the file system to measure (default: %(default)s)")
    options = parser.parse_args()
    scale = SHORT if options.short else FULL
    if options.papers and not options.short:
        scale = dataclasses.replace(scale, name="papers", postmark=DISSERTATION)
    if options.rounds is not None:
        if options.rounds < 1:
            parser.error(f"--rounds: at least 1, found {options.rounds}")
        scale = dataclasses.replace(scale, rounds=options.rounds)
    loads = [load for load in scale.loads() if not options.load or load.id in options.load]
    if not loads:
        parser.error(f"--load: one of {', '.join(load.id for load in scale.loads())}")
    OUT.mkdir(parents=True, exist_ok=True)
    if why := lacks(scale, options.folder):
        say(why)
        return 1
    end_cleanly()
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
    if curves := report.interval_picture():
        (OUT / f"{name}-intervals.svg").write_text(curves)
    print(report.table(about))
    missing = [record["id"] for record in records if not record["holds"]]
    if missing:
        say("do not hold: " + ", ".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
