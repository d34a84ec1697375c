#!/usr/bin/env python3
"""A volume on three nodes beside one on a single node, and beside the naive rule.

    replication.py [--short] [--rate RATE] [--folder FOLDER]

Every daemon is in a network namespace of its own; cables and two switches connect them. All take turns in several
short rounds. What is honest to say about each figure stands in NOTES."""

import argparse
import dataclasses
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import threading
import time

import servers  # first: it shows Python where the end-to-end drivers are
from cluster import Cluster, Node
from ending import end_cleanly
from loads import Limits, Load, Target, run_iscsi
from namespaces import ETCD, HOST, NODES, ClusterNetwork, Place
from results import OUT, Row, describe, get, header, line, machine, number, say, write_json
from servers import GIB, mariner, wait_initialised

MIB = 1 << 20
NAIVE_MARINERD = mariner.BUILD / "tests" / "bench" / "mariner-naive-marinerd"
VOLUME, SHORT_VOLUME, NEIGHBOUR = "bench", "short", "neighbour"
LEASE = "15s"  # nobody is to take over on a machine that is held up

QD1 = Load("qd1", "4 KiB random write, depth 1", True, True, 4096, 1)
QD32 = Load("qd32", "4 KiB random write, depth 32", True, True, 4096, 32)
FLOOD = Load("flood", "256 KiB random write, depth 32", True, True, 256 << 10, 32)
FILL = Load("fill", "fill", True, False, 256 << 10, 8)

OURS, SINGLE, LOGGER, NAIVE = "cluster", "single", "logger", "naive"
NAMES = {OURS: "three nodes", SINGLE: "a single node", LOGGER: "a coordinator and a logger", NAIVE: "three nodes, all durable first"}
# Where the initiator runs: on a host of its own, or beside the coordinator, which then is on the initiator's host.
APART, BESIDE = "apart", "beside"

LATENCY_MAX, RATE_MIN, CATCH_UP_MIN = 1.10, 0.5, 0.8
NEEDS_S = 10

NOTES = """\
- Every node, etcd (one member) and the host of the initiator are network namespaces on one machine, connected by veth pairs
  and bridges ({rate}): all share its cores and its disk, and nothing but software is between them. *A single node* is
  the ordinary standalone daemon at the logger's place. All writes are durable when they are answered.
- *Apart*: the initiator's host reaches the single node by one connection, and the three nodes by two (to the coordinator, and
  from there to the logger). *Beside*: it runs on the coordinator's node, so that one connection leaves it, as to the single node.
- *A coordinator and a logger* are the same nodes with a volume that has no mirror, so that the two differ by the mirror alone:
  the image, which nobody waits for, is beside the coordinator.
- *All durable first* is the naive rule: a write is answered when log and both images have it on stable storage. It is this
  daemon with three functions replaced by the linker (naive_rule.cc), so that the completion rule is the only difference;
  images are written at once, at the same time as the log, in place, with what has gathered meanwhile in one go, and flushed.
- Each figure is the median of {rounds} rounds of {seconds:g} s after a warm-up of {warmup:g} s, in which all took turns; a ratio is the
  median of the rounds' ratios. The volume was filled before; images are written in the background throughout.
- CPU is user and system time of all daemons of the volume for one write; the initiator's and etcd's is not in it.
- A neighbour: another volume of the same logger, whose coordinator is another node, is written to in pieces of 256 KiB at depth
  32 while the lone writes are measured; compared is the same without it.
- Catching up: under 32 writes at a time the mirror is killed and comes back after {absence:g} s. It has ended when the mirror's
  image durably holds all that had been written before the last piece. Compared is the median rate of {slice:g} s pieces before and meanwhile."""


@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    rounds: int
    warmup_s: float
    seconds: float
    region_bytes: int
    absence_s: float
    slice_s: float
    before_slices: int
    log_bytes: int  # of the three nodes, which are loaded longest
    rival_log_bytes: int
    storage: dict


