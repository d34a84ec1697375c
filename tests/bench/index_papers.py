"""The figures and tables of the BOSC paper and of the dissertation's chapters 3 and 4, with ours beside them.

Called by `index.py --papers`. What is measured stands here, what is made of it in index_papers_tables.py."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from results import OUT, describe, machine, say, write_json

import index_papers_tables as tables


@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    patience_s: float            # of one program
    seconds: float               # that are measured
    warmup_s: float
    warmup_max_s: float
    # Figures 3.2 to 3.8.
    index_mib: int               # of 3.2 and 3.3 (uniform)
    memories_mib: tuple          # 3.2
    warehouses: int              # 3.3
    trace_memory_mib: int
    swept_index_mib: int         # 3.4 to 3.6 and 3.8
    swept_memory_mib: int
    leaves_kib: tuple            # 3.4
    records: tuple               # 3.5
    indexes_mib: tuple           # 3.7
    queues_mib: tuple            # 3.8
    log_bytes: str
    # Table 3.1.
    find_versions: int
    find_memory_mib: int
    # Table 3.2, Figure 3.11.
    recovered_versions: int
    pending: tuple
    rounds: int
    # Figure 4.20.
    cdp_versions: int
    cdp_memory_mib: int
    cdp_track: str
    # The growth curve.
    growth_versions: int
    growth_memories_mib: tuple


FULL = Scale("full", 300, 5, 1, 15, 2048, (32, 64, 128, 256, 512), 20, 64, 1024, 128, (16, 64, 256, 1024), (64, 256, 1024),
             (512, 1024, 2048, 4096), (64, 128, 256), "1G", 8_000_000, 64, 20_000_000, (100_000, 200_000, 500_000), 5,
             8_000_000, 64, "64M", 22_750_000, (256, 128, 64, 32))
SHORT = Scale("short", 60, 0.3, 0.1, 0.5, 96, (24, 48), 1, 24, 64, 24, (16, 64), (64, 256), (32, 64), (24, 48), "256M",
              200_000, 16, 200_000, (20_000, 50_000), 2, 200_000, 16, "16M", 1_200_000, (16,))

PATTERNS = ("update", "insert", "clustered", "sequential")
# Figure 3.3: who commits how, and which log. In the paper's words.
VARIANTS = (("One-Queue-Append", "one-queue", "append"), ("One-Queue-Trail", "one-queue", "writer"),
            ("Multi-Queue-Append", "multi-queue", "append"), ("Multi-Queue-Trail", "multi-queue", "writer"),
            ("BOSC", "bosc", "writer"), ("vanilla-Append", "vanilla", "append"), ("vanilla-Trail", "vanilla", "writer"))


class Runs:
    """Runs the programs, each once for one set of arguments: figures share points."""

    def __init__(self, scale: Scale, folder: pathlib.Path):
        self.scale = scale
        self.folder = folder
        self.all: dict[str, dict] = {}
        self._programs = pathlib.Path(os.environ["MARINER_BUILD"]) / "tests" / "bench"
        self._known: dict[tuple, dict] = {}

    def run(self, name: str, program: str, *arguments) -> dict:
        command = tuple(str(a) for a in (self._programs / program, "--folder", self.folder, *arguments))
        if command not in self._known:
            say(name)
            self._known[command] = self._call(command)
        self.all[name] = self._known[command]
        return self.all[name]

    def _call(self, command: tuple) -> dict:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.scale.patience_s)
        except subprocess.TimeoutExpired:
            got = {"failure": f"took more than {self.scale.patience_s:g} s"}
        else:
            try:
                got = json.loads(done.stdout)
            except ValueError:
                got = {"failure": done.stderr.strip() or f"ended with {done.returncode}, without a word"}
        if got["failure"]:
            say(f"  {got['failure']}")
        return got

    def rows(self, name: str, engine: str, log: str, phases, memory_mib: int, index_mib: int | None = None,
             block_kib: int = 64, record: int = 64, warehouses: int | None = None) -> dict:
        """The phases of a run of mariner-row-load, by name; empty where it failed."""
        scale = self.scale
        size = ("--index-mib", index_mib) if warehouses is None else ("--warehouses", warehouses)
        got = self.run(name, "mariner-row-load", "--engine", engine, "--log", log, "--phases", ",".join(phases),
                       "--memory-mib", memory_mib, *size, "--block-bytes", block_kib << 10, "--record-bytes", record,
                       "--seconds", scale.seconds, "--warmup", scale.warmup_s, "--warmup-max", scale.warmup_max_s,
                       "--log-bytes", scale.log_bytes)
        return {phase["phase"]: phase for phase in got.get("phases", [])}


def figure_3_2(runs: Runs) -> dict:
    scale = runs.scale
    return {(engine, memory): runs.rows(f"3.2 {engine} {memory} MiB", engine, log, ("update", "insert"), memory, scale.index_mib)
            for memory in scale.memories_mib for engine, log in (("bosc", "writer"), ("vanilla", "none"))}


def figure_3_3(runs: Runs) -> dict:
    scale = runs.scale
    found = {}
    for name, engine, log in VARIANTS:
        found[name] = {**runs.rows(f"3.3 {name} TPC-C", engine, log, ("tpcc", "tpcc-reads"), scale.trace_memory_mib, record=112,
                                   warehouses=scale.warehouses),
                       **runs.rows(f"3.3 {name} uniform", engine, log, ("insert",), scale.trace_memory_mib, scale.index_mib,
                                   record=112)}
    return found


def sweeps(runs: Runs) -> dict:
    """Figures 3.4 to 3.8: what is varied, and the phases of each point."""
    scale = runs.scale

    def point(index: int, memory: int, block: int, record: int) -> dict:
        return runs.rows(f"index {index} MiB, memory {memory} MiB, leaf {block} KiB, record {record} B", "bosc", "writer",
                         PATTERNS, memory, index, block, record)

    index, memory = scale.swept_index_mib, scale.swept_memory_mib
    return {"3.4": {f"{leaf} KiB": point(index, memory, leaf, 64) for leaf in scale.leaves_kib},
            "3.5": {f"{record} B": point(index, memory, 64, record) for record in scale.records},
            "3.6": {f"{record} B in {record // 4} KiB": point(index, memory, record // 4, record) for record in scale.records},
            "3.7": {f"{size} MiB": point(size, memory, 16, 64) for size in scale.indexes_mib},
            "3.8": {f"{queues} MiB": point(index, queues, 64, 64) for queues in scale.queues_mib}}


def table_3_1(runs: Runs) -> dict:
    scale = runs.scale
    common = ("--memory-mib", scale.find_memory_mib, "--versions", scale.find_versions, "--block-bytes", 4096, "--warmup",
              scale.warmup_s, "--warmup-max", scale.warmup_max_s, "--seconds", scale.seconds, "--rest", 1, "--finds", 1000,
              "--scans", 200,
              # 1,000 keys, which stand evenly in 2^28 blocks.
              "--scanned-blocks", max(1, (1 << 28) * 1000 // scale.find_versions))
    found = {"vanilla": runs.run("3.1 vanilla", "mariner-index-load", "--engine", "vanilla", *common),
             "bosc": runs.run("3.1 BOSC", "mariner-index-load", "--engine", "mariner", *common)}
    rate = found["vanilla"].get("versions_per_s")
    if rate:
        found["at its rate"] = runs.run("3.1 BOSC at vanilla's rate", "mariner-index-load", "--engine", "mariner", "--rate", rate,
                                        *common)
    return found


def table_3_2(runs: Runs) -> dict:
    scale = runs.scale
    common = ("--versions", scale.recovered_versions, "--rounds", scale.rounds)
    return {"new": runs.run("3.2 and 3.11, nothing committed", "mariner-index-recovery", *common, "--pending",
                            ",".join(str(p) for p in scale.pending)),
            # As in the paper, a part of the replay window is in the index already.
            "old": runs.run("3.2, a tenth committed", "mariner-index-recovery", *common, "--pending", scale.pending[-1],
                            "--committed", scale.pending[-1] // 10)}


def figure_4_20(runs: Runs) -> dict:
    scale = runs.scale
    index = ("--index-memory", f"{scale.cdp_memory_mib}M", "--index-versions", scale.cdp_versions)
    variants = {"no index": ("--mode", "ours"), "BOSC": ("--mode", "ours", *index),
                "BOSC, append-like logging": ("--mode", "append", *index),
                "vanilla (TPIE)": ("--mode", "ours", *index, "--index", "vanilla"),
                "no index, append-like logging": ("--mode", "append")}
    return {name: runs.run(f"4.20 {name}", "mariner-log-load", "--depth", 32, "--seconds", 2 * scale.seconds, "--warmup",
                           # Until the queues have been full.
                           scale.warmup_max_s, "--log-bytes", scale.log_bytes, "--track-bytes", scale.cdp_track, *arguments)
            for name, arguments in variants.items()}


def growth(runs: Runs) -> dict:
    scale = runs.scale
    return {memory: runs.run(f"growth, {memory} MiB", "mariner-index-load", "--engine", "mariner", "--window", "--memory-mib", memory,
                             "--versions", scale.growth_versions, "--warmup", scale.warmup_s, "--warmup-max", 4 * scale.warmup_max_s,
                             "--seconds", 2 * scale.seconds, "--rest", 0, "--finds-per-s", 0, "--finds", 0, "--scans", 0)
            for memory in scale.growth_memories_mib}


def measure(short: bool) -> int:
    scale = SHORT if short else FULL
    OUT.mkdir(parents=True, exist_ok=True)
    about = machine(OUT)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="papers-", dir=OUT))
    try:
        runs = Runs(scale, folder)
        found = tables.Found(figure_3_2(runs), figure_3_3(runs), sweeps(runs), table_3_1(runs), table_3_2(runs),
                             figure_4_20(runs), growth(runs))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    told, rows = tables.tell(scale, found)
    records = [row.record(about) for row in rows]
    write_json(OUT / "index-papers.json", records)
    write_json(OUT / "index-papers-runs.json", runs.all)
    print(told + "\n\nMeasured on " + describe(about))
    failed = [f"{name}: {run['failure']}" for name, run in runs.all.items() if run["failure"]]
    fallen = [] if short else [r["id"] for r in records if r["goal"] is not None and not r["holds"]]
    for text in failed + [f"does not hold: {row}" for row in fallen]:
        say(text)
    return 1 if failed or fallen else 0
