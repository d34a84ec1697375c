#!/usr/bin/env python3
"""Versions of files, found out of the history of blocks: of file systems of this machine's kernel on volumes of a daemon.

    uvfs.py [--short]"""

import argparse
import contextlib
import dataclasses
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

import curve
import uvfs_lab as lab
import uvfs_usable as usable
from ending import end_cleanly
from results import OUT, Row, describe, goals, header, line, machine, number, say, write_json

ENTRIES, LIVES, VERSIONS = 10, 2, 2  # the paper's N, C and K
DIRECTORY_MS, ARCHIVE_MS = 3000, 5000
DEEP, DEEP_MS, SHALLOW, SHALLOW_MS = 16, 2.0, 3, 0.5
FIRST_LS_MS, READ, WRITTEN = 50, 0.7, 0.9
FILE_SYSTEM, VOLUME = 1 << 30, "3G"  # of what is browsed: behind the file system there is room to write to

NOTES = """\
- Volumes of one daemon on this machine, each with a file system that its kernel has mounted through QEMU's iSCSI initiator. Asked is the daemon, over its socket, by one process on one connection; a round begins with connecting, and with nothing known.
  "Kept": behind a first round, as in a mount: its connection is there, blocks that it has read, and what the journal had; how files were is found anew.
  Of it "asking" is the time until the daemon has answered. "Process" is `uvfs versions --below --json` from its start to its end.
- Postmark: the paper's 1,000 files, 1,000 directories and 10,000 transactions, mounted with sync,dirsync; names are changed, too, and links made, and each state is on the disk before the next operation: so there are more versions than the paper's 16,637 of 5,900.
- File server: {objects:,} objects, almost all of which are made and stay as they are, as the paper's hour of the Lair trace. (That trace is not to be had.) Mounted without sync.
- Directories deep: 10 entries in each that come and go, and 10 files with 2 lives and 2 versions each in the last: the root is the first of them. Mounted with sync,dirsync.
- Directory wide: files in the root directory, each made, written to and removed; all one after the other.
- Browsed: a file system of 1 GiB at the beginning of a volume, {browsers} moments of it behind one `uvfs mount`, and random writes at queue depth 32 to the rest of the volume. A browser walks its moment, looks at each entry and reads the beginning of each file, again and again;
  all of them stand for clients elsewhere, and have together what nobody else wants of the processors (one session, nice value 19); the mount is on this machine, too. The current LUN is mounted through the same initiator. With nothing in memory: the page cache was emptied just before.
- Medians of {rounds} rounds (of the large ones {few}); in the paper's columns what its text and tables say."""


@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    rounds: int
    few: int
    postmark: str  # files, directories, transactions
    kinds: tuple
    objects: int
    versions: int
    depths: tuple
    wide: tuple
    browsers: int
    large: int  # bytes of the file that is read
    seconds: float
    rounds_written: int


FULL = Scale("full", 15, 3, "1000 1000 10000", ("ext2", "ext3", "ext4"), 28_693, 29_674, (1, 2, 3, 4, 6, 8, 10, 12, 14, 16), (10, 100, 1000, 20_000), usable.BROWSERS, 256 << 20, 10, 5)
SHORT = Scale("short", 5, 1, "20 10 60", ("ext4",), 300, 310, (1, 3), (10, 100), 10, 16 << 20, 2, 1)


