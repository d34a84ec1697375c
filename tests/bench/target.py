#!/usr/bin/env python3
"""The iSCSI target beside tgt and the raw device: rates, latencies, and CPU of the server.

    target.py [--short] [--load ID]... [--folder FOLDER]

Every server gets every load from the same initiator program with the same settings, one after
another on the same file system. What is honest to say about each figure stands in NOTES."""

import argparse
import dataclasses
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

import servers  # first: it shows Python where the end-to-end drivers are
import btrfs
import rocksdb_store
import target_limits
from chart import bars
from ending import end_cleanly
from loads import Limits, Load, Target, middle, run_fio, run_iscsi
from results import OUT, Row, describe, goals, header, line, machine, number, say, write_json
from servers import GIB, Mariner, Tgt
from target_goals import goal_of
from waiting import VARIANTS, Variant

MIB = 1 << 20
LARGE = 256 << 10

LOADS = [
    Load("read_4k_qd1", "4 KiB random read, depth 1", False, True, 4096, 1),
    Load("read_4k_qd32", "4 KiB random read, depth 32", False, True, 4096, 32),
    Load("read_256k", "256 KiB sequential read, depth 8", False, False, LARGE, 8),
    Load("burst_4k_qd32", "burst: 4 KiB random write, depth 32", True, True, 4096, 32, True),
    Load("burst_256k", "burst: 256 KiB sequential write, depth 8", True, False, LARGE, 8, True),
    Load("write_4k_qd1", "4 KiB random write, depth 1", True, True, 4096, 1),
    Load("write_4k_qd32", "4 KiB random write, depth 32", True, True, 4096, 32),
    Load("write_4k_qd128", "4 KiB random write, depth 128", True, True, 4096, 128),
    Load("write_256k", "256 KiB sequential write, depth 8", True, False, LARGE, 8),
]
FILL = Load("fill", "fill", True, False, LARGE, 8)
ROUND_4K = Load("round_4k", "the log goes round, 4 KiB", True, True, 4096, 128)
WARM = Load("warm", "warm", False, False, LARGE, 8)  # what is read is in the page cache

OURS, DURABLE, VOLATILE, NULL, DEVICE = "mariner", "tgt_durable", "tgt_volatile", "tgt_null", "device"
BTRFS, BTRFS_DURABLE, ROCKSDB = "btrfs", "btrfs_durable", "rocksdb"
WITH_HISTORY = (BTRFS, BTRFS_DURABLE, ROCKSDB)
ON_BTRFS = ("write_4k_qd1", "write_4k_qd32")  # loads
IN_ROCKSDB = "write_4k_qd32"
CPU_OF = {"cpu": "server_cpu_us", "all_cpu": "machine_cpu_us"}  # figures, and what a run calls them
NAMES = {OURS: "Mariner", **{variant.id: f"Mariner, {variant.setting}" for variant in VARIANTS}, DURABLE: "tgt, durable", VOLATILE: "tgt, volatile", NULL: "tgt, null store",
         DEVICE: "raw device (fio)", BTRFS: "tgt on Btrfs, snapshots", BTRFS_DURABLE: "the same, durable",
         ROCKSDB: "RocksDB, durable"}

