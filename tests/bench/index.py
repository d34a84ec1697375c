#!/usr/bin/env python3
"""The version indexes beside the same trees with a page cache, and RocksDB.

    index.py [--short]
    index.py --end-to-end [--short] the log with indexes behind it, beside the log alone, and nothing else
    index.py --papers [--short]     the papers' figures instead (index_papers.py)

Every engine gets the same versions, memory, disk and O_DIRECT, one after the other in one run."""

import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import index_end_to_end
import index_papers
from results import OUT, Row, describe, get, header, line, machine, number, say, write_json

PATIENCE_S = 1800

NOTES = """\
- A version is one entry by time (TL) and one by block (LT). The index is filled with {versions:,} versions in the order of blocks, evenly over a volume of 1 TiB; then versions come in by the
  pattern named until the engine is in its steady state: three commit cycles here, {warmup:g} s for the others. Only then is measured, for {seconds:g} s.
- Memory is that of queues and caches together (RocksDB: memtables and block cache with indexes and filters); internal nodes and what is known of each block come on top and are
  shown apart. "Resident" is what the process grew by.
- Vanilla: the same trees and blocks, a page cache of the same memory (CLOCK), leaves changed in place, dirty ones written when they are evicted. One thread, one page at a time.
- RocksDB: no write-ahead log, direct I/O, level compaction, batches of 32 versions, prefix Bloom filters, the newest version of a block first, 4 KiB blocks. The library is Debian's source without its
  assertions and with the processor's CRC32C (tests/bench/rocksdb.sh); Debian's own has them, takes a multiple of the CPU time, and would say "with assertions" in its name.
- Lookups beside inserts come 200 a second, whatever the engine does; "at its rate" rows give Mariner as many inserts as the rival managed. Lookups after are alone, {rest:g} s after the last insert.
- key-range-hot: the key ranges of the mixgraph model (Cao et al., FAST 2020), with its published parameters."""


@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    memory_mib: int
    small_memory_mib: int
    versions: int
    window_versions: int
    warmup_s: float
    seconds: float
    rest_s: float
    warmup_max_s: float
    settle_s: float


# 32 bytes of an LT record at 70 % fill: 92 million are 4.2 GB of leaves. With both indexes, 45 million are 4.2 GB.
FULL = Scale("full", 512, 64, 92_000_000, 45_500_000, 20, 20, 3, 240, 120)
SHORT = Scale("short", 24, 12, 2_000_000, 1_000_000, 0.5, 1, 0.2, 5, 0.5)


class Runs:
    def __init__(self, scale: Scale, folder: pathlib.Path):
        self._scale = scale
        self._folder = folder
        self._program = pathlib.Path(os.environ["MARINER_BUILD"]) / "tests" / "bench" / "mariner-index-load"
        self.all: dict[str, dict] = {}

    def run(self, name: str, engine: str, pattern: str = "uniform", memory_mib: int | None = None,
            versions: int | None = None, extra: tuple = ()) -> dict:
        scale = self._scale
        command = [self._program, "--engine", engine, "--folder", self._folder, "--pattern", pattern,
                   "--memory-mib", memory_mib or scale.memory_mib, "--versions", versions or scale.versions,
                   "--warmup", scale.warmup_s, "--warmup-max", scale.warmup_max_s, "--seconds", scale.seconds,
                   "--rest", scale.rest_s, *extra]
        say(f"{name}: {engine}")
        try:
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=PATIENCE_S)
            got = json.loads(done.stdout) if done.stdout else {"failure": done.stderr.strip() or "it ended without a word"}
        except subprocess.TimeoutExpired:
            got = {"failure": "it hangs"}
        if got["failure"]:
            say(f"  {got['failure']}")
        self.all[name] = got
        return got