STORAGE = {"pending_memory": "64M", "lag_max": "128M", "apply_delay": "200ms"}
FULL = Scale("full", 5, 0.6, 3, 512 * MIB, 60, 2, 5, 16 * GIB, 3 * GIB, STORAGE)
SHORT = Scale("short", 1, 0.2, 0.8, 64 * MIB, 3, 0.8, 2, GIB, GIB, STORAGE)
CATCH_UP_S_MAX = 120


def cpu_s(pids: list[int]) -> float:
    """User and system time (proc(5))."""
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class ThreeNodes:
    """A cluster with one volume."""

    def __init__(self, folder: pathlib.Path, network: ClusterNetwork, scale: Scale, log_bytes: int, naive: bool = False):
        places = {name: network.place(name) for name in (*NODES, ETCD)}
        storage = scale.storage | ({"apply_delay": "0s"} if naive else {})
        self.cluster = Cluster(folder, LEASE, places=places, log={"max_size": str(log_bytes)}, storage=storage)
        self.cluster.add_volume(VOLUME, str(scale.region_bytes))
        if not naive:
            self.cluster.add_volume(SHORT_VOLUME, str(scale.region_bytes), storage=("a",))
            self.cluster.add_volume(NEIGHBOUR, str(scale.region_bytes), storage=("b",))
        for node in self.cluster.nodes.values():
            node.program = NAIVE_MARINERD if naive else node.program
        self.log_bytes = log_bytes

    def __enter__(self):
        self.cluster.start()
        self.server = self.cluster.server_of(VOLUME)
        self.mirror: Node = self.cluster["b" if self.server.name == "a" else "a"]
        self.url = self.server.volume_url(VOLUME)
        self.beside = self.cluster.places[self.server.name]
        return self

    def __exit__(self, *_):
        self.cluster.close()

    @property
    def pids(self) -> list[int]:
        return [node.process.pid for node in self.cluster.nodes.values() if node.process is not None]

    @property
    def logger_pid(self) -> int:
        return self.cluster["c"].process.pid

    def settled(self) -> int:
        return int(self.server.volume(VOLUME)["replicas"][0]["settled"])

    def mirror_has(self, settled: int) -> bool:
        replicas = self.server.volume(VOLUME)["replicas"][1:]
        mirror = next(each for each in replicas if each["node"] == self.mirror.name)
        return mirror["caught_up"] and int(mirror["durable"]) >= settled

    def wait_applied(self):
        self.cluster.wait_healed(VOLUME)


class LoggerAlone:
    """The same nodes, with a volume that has no mirror: its coordinator and its image are on one node, its log on another one."""

    def __init__(self, nodes: ThreeNodes, volume: str = SHORT_VOLUME):
        self.cluster, self.log_bytes, self.logger_pid = nodes.cluster, nodes.log_bytes, nodes.logger_pid
        self.volume = volume
        server = nodes.cluster.server_of(volume)
        self.url = server.volume_url(volume)
        self.pids = [server.process.pid, nodes.logger_pid]

    def wait_applied(self):
        self.cluster.wait_healed(self.volume)


class SingleNode:
    """A standalone daemon at the logger's place."""

    def __init__(self, folder: pathlib.Path, place: Place, scale: Scale, log_bytes: int):
        self._daemon = mariner.Daemon(folder, address=place.portal, prefix=place.prefix, log={"max_size": str(log_bytes)},
                                      storage=scale.storage)
        self._size = scale.region_bytes
        self.log_bytes = log_bytes

    def __enter__(self):
        self._daemon.start()
        self._daemon.create(VOLUME, str(self._size))
        self.url = self._daemon.volume_url(VOLUME)
        return self

    def __exit__(self, *_):
        self._daemon.close()

    @property
    def pids(self) -> list[int]:
        return [self._daemon.process.pid]

    @property
    def logger_pid(self) -> int:
        return self._daemon.process.pid

    def wait_applied(self):
        mariner.wait_until(lambda: int(self._daemon.ask("volume", "show", VOLUME)["unapplied_bytes"]) == 0, 60,
                           "the image catches up", 0.1)


