#!/usr/bin/env python3
"""A moment of a volume checked by what has changed since a known one, beside e2fsck on a raw copy of that moment.

    ifsck.py [--short]"""

import argparse
import contextlib
import dataclasses
import json
import pathlib
import shutil
import statistics
import sys
import tempfile

import ifsck_lab as lab
from ending import end_cleanly
from results import OUT, Row, describe, goals, header, line, machine, number, say, write_json

LEVEL_1_MS, LEVEL_3_MS, MANY_MS = 25, 5, 1000
UNCHANGED, FASTER, FEWER_BLOCKS = 1.1, 40, 100
# Level 3 is of this file.
LEVELS = (1, 2, 3)
PATH = "/t{tree}/f0"

NOTES = """\
- Volumes: sparse images in one folder of this machine, filled with 10,001 inodes for each gibibyte of files (a hundred directories of 99 files of 48 KiB, but for one of 5.7 MiB each), so that 5 % of each group stay free. Then a kernel has
  one mounted, and small files are made, deleted, written to, renamed and synced, until so many of its blocks are different. "Here": all in the hundred directories of one gibibyte. "Everywhere": in a hundred of all.
- The moment is the image as it then is, while still mounted. "At rest": everything was written back. "Torn": a fifth of the blocks come behind the last sync, of files that were synced by themselves: what a crash leaves.
- Ours: check_moment() at level 1, with mending, from the moment before the load, whose state is read from its file. Asked of the image and the trace of what was written since; what each round knows was forgotten before.
  "State" is the time to read that file and is a part of the whole; "unmended": what is wrong is found, and stays. The process has started before.
- By size: the same operations are done in the hundred directories of a gibibyte of both volumes, {pairs} times others; what the checks took, of both in turn, is added up.
- e2fsck -f -n on the raw image of the moment, where it writes nothing and ours mends (with a journal -y, on a copy of it); its process is included (`e2fsck -V` takes {start_ms:.1f} ms). Blocks read are what it asked the kernel for (rchar of /proc/PID/io); from the disk comes what stands in read_bytes.
- Cold: the page cache was emptied just before (and the program read again). Warm: it was not. Medians of {rounds} rounds, ours and e2fsck's in turn; in brackets the least. A round of ours is the third check of a process; warm, the median of its third to ninth. Both run with
  real-time priority (`chrt -f`), so that others at work on the machine take little of it."""


@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    rounds: int
    pairs: int  # of windows with the same operations, of the small volume and of the large one
    small: int  # trees of 10,001 inodes and 1 GiB
    middle: int
    large: int
    window: int  # blocks
    growth: tuple
    many: int


FULL = Scale("full", 5, 5, 1, 10, 100, 300, (30, 100, 300, 1000, 3000, 10_000), 35_000)
SHORT = Scale("short", 3, 1, 1, 2, 3, 100, (30, 300), 1000)