class Bench:
    def __init__(self, scale: Scale, daemon: lab.mariner.Daemon, folder: pathlib.Path):
        self.scale, self.daemon, self.folder = scale, daemon, folder
        self.runs: dict[str, dict] = {}
        self.usable: dict[str, dict] = {}

    def measure(self):
        scale = self.scale
        for kind in scale.kinds:
            with self._disk(f"postmark-{kind}", kind, "1G") as disk:
                lab.postmark(disk, self.folder / "told", scale.postmark)
            self._ask(disk, "below", ["/"], scale.few, process=True)
        with self._disk("archive", "ext3", "2G", "defaults") as disk:
            lab.archive(disk, scale.objects, scale.versions)
        self._ask(disk, "below", ["/"], scale.few, process=True)
        for depth in scale.depths:
            with self._disk(f"deep-{depth}", "ext4", "1G") as disk:
                path = lab.deep(disk, ENTRIES, depth, LIVES, VERSIONS)
            for kind, which in (("versions", path), ("incarnations", path), ("below", str(pathlib.PurePath(path).parent))):
                self._ask(disk, kind, [which], scale.rounds)
                self._ask(disk, kind, [which], scale.rounds, kept=True)
        for entries in scale.wide:
            with self._disk(f"wide-{entries}", "ext4", "1G") as disk:
                lab.wide(disk, entries)
            self._ask(disk, "below", ["/"], scale.few)

    def use(self):
        """With a log that has room for all that is written meanwhile: a mount holds the history back."""
        scale = self.scale
        with lab.Disk(self.daemon, self.folder, "browsed", "ext4", VOLUME, "defaults", f"{FILE_SYSTEM >> 20}M") as disk:
            moments = usable.fill(disk, scale.browsers, scale.large)
            say(f"browsed: {len(moments)} moments, {disk.newest() - disk.first:,} writes")
            with usable.mounted(self.daemon, "browsed", self.folder / "past") as past:
                ls = usable.first_ls(past, moments[:scale.rounds])
                reads = {"past": [], "current": []}
                for _ in range(scale.few):
                    reads["current"].append(usable.read_all(disk.root / "large"))
                    reads["past"].append(usable.read_all(past / f"@#{moments[len(moments) // 2]}" / "large"))
                written = usable.written_while_browsed(self.daemon, "browsed", past, moments, FILE_SYSTEM, scale.seconds, scale.rounds_written)
        self.usable = {"ls_ms": ls, "reads": reads, "written": written}
        write_json(OUT / "uvfs-usable.json", self.usable)

    @contextlib.contextmanager
    def _disk(self, name: str, kind: str, size: str, options: str = "sync,dirsync"):
        begun = time.monotonic()
        with lab.Disk(self.daemon, self.folder, name, kind, size, options) as disk:
            yield disk
        say(f"{name}: made in {time.monotonic() - begun:.0f} s, {disk.newest() - disk.first:,} writes")

    def _ask(self, disk: lab.Disk, kind: str, paths: list[str], rounds: int, process: bool = False, kept: bool = False):
        [got] = lab.ask(self.daemon, disk.name, disk.first, kind, paths, rounds, kept)
        run = {key: got[key] for key in ("path", "paths", "incarnations", "versions")}
        run |= {key: statistics.median(each[key] for each in got["rounds"]) for key in ("ms", "asking_ms", "calls", "blocks")}
        run |= {"all_ms": [each["ms"] for each in got["rounds"]], "writes": disk.newest() - disk.first}
        if process:
            run["process_ms"] = statistics.median(lab.ask_process(self.daemon, disk.name, disk.first, paths[0], rounds))
        name = f"{disk.name}, {kind}" + (", kept" if kept else "")
        self.runs[name] = run
        say(f"{name}: {run['versions']:,} versions of {run['paths']:,} paths in {run['ms']:.3g} ms")
        write_json(OUT / "uvfs-runs.json", self.runs)

    # -- what comes of it --------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        scale, rows = self.scale, []
        lacks = "" if scale is FULL else "the goal needs the full size"

        def add(key, what, unit, ours, rival, name, goal=1.0):
            rows.append(Row(key, what + " (less is better)", unit, ours, rival, name, 0, scale.name, goal, less_is_better=True, lacks=lacks))

        for kind in scale.kinds:
            run = self.runs[f"postmark-{kind}, below"]
            what = f"Postmark, {kind}: all {run['versions']:,} versions of {run['paths']:,} objects"
            add(f"directory.{kind}", what, "ms", run["ms"], DIRECTORY_MS, "the most it may be; the paper: 305 s for 16,637 of 5,900")
            add(f"directory.{kind}.process", f"{what}, printed as JSON by the command", "ms", run["process_ms"], DIRECTORY_MS, "the same", None)
        run = self.runs["archive, below"]
        what = f"File server: all {run['versions']:,} versions of {run['paths']:,} objects"
        add("archive", what, "ms", run["ms"], ARCHIVE_MS, "the most it may be; the paper: 849 s for 29,674 of 28,693, ext3cow: 14 s")
        add("archive.process", f"{what}, printed as JSON by the command", "ms", run["process_ms"], ARCHIVE_MS, "the same", None)
        for depth, most, paper in ((DEEP, DEEP_MS, "under 3 s"), (SHALLOW, SHALLOW_MS, "50 ms")):
            for key, which, what, goal in (("", ", kept", "connection and blocks kept", 1.0), (".first", "", "asked for the first time", None)):
                run = self.runs.get(f"deep-{depth}, versions{which}")
                add(f"version.{depth}{key}", f"A file's versions, {depth} directories deep, each, {what}", "ms", run and run["ms"] / run["versions"], most, f"the most it may be; the paper: {paper}", goal)
        add("first_ls", "A moment's first `ls -l`, with nothing in memory", "ms", statistics.median(self.usable["ls_ms"]), FIRST_LS_MS, "the most it may be")
        past, current = (statistics.median(self.usable["reads"][which]) for which in ("past", "current"))
        rows.append(Row("read", f"A file of {scale.large >> 20} MiB read through FUSE, as it was", "MB/s", past, current, "through the current LUN, mounted", 0, scale.name, READ, lacks=lacks))
        rates = self.usable["written"]["rates"]
        rows.append(Row("browsed", f"Writes while {scale.browsers} processes look at {scale.browsers} moments", "writes/s", statistics.median(rates["browsed"]), statistics.median(rates["alone"]),
                        "with nobody else", scale.seconds, scale.name, WRITTEN, lacks=lacks, paired=self.usable["written"]["ratio"]))
        return rows

    def figure_421(self) -> str:
        lines = header("directories deep (Figure 4.21 a to c)", "writes", "version search, of a version: first", "of it asking", "calls", "kept", "incarnation search, of an incarnation: first", "kept",
                       "directory search, of a version: first", "kept", "the paper: version search")
        paper = {3: "50 ms (blocks cached, connection kept)", 16: "under 3 s"}
        for depth in self.scale.depths:
            versions = self.runs[f"deep-{depth}, versions"]
            pairs = [[_ms(run["ms"] / run[of]) for run in (self.runs[f"deep-{depth}, {kind}"], self.runs[f"deep-{depth}, {kind}, kept"])]
                     for kind, of in (("versions", "versions"), ("incarnations", "incarnations"), ("below", "versions"))]
            lines.append(line(str(depth), number(versions["writes"]), pairs[0][0], _ms(versions["asking_ms"] / versions["versions"]), number(versions["calls"]), pairs[0][1], *pairs[1], *pairs[2],
                              paper.get(depth, "")))
        wide = header("files in the directory (Figure 4.21 d)", "writes", "versions found", "directory search", "of a version")
        for entries in self.scale.wide:
            run = self.runs[f"wide-{entries}, below"]
            wide.append(line(number(entries), number(run["writes"]), number(run["versions"]), _ms(run["ms"]), _ms(run["ms"] / run["versions"])))
        return "\n".join(lines) + "\n\n" + "\n".join(wide)

    def figure_422(self) -> str:
        """Where the time goes: the paper's are stat and readdir, processing, and iFSCK."""
        lines = header("(Figure 4.22, Tables 4.5)", "writes", "paths", "incarnations", "versions", "all", "asking", "processing", "calls", "blocks read", "process")
        for name, run in self.runs.items():
            if not name.startswith("deep") and not name.startswith("wide"):
                lines.append(line(name.split(",")[0], *(number(run[key]) for key in ("writes", "paths", "incarnations", "versions")), _ms(run["ms"]), _ms(run["asking_ms"]), _ms(run["ms"] - run["asking_ms"]),
                                  number(run["calls"]), number(run["blocks"]), _ms(run["process_ms"])))
        return "\n".join(lines)

    def picture(self) -> str:
        depths = self.scale.depths
        series = [(name, [(depth, self.runs[f"deep-{depth}, {kind}, kept"]["ms"] / self.runs[f"deep-{depth}, {kind}"][of]) for depth in depths])
                  for name, kind, of in (("version search", "versions", "versions"), ("incarnation search", "incarnations", "incarnations"), ("directory search", "below", "versions"))]
        return curve.lines("What a version, or an incarnation, takes to be found", curve.Axis("directories deep"), curve.Axis("ms", logarithmic=True), series,
                           [curve.Mark("the paper, 3 deep", 3, 50)])