class Bench:
    def __init__(self, scale: Scale, folder: pathlib.Path, rate: str):
        self.scale, self.folder, self.rate = scale, folder, rate
        # By server, load and place: a run for each round.
        self.runs: dict[tuple[str, str, str], list[dict]] = {}
        self.neighbour: dict[str, list[dict]] = {"alone": [], "beside": []}
        self.catch_up: dict = {"before": [], "absent": [], "meanwhile": [], "after": []}
        self.notes: list[str] = []

    def measure(self):
        with ClusterNetwork(self.rate) as network:
            self.host = tuple(network.place(HOST).prefix)
            with (ThreeNodes(self.folder / OURS, network, self.scale, self.scale.log_bytes) as ours,
                  SingleNode(self.folder / SINGLE, network.place("c"), self.scale, self.scale.rival_log_bytes) as single,
                  ThreeNodes(self.folder / NAIVE, network, self.scale, self.scale.rival_log_bytes, naive=True) as naive):
                everybody = {SINGLE: single, OURS: ours, LOGGER: LoggerAlone(ours), NAIVE: naive}
                self._prepare(everybody)
                self.beside = tuple(ours.beside.prefix)
                for turn in range(self.scale.rounds):
                    self._round(turn, everybody)
                    self._neighbour(ours, LoggerAlone(ours, NEIGHBOUR))
            with ThreeNodes(self.folder / "again", network, self.scale, self.scale.log_bytes) as ours:
                self._prepare({OURS: ours})
                self._measure_catch_up(ours)

    def _prepare(self, everybody: dict):
        for name, server in everybody.items():
            say(f"preparing {NAMES[name]}")
            if not wait_initialised(server.logger_pid, server.log_bytes, 180 if self.scale is FULL else 4):
                self.notes.append("Parts of a log's space had not been written before the measurement began; synchronous writes "
                                  "to such space cost the file system's journal as well.")
            run = run_iscsi(FILL, Target(server.url, 0, prefix=self.host),
                            Limits(0, 600, self.scale.region_bytes, self.scale.region_bytes))
            if run["failure"]:
                raise mariner.Failed(f"filling {NAMES[name]}: {run['failure']}")
            server.wait_applied()

    def _round(self, turn: int, everybody: dict):
        """Forwards and backwards in turn, so that nobody always follows the same one."""
        entrants = [(QD1, name, APART) for name in everybody] + [(QD1, name, BESIDE) for name in (SINGLE, OURS, LOGGER)]
        entrants += [(QD32, name, APART) for name in everybody]
        for load, name, where in entrants if turn % 2 == 0 else reversed(entrants):
            server = everybody[name]
            before = cpu_s(server.pids)
            run = self._run(load, server, self.host if where == APART else self.beside, self.scale.seconds)
            if not run["failure"]:
                whole = run["rate"] * (self.scale.seconds + self.scale.warmup_s)
                run["all_cpu_us"] = (cpu_s(server.pids) - before) * 1e6 / whole
            self.runs.setdefault((name, load.id, where), []).append(run)
            text = run["failure"] or f"{run['rate']:>8,.0f} IO/s  p50 {run['latency_us']['p50']:,.0f} us"
            say(f"{turn + 1}  {load.what:<30} {where:<7} {NAMES[name]:<32} {text}")
            server.wait_applied()  # what is left to apply must not disturb the others

    def _neighbour(self, ours: ThreeNodes, other: LoggerAlone):
        """Lone writes, without and with another volume that floods the same logger."""
        for when in self.neighbour:
            flood = threading.Thread(target=self._run, args=(FLOOD, other, self.host, self.scale.seconds + 2 * self.scale.warmup_s))
            if when == "beside":
                flood.start()
                time.sleep(self.scale.warmup_s)
            run = self._run(QD1, ours, self.host, self.scale.seconds)
            self.neighbour[when].append(run)
            text = run["failure"] or f"p50 {run['latency_us']['p50']:,.0f} us  p99 {run['latency_us']['p99']:,.0f} us"
            say(f"   {QD1.what}, neighbour {when:<7} {text}")
            if when == "beside":
                flood.join()
        ours.wait_applied()
        other.wait_applied()

    def _run(self, load: Load, server, prefix: tuple[str, ...], seconds: float) -> dict:
        return run_iscsi(load, Target(server.url, 0, prefix=prefix),
                         Limits(self.scale.warmup_s, seconds, self.scale.region_bytes))

    def _measure_catch_up(self, ours: ThreeNodes):
        def piece(when: str):
            run = self._run(QD32, ours, self.host, self.scale.slice_s)
            self.catch_up[when].append(run.get("rate", 0))
            say(f"mirror {when:<9} {run['failure'] or f'''{run['rate']:>8,.0f} IO/s'''}")

        for _ in range(self.scale.before_slices):
            piece("before")
        ours.mirror.kill()
        deadline = time.monotonic() + self.scale.absence_s
        while time.monotonic() < deadline:
            piece("absent")
        ours.mirror.start(wait=False)
        began = time.monotonic()
        while "seconds" not in self.catch_up and time.monotonic() - began < CATCH_UP_S_MAX:
            settled = ours.settled()
            piece("meanwhile")
            if ours.mirror_has(settled):
                self.catch_up["seconds"] = time.monotonic() - began
        for _ in range(self.scale.before_slices):
            piece("after")

    # -- what comes of it -------------------------------------------------------------------------

    def figures(self, name: str, load: Load, where: str, *path: str) -> list[float]:
        """Of each round; none if one was not measured."""
        values = [get(run, *path) for run in self.runs.get((name, load.id, where), [])]
        return [] if None in values else values

    def median(self, name: str, load: Load, where: str, *path: str) -> float | None:
        values = self.figures(name, load, where, *path)
        return statistics.median(values) if values else None

    def _row(self, load: Load, where: str, rival: str, figure: str, what: str, unit: str, path: tuple[str, ...],
             goal: float | None, less: bool) -> Row:
        ours, theirs = (self.figures(name, load, where, *path) for name in (OURS, rival))
        paired = statistics.median(a / b for a, b in zip(ours, theirs)) if ours and theirs else None
        measured = sum(self.figures(OURS, load, where, "seconds"))
        return Row(f"{load.id}.{where}.{figure}.{rival}", f"{load.what}, initiator {where}: {what}", unit,
                   self.median(OURS, load, where, *path), self.median(rival, load, where, *path), NAMES[rival], measured,
                   self.scale.name, goal, less, NEEDS_S if goal else 0, paired=paired)

    def rows(self) -> list[Row]:
        rows = []
        for where, rival, goal in ((BESIDE, SINGLE, LATENCY_MAX), (BESIDE, LOGGER, LATENCY_MAX), (APART, SINGLE, None),
                                   (APART, LOGGER, None), (APART, NAIVE, 1)):
            for p, words in (("p50", "median latency"), ("p99", "99th percentile of latency")):
                rows.append(self._row(QD1, where, rival, p, f"{words} (less is better)", "us", ("latency_us", p),
                                      goal if p == "p50" else None, True))
        for rival, goal in ((SINGLE, RATE_MIN), (LOGGER, None), (NAIVE, 1)):
            rows.append(self._row(QD32, APART, rival, "rate", "rate", "IO/s", ("rate",), goal, False))
            rows.append(self._row(QD32, APART, rival, "cpu", "CPU of all daemons for one write (less is better)", "us/IO",
                                  ("all_cpu_us",), None, True))
        return rows + self._neighbour_rows() + self._catch_up_rows()

    def _neighbour_rows(self) -> list[Row]:
        def median(when: str, p: str) -> float | None:
            values = [get(run, "latency_us", p) for run in self.neighbour[when]]
            return None if None in values or not values else statistics.median(values)

        measured = len(self.neighbour["beside"]) * self.scale.seconds
        return [Row(f"neighbour.{p}", f"{QD1.what}, while a neighbour floods the logger: {p} of latency (less is better)", "us",
                    median("beside", p), median("alone", p), "without it", measured, self.scale.name, less_is_better=True)
                for p in ("p50", "p99")]

    def _catch_up_rows(self) -> list[Row]:
        median = {when: statistics.median(values) for when, values in self.catch_up.items() if isinstance(values, list) and values}
        absent = len(self.catch_up["absent"]) * (self.scale.slice_s + self.scale.warmup_s)
        shown = {"measured_s": absent, "scale": self.scale.name, "needs_s": 50}
        what = f"rate at depth 32 while the mirror catches up after {self.scale.absence_s:g} s"
        return [Row("catch_up.rate", what, "IO/s", median.get("meanwhile"), median.get("before"), "before the mirror was killed",
                    goal=CATCH_UP_MIN, **shown),
                Row("catch_up.seconds", "how long it catches up (less is better)", "s", self.catch_up.get("seconds"),
                    self.scale.absence_s, "how long it was away", goal=1, less_is_better=True, **shown)]

    def table(self, rows: list[Row], about: dict) -> str:
        lines = header("", "Mariner, three nodes", "beside", "ratio", "goal")
        for row in rows:
            record = row.record(about)
            ratio = "–" if record["ratio"] is None else f"{record['ratio']:.2f}×"
            goal = "" if row.goal is None else f"{'≤' if row.less_is_better else '≥'} {row.goal:g}"
            verdict = "" if row.goal is None else ", holds" if record["holds"] else ", does not hold"
            lines.append(line(row.what, f"**{number(row.ours)} {row.unit}**", f"{number(row.rival)} {row.unit} ({row.rival_name})",
                              ratio, goal + verdict))
        notes = NOTES.format(rate=f"tbf, {self.rate}" if self.rate else "unshaped", rounds=self.scale.rounds,
                             seconds=self.scale.seconds, warmup=self.scale.warmup_s, absence=self.scale.absence_s,
                             slice=self.scale.slice_s)
        return "\n\n".join(["\n".join(lines), "\n".join([notes, *(f"- {note}" for note in self.notes)]),
                            "Measured on " + describe(about)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="under a minute; shows that it works")
    parser.add_argument("--rate", default="", help="of every cable, as tc has it, such as 100mbit (default: unshaped)")
    parser.add_argument("--folder", type=pathlib.Path, default=OUT, help="on the file system to measure (default: %(default)s)")
    options = parser.parse_args()
    end_cleanly()
    scale = SHORT if options.short else FULL
    OUT.mkdir(parents=True, exist_ok=True)
    needed = 2 * scale.log_bytes + 2 * scale.rival_log_bytes + 8 * scale.region_bytes + GIB
    free = shutil.disk_usage(options.folder).free
    if free < needed:
        say(f"{options.folder}: {needed / GIB:.0f} GiB are needed, {free / GIB:.0f} are free; --folder names another place")
        return 1
    about = machine(options.folder.resolve())
    with tempfile.TemporaryDirectory(prefix="replication-", dir=options.folder) as folder:
        bench = Bench(scale, pathlib.Path(folder), options.rate)
        bench.measure()
    rows = bench.rows()
    records = [row.record(about) for row in rows]
    write_json(OUT / "replication.json", records)
    write_json(OUT / "replication-runs.json", {"rounds": {".".join(key): runs for key, runs in bench.runs.items()},
                                               "neighbour": bench.neighbour, "catch_up": bench.catch_up})
    print(bench.table(rows, about))
    missing = [record["id"] for record in records if not record["holds"]]
    if missing:
        say("does not hold: " + ", ".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