def compared(runs: Runs, pattern: str, scale: Scale, ours: str, rivals: list[tuple[str, str, float | None]]) -> list[Row]:
    """Rows of one pattern: `rivals` are (run, name, least ratio of rates)."""
    mine = runs.all[ours]
    size = f"{scale.name}: {get(mine, 'memory_mib')} MiB, index {(get(mine, 'disk_bytes') or 0) / 2**30:.1f} GiB at the end"
    rows = []
    short = "" if scale is FULL else "the goal needs an index of 4 GiB and 512 MiB of memory"
    seconds = get(mine, "measured_s") or 0

    def row(key, what, unit, path, goal, rival, name, less, lacks=short):
        rows.append(Row(f"{ours}.{key}.{rival}", f"{pattern}: {what}", unit, get(mine, *path), get(runs.all[rival], *path), name,
                        seconds, size, goal, less_is_better=less, lacks=lacks))

    for rival, name, least in rivals:
        row("rate", "versions", "/s", ("versions_per_s",), least, rival, name, False)
        row("cpu", "CPU for a version (less is better)", "us", ("cpu_us",), None, rival, name, True)
        row("written", "bytes written for a version (less is better)", "B", ("written_bytes",), None, rival, name, True)
        row("read", "bytes read for a version (less is better)", "B", ("read_bytes",), None, rival, name, True)
        row("ios", "reads of the disk for a version (less is better)", "", ("reads",), None, rival, name, True)
        most = 1.05 if rival.startswith("vanilla") else 1.0
        for when in ("during", "after"):
            for percentile in ("p50_us", "p99_us"):
                row(f"find_{when}_{percentile[:3]}", f"lookups {when}, {percentile[:3]} (less is better)", "us",
                    (f"find_{when}", percentile), most, rival, name, True)
        row("scan", "range of 3,000 blocks, p50 (less is better)", "us", ("scan_after", "p50_us"), None, rival, name, True)
    return rows


def table(runs: Runs) -> str:
    lines = header("", "versions/s", "CPU us", "user us", "B written", "B read", "writes", "reads", "cycles", "index GiB",
                   "memory MiB", "nodes MiB", "resident MiB", "find during p50/p99 us", "after p50/p99", "scan p50/p99")
    for name, run in runs.all.items():
        if run["failure"]:
            lines.append(line(name, run["failure"], *[""] * 14))
            continue
        pair = lambda key: f"{run[key]['p50_us']:,.0f} / {run[key]['p99_us']:,.0f}"
        lines.append(line(f"{name} ({run['engine']})", number(run["versions_per_s"]), f"{run['cpu_us']:.2f}", f"{run['user_us']:.2f}",
                          number(run["written_bytes"]), number(run["read_bytes"]), f"{run['writes']:.4f}", f"{run['reads']:.4f}",
                          str(run["cycles"]), f"{run['disk_bytes'] / 2**30:.2f}", number(run["engine_memory_bytes"] / 2**20),
                          number(run["node_bytes"] / 2**20), number(run["resident_bytes"] / 2**20), pair("find_during"),
                          pair("find_after"), pair("scan_after")))
    return "\n".join(lines)


def comparison(records: list[dict]) -> str:
    lines = header("", "ours", "beside", "", "ratio", "goal", "holds")
    for r in records:
        goal = "" if r["goal"] is None else f"{'≤' if r['less_is_better'] else '≥'} {r['goal']:g}"
        lines.append(line(r["what"], f"{r['ours']} {r['unit']}", str(r["rival"]), r["rival_name"], str(r["ratio"]), goal,
                          "" if r["goal"] is None else "yes" if r["holds"] else "**no**"))
    return "\n".join(lines)