def _ms(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="small and quick; shows that it works")
    scale = SHORT if parser.parse_args().short else FULL
    if missing := lab.may_measure():
        say(missing)
        return 1
    end_cleanly()
    OUT.mkdir(parents=True, exist_ok=True)
    about = machine(OUT.resolve())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="uvfs-", dir=OUT))
    try:
        with lab.mariner.Daemon(folder, log={"max_size": "24G" if scale is FULL else "2G"}) as daemon:
            daemon.start()
            bench = Bench(scale, daemon, folder)
            bench.measure()
        with lab.mariner.Daemon(folder / "usable", log={"max_size": "24G" if scale is FULL else "2G"}) as daemon:
            daemon.start()
            bench.daemon, bench.folder = daemon, folder / "usable"
            bench.use()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    records = [row.record(about) for row in bench.rows()]
    write_json(OUT / "uvfs.json", records)
    (OUT / "uvfs.svg").write_text(bench.picture(), encoding="utf8")
    print("\n\n".join([goals(records), bench.figure_421(), bench.figure_422(), NOTES.format(rounds=scale.rounds, few=scale.few, objects=scale.objects, browsers=scale.browsers), "Measured on " + describe(about)]))
    missing = [r["id"] for r in records if r["goal"] is not None and not r["holds"]]
    if missing:
        say("does not hold: " + ", ".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