NOTES = """\
- Of each load there are {rounds} rounds, in each of which every server has its turn; what stands here is that of the median rate (Btrfs, RocksDB and the bare device: one run).
- Writes of Mariner are durable before they are acknowledged, and kept as history. *tgt, durable* is the better of
  rdwr with FUA on each write and rdwr with bsoflags=sync; *tgt, volatile* leaves writes in the page cache, and a power
  cut loses them. The null store keeps nothing: it shows what the initiator and a bare target cost.
- Write rates are of the steady state: every block of the volume was written before, and the whole log, by writes of the same
  size; it has gone round, so that a track of such writes is given up for each that is written (the window is {window}); the warm-up is longer than the image's
  `apply_delay`, and `lag_max` is {lag}, so the image is being written throughout. A burst is the first {burst:g} s after a pause in which
  the image caught up. Before each turn what others have left in the page cache is written back.
- Reads are random or sequential over {region} that were written before and lie in the page cache, for Mariner and tgt alike;
  the raw device reads the medium (O_DIRECT).
- *tgt on Btrfs, snapshots* is what history is kept with today: tgt's rdwr in a file on Btrfs of which a snapshot is made
  each second; *durable*: with FUA on each write. Its Btrfs is in a file that was written once, through a loop device with direct I/O.
- *RocksDB* is a versioned store in the writing program itself, without a network: 32 threads, a version for each write (the key is
  the block and a number that counts up), each durable (sync) before the next one of its thread.
- The raw device is the same file system through fio: O_DIRECT (and O_DSYNC for writes) to a file written once, one job for
  each command outstanding.
- By itself the daemon looks for what hosts send next, instead of sleeping, while they send often and the log has nothing to write
  (*busy_poll*), and for the end of a lone write to the log in the second half of its time (*polling*); *busy_poll = 100us* looks for anything, all the time.
- CPU is the server's user and system time of all its threads for one operation; what the kernel's own threads do
  (writing back the page cache) is charged to nobody. The initiator runs on the same cores, MaxRecvDataSegmentLength, FirstBurstLength and
  MaxBurstLength are 256 KiB, ImmediateData=Yes, InitialR2T=No for all."""


@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    volume_bytes: int
    region_bytes: int  # of random loads and of reads
    log_bytes: int
    warmup_s: float
    rounds: int  # of each load, one server after the other in each
    seconds: float  # of each round
    burst_s: float
    initialise_s: float  # patience with the log's first writing
    storage: dict
    window: str

    def limits(self, load: Load) -> Limits:
        region = self.region_bytes if load.random or not load.write else self.volume_bytes
        if load.burst:
            return Limits(0, self.burst_s, region)
        return Limits(self.warmup_s if load.write else min(1.0, self.warmup_s), self.seconds, region)


FULL = Scale("full", 4 * GIB, GIB, 16 * GIB, 4, 3, 8, 1, 180,
             {"pending_memory": "256M", "lag_max": "1G", "apply_delay": "1s"}, "2s")
SHORT = Scale("short", 512 * MIB, 256 * MIB, GIB, 0.3, 1, 0.7, 0.3, 8,
              {"pending_memory": "64M", "lag_max": "128M", "apply_delay": "100ms"}, "1s")