def measure(scale: Scale, folder: pathlib.Path) -> tuple[Runs, list[Row]]:
    runs = Runs(scale, folder)
    for pattern in ("uniform", "hot"):
        runs.run(f"mariner_{pattern}", "mariner", pattern)
        runs.run(f"rocksdb_{pattern}", "rocksdb", pattern)
        runs.run(f"vanilla_{pattern}", "vanilla", pattern)
        runs.run(f"vanilla4k_{pattern}", "vanilla", pattern, extra=("--block-bytes", 4096))
    for rival in ("vanilla", "rocksdb"):
        rate = get(runs.all[f"{rival}_uniform"], "versions_per_s")
        if rate:
            runs.run(f"mariner_at_{rival}", "mariner", extra=("--rate", rate, "--settle", scale.settle_s))
    small = scale.small_memory_mib
    for engine in ("mariner", "rocksdb", "vanilla"):
        runs.run(f"{engine}_small", engine, memory_mib=small)
    runs.run("mariner_window", "mariner", versions=scale.window_versions, extra=("--window",))

    rows = []
    for pattern, name, least in (("uniform", "uniform", 2.0), ("hot", "key-range-hot", 1.2)):
        rows += compared(runs, name, scale, f"mariner_{pattern}",
                         [(f"vanilla_{pattern}", "vanilla, 16 KiB", 20.0 if pattern == "uniform" else None),
                          (f"vanilla4k_{pattern}", "vanilla, 4 KiB", 20.0 if pattern == "uniform" else None),
                          (f"rocksdb_{pattern}", "RocksDB", least)])
    short = "" if scale is FULL else "the goal needs the full size"
    for rival, most in (("vanilla", 1.05), ("rocksdb", 1.0)):
        ours = runs.all.get(f"mariner_at_{rival}", {})
        for percentile in ("p50_us", "p99_us"):
            rows.append(Row(f"at_{rival}.find_during_{percentile[:3]}", f"uniform, as many inserts as {rival}: lookups during, {percentile[:3]} (less is better)",
                            "us", get(ours, "find_during", percentile), get(runs.all[f"{rival}_uniform"], "find_during", percentile), rival,
                            get(ours, "measured_s") or 0, scale.name, most, less_is_better=True, lacks=short))
    for rival in ("vanilla", "rocksdb"):
        rows.append(Row(f"small.rate.{rival}", f"uniform, {small} MiB: versions", "/s", get(runs.all["mariner_small"], "versions_per_s"),
                        get(runs.all[f"{rival}_small"], "versions_per_s"), rival, get(runs.all["mariner_small"], "measured_s") or 0, scale.name))
    window = runs.all["mariner_window"]
    written = get(window, "written_bytes")
    rows.append(Row("metadata", "4 KiB random writes, memory an eighth of the index: metadata written for a byte of data (less is better)", "B",
                    None if written is None else written / 4096, 0.1, "the most it may be", get(window, "measured_s") or 0,
                    f"{scale.name}, index {(get(window, 'disk_bytes') or 0) / 2**30:.2f} GiB", 1, less_is_better=True, lacks=short))
    for name in ("mariner_uniform", "mariner_hot", "mariner_small", "mariner_window"):
        run = runs.all[name]
        if not run["failure"]:
            rows.append(Row(f"memory.{name}", f"{name}: memory of the process without internal nodes (less is better)", "MiB",
                            (run["resident_bytes"] - run["node_bytes"]) / 2**20, run["memory_mib"], "its budget", run["measured_s"],
                            scale.name, 1.1, less_is_better=True, lacks=short))
    return runs, rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="small and quick; shows that it works")
    parser.add_argument("--end-to-end", action="store_true", help="only the log with indexes, beside the log alone")
    parser.add_argument("--papers", action="store_true", help="the papers' figures and tables, with ours beside them")
    arguments = parser.parse_args()
    if arguments.papers:
        return index_papers.measure(arguments.short)
    scale = SHORT if arguments.short else FULL
    OUT.mkdir(parents=True, exist_ok=True)
    about = machine(OUT)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="index-", dir=OUT))
    try:
        runs, rows = (Runs(scale, folder), []) if arguments.end_to_end else measure(scale, folder)
        ends, more = index_end_to_end.measure(index_end_to_end.SHORT if arguments.short else index_end_to_end.FULL, folder)
        rows += more
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    records = [row.record(about) for row in rows]
    write_json(OUT / "index.json", records)
    write_json(OUT / "index-runs.json", runs.all | ends)
    notes = "" if arguments.end_to_end else NOTES.format(versions=scale.versions, warmup=scale.warmup_s, seconds=scale.seconds, rest=scale.rest_s)
    print("\n\n".join([comparison(records), *([table(runs)] if runs.all else []), notes, "Measured on " + describe(about)]))
    fallen = [r["id"] for r in records if r["goal"] is not None and not r["holds"]]
    if fallen and scale is FULL:
        print("does not hold: " + ", ".join(fallen), file=sys.stderr)
    return 1 if fallen and scale is FULL else 0


if __name__ == "__main__":
    sys.exit(main())