class Bench:
    def __init__(self, scale: Scale, folder: pathlib.Path):
        self.scale = scale
        self.folder = folder
        self.runs: dict[str, dict] = {}
        self.sizes: dict[str, dict] = {}  # by the kind and what is measured; then by trees, of each pair
        self.start_ms = lab.e2fsck_start_ms()

    def measure(self):
        scale = self.scale
        for kind in ("ext2", "ext4 without journal"):
            with self._volume(kind, scale.small) as small, self._volume(kind, scale.large) as large:
                self._windows(small)
                self._windows(large)
                self._sizes(small, large)
                if kind == "ext2":
                    self._growth(large)
            if kind == "ext2":
                with self._volume(kind, scale.middle) as volume:
                    self._windows(volume)
        for kind in ("ext3", "ext4"):
            with self._volume(kind, scale.large) as volume:
                self._window(f"{kind}, {volume.trees} GiB, journal", volume, scale.window, False, 0.99, replay=True)

    def _volume(self, kind: str, trees: int):
        say(f"{kind}, {trees} GiB ...")
        return lab.Volume.make(kind, trees, self.folder)

    def _windows(self, volume: lab.Volume):
        name = f"{volume.kind}, {volume.trees} GiB"
        for torn in (False, True):
            what = "torn" if torn else "at rest"
            self._window(f"{name}, {what}, here", volume, self.scale.window, False, 0.2 if torn else 0)
            if volume.trees == self.scale.large:
                self._window(f"{name}, {what}, everywhere", volume, self.scale.window, True, 0.2 if torn else 0)

    def _sizes(self, *volumes: lab.Volume):
        for what, durable in (("at rest", 0), ("torn", 0.2)):
            for pair in range(self.scale.pairs):
                steps, windows = None, []
                with contextlib.ExitStack() as stack:
                    for volume in volumes:
                        window = lab.make_window(volume, lab.folders_of(volume, False), self.scale.window, durable, pair + 2, steps)
                        windows.append(stack.enter_context(window))
                        steps = window.steps
                        say(f"{volume.kind}, {volume.trees} GiB, {what}: {window.blocks} blocks of {sum(steps)} operations")
                        lab.know(window)
                    self._size(f"{volumes[0].kind}, {what}", windows)

    def _size(self, name: str, windows: list[lab.Window]):
        for when, cold in (("cold", True), ("warm", False)):
            for level in (1, 3):
                took: list[list] = [[] for _ in windows]
                for _ in range(self.scale.rounds):
                    for window, mine in zip(windows, took):
                        mine.append(lab.ours(window, cold, level, _path(window.volume) if level == 3 else ""))
                for window, mine in zip(windows, took):
                    self.sizes.setdefault(f"{name}, level {level}, {when}", {}).setdefault(window.volume.trees, []).append(lab.medians(mine) | {"changed": window.blocks})
        write_json(OUT / "ifsck-sizes.json", self.sizes)

    def _growth(self, volume: lab.Volume):
        for blocks in self.scale.growth:
            self._window(f"growth, {blocks}", volume, blocks, True, 0.2, rival=False)
        self._window(f"growth, {self.scale.many}", volume, self.scale.many, True, 0.2, folders=10_000)

    def _window(self, name: str, volume: lab.Volume, blocks: int, spread: bool, durable: float, replay: bool = False,
                rival: bool = True, folders: int = 100):
        with lab.make_window(volume, lab.folders_of(volume, spread, folders), blocks, durable) as window:
            say(f"{name}: {window.blocks} blocks of {sum(window.steps)} operations")
            got = {"kind": volume.kind, "gib": volume.trees, "inodes": volume.inodes, "blocks": window.blocks, "operations": sum(window.steps)}
            rounds = self.scale.rounds
            lab.know(window)
            for cold in (True, False):
                when = "cold" if cold else "warm"
                each: dict[str, list] = {}
                for _ in range(rounds):
                    each.setdefault("ours", []).append(lab.ours(window, cold))
                    each.setdefault("unmended", []).append(lab.ours(window, cold, mends=False))
                    if rival:
                        each.setdefault("e2fsck", []).append(lab.e2fsck(window, cold, "-f", "-y" if replay else "-n"))
                    if replay:
                        each.setdefault("replay", []).append(lab.e2fsck(window, cold, "-y", "-E", "journal_only"))
                        each.setdefault("preen", []).append(lab.e2fsck(window, cold, "-p"))
                got[when] = {who: lab.medians(mine) for who, mine in each.items()}
                for level in LEVELS[1:]:
                    got[when][f"level {level}"] = lab.medians([lab.ours(window, cold, level, _path(volume) if level == 3 else "") for _ in range(rounds)])
            got["full"] = volume.full
            self.runs[name] = got
            write_json(OUT / "ifsck-runs.json", self.runs)

    # -- what comes of it --------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        scale, rows = self.scale, []
        lacks = "" if scale is FULL else "the goal needs the full size"

        def add(key, what, unit, ours, rival, name, goal, less=True):
            rows.append(Row(key, what, unit, ours, rival, name, 0, scale.name, goal, less_is_better=less, lacks=lacks))

        for kind in ("ext2", "ext4 without journal"):
            key = kind.split()[0]
            for what in ("at rest, here", "torn, here", "at rest, everywhere", "torn, everywhere"):
                large = self.runs[f"{kind}, {scale.large} GiB, {what}"]
                label = f"{kind}, {large['inodes']:,} inodes, {scale.large} GiB of files, {large['blocks']} blocks changed ({what})"
                for when in ("cold", "warm"):
                    mine, theirs = large[when]["ours"], large[when]["e2fsck"]
                    add(f"level1.{key}.{what}.{when}", f"{label}: level 1, {when} (less is better)", "ms", mine["all_ms"], LEVEL_1_MS, "the most it may be", 1)
                    add(f"faster.{key}.{what}.{when}", f"{label}: as long, {when} (less is better)", "ms", mine["all_ms"], theirs["ms"], "e2fsck -f",
                        1 / FASTER if when == "cold" else None)
                mine, theirs = large["cold"]["ours"], large["cold"]["e2fsck"]
                add(f"blocks.{key}.{what}", f"{label}: blocks read (less is better)", "", mine["blocks_read"], theirs["blocks_read"], "e2fsck -f", 1 / FEWER_BLOCKS)
            for what in ("at rest", "torn"):
                for level in (1, 3):
                    for when in ("cold", "warm"):
                        pairs = self.sizes[f"{kind}, {what}, level {level}, {when}"]
                        large, small = (statistics.fmean(each["all_ms"] for each in pairs[trees]) for trees in (scale.large, scale.small))
                        add(f"size.{key}.{what}.level{level}.{when}", f"{kind}, {what}: level {level} of {scale.large} GiB, as long as of {scale.small} GiB, {when} (less is better)",
                            "ms", large, small, f"{scale.small} GiB", UNCHANGED)
        for kind in ("ext3", "ext4"):
            run = self.runs[f"{kind}, {scale.large} GiB, journal"]
            for when in ("cold", "warm"):
                mine = run[when]["ours"]
                for rival, name in (("replay", "e2fsck -E journal_only"), ("preen", "e2fsck -p")):
                    less_start = max(run[when][rival]["ms"] - self.start_ms, 0.1)
                    add(f"journal.{kind}.{rival}.{when}", f"{kind}, {run['inodes']:,} inodes, {mine['replayed']:.0f} blocks in the journal: replay and check, {when} (less is better)",
                        "ms", mine["all_ms"], less_start, f"{name}, without the start of its process", 1 if rival == "replay" and when == "cold" else None)
        many = self.runs[f"growth, {scale.many}"]
        for when in ("cold", "warm"):
            add(f"many.{when}", f"ext2, {many['inodes']:,} inodes, {many['blocks']:,} blocks changed in 10,000 directories (torn): level 1, {when} (less is better)", "ms",
                many[when]["ours"]["all_ms"], MANY_MS, "the most it may be; the paper: 17 s", 1)
            add(f"many.unmended.{when}", f"the same, {many[when]['ours']['findings']:,.0f} findings not mended, {when} (less is better)", "ms",
                many[when]["unmended"]["all_ms"], MANY_MS, "the most it may be", None)
        levels = self.runs[f"ext2, {scale.large} GiB, at rest, here"]["cold"]
        add("level3", "ext2: level 3, one directory, cold (less is better)", "ms", levels.get("level 3", {}).get("all_ms"), LEVEL_3_MS, "the most it may be", 1)
        return rows

    def table(self) -> str:
        lines = header("", "blocks changed", "ours, cold", "of it state", "unmended", "warm", "of it state", "unmended", "blocks read", "questions", "found", "mended", "e2fsck -f, cold", "warm", "its blocks",
                       "e2fsck / ours, cold", "warm", "blocks")
        for name, run in self.runs.items():
            if "e2fsck" not in run["cold"]:
                continue
            cold, warm = run["cold"], run["warm"]
            ratios = [f"{run[when]['e2fsck']['ms'] / run[when]['ours']['all_ms']:.0f}×" for when in ("cold", "warm")]
            lines.append(line(name, number(run["blocks"]), _least(cold["ours"]), _ms(cold["ours"]["load_ms"]), _ms(cold["unmended"]["all_ms"]), _least(warm["ours"]), _ms(warm["ours"]["load_ms"]), _ms(warm["unmended"]["all_ms"]),
                              number(cold["ours"]["blocks_read"]), number(cold["ours"]["questions"]), number(cold["ours"]["findings"]), number(cold["ours"]["blocks_mended"]),
                              _least(cold["e2fsck"], "ms"), _least(warm["e2fsck"], "ms"), number(cold["e2fsck"]["blocks_read"]), *ratios,
                              f"{cold['e2fsck']['blocks_read'] / cold['ours']['blocks_read']:.0f}×"))
        return "\n".join(lines)

    def papers(self) -> str:
        """Figures 4.23 to 4.28: what its text says of them."""
        scale = self.scale
        lines = header("blocks changed (Figures 4.23, 4.25, 4.27 and 4.28)", *[f"level {level}, {when}" for level in LEVELS for when in ("cold", "warm")], "mended, level 1", "level 2",
                       "the paper: level 1", "level 3", "mended")
        for blocks in (*scale.growth, scale.many):
            run = self.runs[f"growth, {blocks}"]
            times = [_ms(run[when]["ours" if level == 1 else f"level {level}"]["all_ms"]) for level in LEVELS for when in ("cold", "warm")]
            mended = [number(run["cold"][key]["blocks_mended"]) for key in ("ours", "level 2")]
            paper = ["17 s" if blocks == 35_000 else "", "150 ms", "mostly under 56" if blocks < 10_000 else ""]
            lines.append(line(number(run["blocks"]), *times, *mended, *paper))
        sizes = header("size (Figures 4.24 and 4.26)", "inodes", "ours, cold", "e2fsck -f, cold", "ratio", "the paper: iFSCK", "its ratio")
        for trees in (scale.small, scale.middle, scale.large):
            run = self.runs[f"ext2, {trees} GiB, at rest, here"]["cold"]
            inodes = self.runs[f"ext2, {trees} GiB, at rest, here"]["inodes"]
            paper = ("0.61 s", "over 1,000×") if trees == 10 else ("", "")
            sizes.append(line(f"ext2, {trees} GiB", number(inodes), _ms(run["ours"]["all_ms"]), _ms(run["e2fsck"]["ms"]), f"{run['e2fsck']['ms'] / run['ours']['all_ms']:.0f}×", *paper))
        for kind in ("ext3", "ext4"):
            run = self.runs[f"{kind}, {scale.large} GiB, journal"]
            for when in ("cold", "warm"):
                ours, replay = run[when]["ours"]["all_ms"], run[when]["replay"]["ms"]
                sizes.append(line(f"{kind}, {scale.large} GiB, replay, {when}", number(run["inodes"]), _ms(ours), f"{_ms(replay)} (journal_only), {_ms(run[when]['preen']['ms'])} (-p)",
                                  f"{(replay - self.start_ms) / ours:.2f}×", "", "over 1×" if kind == "ext3" else ""))
        return "\n".join(lines) + "\n\n" + "\n".join(sizes)


def _path(volume: lab.Volume) -> str:
    return PATH.format(tree=volume.trees // 2)


def _ms(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def _least(runs: dict, key: str = "all_ms") -> str:
    """The median, and the least of all: what the others of a busy machine left of it."""
    return f"{_ms(runs[key])} ({_ms(min(each[key] for each in runs['rounds']))})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="small and quick; shows that it works")
    arguments = parser.parse_args()
    if missing := lab.may_measure():
        say(missing)
        return 1
    end_cleanly()
    OUT.mkdir(parents=True, exist_ok=True)
    about = machine(OUT.resolve())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ifsck-", dir=OUT))
    bench = Bench(SHORT if arguments.short else FULL, folder)
    try:
        bench.measure()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    records = [row.record(about) for row in bench.rows()]
    write_json(OUT / "ifsck.json", records)
    print("\n\n".join([goals(records), bench.table(), bench.papers(), NOTES.format(start_ms=bench.start_ms, rounds=bench.scale.rounds, pairs=bench.scale.pairs), "Measured on " + describe(about)]))
    missing = [r["id"] for r in records if r["goal"] is not None and not r["holds"]]
    if missing:
        say("does not hold: " + ", ".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