class Bench:
    def __init__(self, scale: Scale, folder: pathlib.Path, loads: list[Load]):
        self.scale = scale
        self.folder = folder
        self.loads = loads
        self.in_log = 0  # what size of writes the log is full of
        self.runs: dict[str, dict[str, dict]] = {load.id: {} for load in loads}  # of each server the middle round
        self.rounds: dict[str, dict[str, list[dict]]] = {load.id: {} for load in loads}
        self.notes: list[str] = []

    def measure(self):
        say(f"preparing in {self.folder}")
        with (Mariner(self.folder / "mariner", self.scale.volume_bytes, self.scale.log_bytes,
                      self.scale.storage, window=self.scale.window) as ours,
              Tgt(self.folder / "tgt", self.scale.volume_bytes) as tgt):
            if not ours.wait_initialised(self.scale.initialise_s):
                self.notes.append("Parts of the log's space had not been written before the measurement began; "
                                  "synchronous writes to such space cost the file system's journal as well.")
            self._fill(ours, tgt)
            for load in self.loads:
                self._measure_load(load, ours, tgt)
        self._measure_btrfs()
        self._measure_rocksdb()
        file = self.folder / "device.img"
        servers.write_once(file, self.scale.region_bytes)
        for load in self.loads:
            if not load.burst:
                limits = dataclasses.replace(self.scale.limits(load),
                                             region_bytes=self.scale.region_bytes)
                self._keep(load, DEVICE, run_fio(load, file, limits))

    def _measure_btrfs(self):
        lack = btrfs.lacks()
        if lack:
            self.notes.append(f"Btrfs with snapshots was not measured: {lack}.")
            return
        room = 2 * self.scale.volume_bytes + 2 * GIB  # for what 15 s of writing leave in snapshots
        with btrfs.TgtOnBtrfs(self.folder / "btrfs", self.scale.region_bytes, room) as rival:
            for load in self.loads:
                if load.id not in ON_BTRFS:
                    continue
                for name, fua in ((BTRFS, False), (BTRFS_DURABLE, True)):
                    with rival.history():
                        self._keep(load, name, run_iscsi(load, Target(rival.url, rival.pid, fua=fua), self.scale.limits(load)))

    def _measure_rocksdb(self):
        lack = rocksdb_store.lacks()
        if lack:
            self.notes.append(f"RocksDB was not measured: {lack}.")
            return
        load = next((load for load in self.loads if load.id == IN_ROCKSDB), None)
        if load is not None:
            self._keep(load, ROCKSDB, rocksdb_store.run(self.folder, load.depth, self.scale.limits(load)))

    def _fill(self, ours: Mariner, tgt: Tgt):
        """Every block of the volumes, ours as often as it takes for the log to go round; and what is to be read."""
        size = self.scale.volume_bytes
        reads = Limits(0, 600, self.scale.region_bytes, self.scale.region_bytes)
        for target, bytes_max in ((Target(ours.url, ours.pid), size + self.scale.log_bytes), (Target(tgt.urls["plain"], tgt.pid), size)):
            for load, limits in ((FILL, Limits(0, 600, size, bytes_max)), (WARM, reads)):
                run = run_iscsi(load, target, limits)
                if run["failure"]:
                    raise servers.mariner.Failed(f"{load.what} {target.url}: {run['failure']}")
            ours.wait_applied(60)
        self.in_log = FILL.block

    def _go_round(self, load: Load, ours: Mariner):
        """The log is full of writes such as the load's: what is given up for them costs as much as they do."""
        if load.block == self.in_log:
            return
        self.in_log = load.block
        around = FILL if load.block == FILL.block else ROUND_4K
        run = run_iscsi(around, Target(ours.url, ours.pid), dataclasses.replace(self.scale.limits(load), warmup_s=0, seconds=600,
                                                                                bytes_max=self.scale.log_bytes))
        if run["failure"]:
            raise servers.mariner.Failed(f"{around.what}: {run['failure']}")
        ours.wait_applied(60)

    def _measure_load(self, load: Load, ours: Mariner, tgt: Tgt):
        if load.write and not load.burst:
            self._go_round(load, ours)
        for _ in range(self.scale.rounds):
            self._measure_round(load, ours, tgt)

    def _measure_round(self, load: Load, ours: Mariner, tgt: Tgt):
        limits = self.scale.limits(load)
        if load.burst:
            ours.wait_applied(60)
        self._keep(load, OURS, self._run(load, Target(ours.url, ours.pid), limits))
        for variant in VARIANTS:
            if load.id in variant.loads:
                with variant.of(ours):
                    self._keep(load, variant.id, self._run(load, Target(ours.url, ours.pid), limits))
        if load.write:
            ours.wait_applied(60)  # what is left to apply must not disturb the rivals
        plain = Target(tgt.urls["plain"], tgt.pid)
        self._keep(load, VOLATILE, self._run(load, plain, limits))
        if load.write:
            fua = self._run(load, dataclasses.replace(plain, fua=True), limits)
            sync = self._run(load, Target(tgt.urls["sync"], tgt.pid), limits)
            fua["mode"], sync["mode"] = "FUA on each write", "bsoflags=sync"
            self._keep(load, DURABLE, max(fua, sync, key=lambda run: run.get("rate", 0)))
        self._keep(load, NULL, self._run(load, Target(tgt.urls["null"], tgt.pid), limits))

    @staticmethod
    def _run(load: Load, target: Target, limits: Limits) -> dict:
        """With nothing left that whoever had the turn before has in the page cache."""
        os.sync()
        return run_iscsi(load, target, limits)

    def _keep(self, load: Load, server: str, run: dict):
        rounds = self.rounds[load.id].setdefault(server, [])
        rounds.append(run)
        self.runs[load.id][server] = middle(rounds)
        text = run["failure"] or f"{load.rate(run):,.0f} {load.unit}"
        say(f"{load.what:<42} {NAMES[server]:<18} {text}")

    # -- what comes of it -------------------------------------------------------------------------

    def figure(self, load: Load, server: str, name: str) -> float | None:
        """`rate`, `cpu` of the server, `all_cpu` of the machine, or a percentile of the latency; None if it was not measured."""
        return self._figure_of(load, self.runs[load.id].get(server), name)

    def paired(self, load: Load, rival: str, name: str) -> float | None:
        """The median of Mariner's ratios to the rival within rounds; None: it was not measured in each of them."""
        ours, theirs = ([self._figure_of(load, run, name) for run in self.rounds[load.id].get(server, [])] for server in (OURS, rival))
        if len(ours) != len(theirs) or not all(ours) or not all(theirs):
            return None
        return statistics.median(our / their for our, their in zip(ours, theirs)) if ours else None

    def _figure_of(self, load: Load, run: dict | None, name: str) -> float | None:
        if run is None or run["failure"]:
            return None
        if name == "rate":
            return load.rate(run)
        if name in CPU_OF:
            return run.get(CPU_OF[name])
        return run["latency_us"][name]

    def name_of(self, load: Load, rival: str) -> str:
        mode = self.runs[load.id].get(rival, {}).get("mode")
        return NAMES[rival] + (f" ({mode})" if mode else "")

    def rivals(self, load: Load) -> list[str]:
        rivals = [VOLATILE, NULL] if not load.write else [DURABLE, VOLATILE, NULL]
        rivals += [name for name in WITH_HISTORY if name in self.runs[load.id]]
        return rivals if load.burst else [*rivals, DEVICE]

    def rows(self) -> list[Row]:
        rows = []
        units = {"rate": None, "p50": "us", "p99": "us", "p99.9": "us", "cpu": "us/IO"}
        words = {"rate": "rate", "p50": "median latency (less is better)",
                 "p99": "99th percentile of latency (less is better)",
                 "p99.9": "99.9th percentile of latency (less is better)",
                 "cpu": "server CPU for one operation (less is better)"}
        for load in self.loads:
            for variant in (variant for variant in VARIANTS if load.id in variant.loads):
                for name, unit in (("rate", load.unit), ("cpu", "us/IO")):
                    rows.append(Row(f"{load.id}.{name}.{variant.id}", f"{load.what}: {words[name]}, with {variant.setting}", unit,
                                    self.figure(load, variant.id, name), self.figure(load, OURS, name), NAMES[OURS],
                                    self.runs[load.id].get(variant.id, {}).get("seconds", 0), self.scale.name))
            state = "in a burst" if load.burst else "in the steady state"
            for rival in self.rivals(load):
                for name, unit in units.items():
                    if name == "cpu" and rival == DEVICE:
                        continue
                    what = f"{load.what}: {words[name]}" + (f", {state}" if load.write else ", from the page cache")
                    run = self.runs[load.id].get(OURS, {})
                    row = Row(f"{load.id}.{name}.{rival}", what, unit or load.unit,
                              self.figure(load, OURS, name), self.figure(load, rival, name),
                              self.name_of(load, rival), run.get("seconds", 0),
                              self.scale.name, less_is_better=name != "rate", lacks="" if self.scale is FULL else "a full run",
                              paired=self.paired(load, rival, name))
                    if goal := goal_of(load.id, name, rival):
                        row.goal = goal.ratio
                    rows.append(row)
        return rows

    def table(self, about: dict) -> str:
        asked = [record for record in (row.record(about) for row in self.rows()) if record["goal"] is not None]
        return "\n\n".join([self._rates(), goals(asked), *filter(None, [self._limits(), self._waiting(), self._with_history()]), self._latencies(), self._cpu(), self._machine(),
                            "\n".join([self._notes(), *(f"- {note}" for note in self.notes)]),
                            "Measured on " + describe(about)])

    def _notes(self) -> str:
        return NOTES.format(rounds=self.scale.rounds, lag=self.scale.storage["lag_max"], window=self.scale.window, burst=self.scale.burst_s,
                            region=f"{self.scale.region_bytes // MIB} MiB")

    def _rates(self) -> str:
        lines = header("", "Mariner", *(NAMES[r] for r in (DURABLE, VOLATILE, NULL, DEVICE)))
        for load in self.loads:
            ours = self.figure(load, OURS, "rate")
            cells = [f"**{number(ours)} {load.unit}**"]
            for rival in (DURABLE, VOLATILE, NULL, DEVICE):
                theirs = self.figure(load, rival, "rate")
                ratio = self.paired(load, rival, "rate") or (ours / theirs if ours and theirs else None)
                cells.append(number(theirs) + (f" ({ratio:.2f}×)" if ratio else "") if rival in self.rivals(load) else "")
            lines.append(line(load.what, *cells))
        return "\n".join(lines) + "\n\nIn brackets: Mariner's rate as a multiple of the rival's, the median of the multiples in each round."

    def _limits(self) -> str:
        """What can be reached here at most, beside what is asked; nothing, if no ceiling was measured."""
        lines = header("what can be reached here at most", "it is", "that is", "Mariner", "beside others, of what is asked")
        known = False
        for load in self.loads:
            limit = target_limits.limit_of(load.id, self._answers(), self.figure(load, DEVICE, "rate"))
            ours = self.figure(load, OURS, "rate")
            if not limit or not ours:
                continue
            known = True
            besides = target_limits.beside(load.id, limit, lambda rival: self.figure(load, rival, "rate"))
            cells = "; ".join(f"{NAMES[each.rival]}: {each.possible:.2f}× of {each.asked:g}×" + ("" if each.is_possible else ", **out of reach**")
                              for each in besides)
            lines.append(line(load.what, target_limits.LIMITS[load.id].what, f"{number(limit)} {load.unit}",
                              f"{number(ours)} ({ours / limit:.2f} of it)", cells))
        return "\n".join(lines) if known else ""

    def _answers(self) -> float | None:
        """The greatest rate of commands one at a time that any server answered from memory."""
        rates = [self.figure(load, server, "rate") for load in self.loads if load.depth == 1
                 for server in ((NULL,) if load.write else self.runs[load.id].keys() - {DEVICE})]
        return max(filter(None, rates), default=None)

    def _waiting(self) -> str:
        """One command after the other, with other ways to wait."""
        measured = [(load, variant) for load in self.loads for variant in VARIANTS if load.id in variant.loads]
        if not measured:
            return ""
        lines = header("with another way to wait", "rate", "of Mariner without", *(f"of {NAMES[r]}" for r in (DURABLE, VOLATILE, NULL, DEVICE)),
                       "p50 / p99 / p99.9 in µs", "server CPU in µs", "of tgt's, durable or from the page cache")
        for load, variant in measured:
            lines.append(line(f"{load.what}, {variant.setting}", *self._waiting_cells(load, variant)))
        return "\n".join(lines)

    def _waiting_cells(self, load: Load, variant: Variant) -> list[str]:
        rate = self.figure(load, variant.id, "rate")
        cells = [f"**{number(rate)} {load.unit}**"]
        for server in (OURS, DURABLE, VOLATILE, NULL, DEVICE):
            other = self.figure(load, server, "rate")
            cells.append(f"{rate / other:.2f}×" if rate and other else "")
        cells.append(" / ".join(number(self.figure(load, variant.id, p)) for p in ("p50", "p99", "p99.9")))
        cpu, of_tgt = self.figure(load, variant.id, "cpu"), self.figure(load, DURABLE if load.write else VOLATILE, "cpu")
        cells.append("–" if cpu is None else f"{cpu:.1f}")
        return [*cells, f"{cpu / of_tgt:.2f}×" if cpu and of_tgt else ""]

    def _with_history(self) -> str:
        """Beside what else keeps history; nothing, if that was not measured."""
        loads = [load for load in self.loads if any(name in self.runs[load.id] for name in WITH_HISTORY)]
        if not loads:
            return ""
        lines = header("with history", "Mariner", *(NAMES[name] for name in WITH_HISTORY))
        for load in loads:
            ours = self.figure(load, OURS, "rate")
            cells = [f"**{number(ours)} {load.unit}**"]
            for rival in WITH_HISTORY:
                theirs = self.figure(load, rival, "rate")
                cells.append(number(theirs) + (f" ({ours / theirs:.1f}×)" if ours and theirs else ""))
            lines.append(line(load.what, *cells))
        return "\n".join(lines)

    def _latencies(self) -> str:
        lines = header("latency in µs: p50 / p90 / p99 / p99.9 / max", "Mariner",
                       *(NAMES[r] for r in (DURABLE, VOLATILE, NULL, DEVICE)))
        for load in self.loads:
            cells = []
            for server in (OURS, DURABLE, VOLATILE, NULL, DEVICE):
                values = [self.figure(load, server, p) for p in ("p50", "p90", "p99", "p99.9", "max")]
                measured = server == OURS or server in self.rivals(load)
                cells.append(" / ".join(number(v) for v in values) if measured else "")
            lines.append(line(load.what, *cells))
        return "\n".join(lines)

    def _cpu(self) -> str:
        lines = header("server CPU in µs for one operation", "Mariner",
                       *(NAMES[r] for r in (DURABLE, VOLATILE, NULL)))
        for load in self.loads:
            cells = []
            for server in (OURS, DURABLE, VOLATILE, NULL):
                value = self.figure(load, server, "cpu")
                measured = server == OURS or server in self.rivals(load)
                cells.append(("–" if value is None else f"{value:.1f}") if measured else "")
            lines.append(line(load.what, *cells))
        return "\n".join(lines)

    def _machine(self) -> str:
        """Where the processors are what there is too little of."""
        processors = os.cpu_count()
        lines = header(f"all programs and the kernel: CPU in µs for one operation, how busy the {processors} processors were, the rate if they never were idle",
                       "Mariner", *(NAMES[r] for r in (DURABLE, VOLATILE, NULL)))
        for load in self.loads:
            cells = []
            for server in (OURS, DURABLE, VOLATILE, NULL):
                cpu_us, rate = self.figure(load, server, "all_cpu"), self.runs[load.id].get(server, {}).get("rate")
                if not cpu_us or not rate or (server != OURS and server not in self.rivals(load)):
                    cells.append("")
                    continue
                busy = cpu_us * rate / 1e6 / processors
                cells.append(f"{cpu_us:.1f}, {busy:.0%}, {number(self.figure(load, server, 'rate') / busy)} {load.unit}")
            lines.append(line(load.what, *cells))
        return "\n".join(lines)

    def picture(self) -> str:
        groups = [(load.what, load.unit,
                   [(NAMES[s], self.figure(load, s, "rate")) for s in (OURS, *self.rivals(load))])
                  for load in self.loads]
        return bars("Mariner beside tgt, through iSCSI on loopback", groups)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="under a minute; shows that it works")
    parser.add_argument("--folder", type=pathlib.Path, default=OUT,
                        help="on the file system to measure (default: %(default)s)")
    parser.add_argument("--load", action="append", choices=[load.id for load in LOADS], help="this one only; may stand several times")
    options = parser.parse_args()
    loads = [load for load in LOADS if options.load is None or load.id in options.load]
    end_cleanly()
    scale = SHORT if options.short else FULL
    OUT.mkdir(parents=True, exist_ok=True)
    needed = scale.log_bytes + 4 * scale.volume_bytes + scale.region_bytes + 3 * GIB
    free = shutil.disk_usage(options.folder).free
    if free < needed:
        say(f"{options.folder}: {needed / GIB:.0f} GiB are needed, {free / GIB:.0f} are free; "
            "--folder names another place")
        return 1
    about = machine(options.folder.resolve())
    with tempfile.TemporaryDirectory(prefix="target-", dir=options.folder) as folder:
        bench = Bench(scale, pathlib.Path(folder), loads)
        bench.measure()
    records = [row.record(about) for row in bench.rows()]
    write_json(OUT / "target.json", records)
    write_json(OUT / "target-runs.json", bench.rounds)
    (OUT / "target.svg").write_text(bench.picture())
    print(bench.table(about))
    missing = [record["id"] for record in records if record["ratio"] is None]
    if missing:
        say("not measured: " + ", ".join(missing))
    if not_reached := [record["id"] for record in records if record["goal"] is not None and not record["holds"]]:
        say("does not hold: " + ", ".join(not_reached))
    return 1 if missing or (not_reached and scale is FULL) else 0


if __name__ == "__main__":
    sys.exit(main())
