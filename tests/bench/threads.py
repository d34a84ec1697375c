#!/usr/bin/env python3
"""What a command costs the daemon's main thread, with and without socket threads: what bounds its rate where there are processors enough.

    threads.py [--short] [--folder FOLDER]

The same server with sockets that stay with the main thread and with sockets that are always lent to one other thread, in turns."""

import argparse
import collections
import dataclasses
import pathlib
import statistics
import sys
import tempfile

import servers  # first: it shows Python where the end-to-end drivers are
from loads import Limits, Load, Target, run_iscsi
from results import OUT, describe, header, line, machine, number, say, write_json
from servers import GIB, Mariner

MIB = 1 << 20
LOADS = [
    Load("write_4k", "4 KiB random write, depth 32", True, True, 4096, 32),
    Load("write_256k", "256 KiB sequential write, depth 8", True, False, 256 << 10, 8),
    Load("read_4k", "4 KiB cached random read, depth 32", False, True, 4096, 32),
    Load("read_256k", "256 KiB cached sequential read, depth 8", False, False, 256 << 10, 8),
]
WAYS = {"alone": "0", "with a socket thread": "1"}
STORAGE = {"pending_memory": "256M", "lag_max": "1G", "apply_delay": "1s"}
WINDOW = "2s"


@dataclasses.dataclass(frozen=True)
class Measured:
    rate: float
    cpu_us: dict[str, float]  # of an operation, by kind of thread


def cpu_ns(pid: int) -> dict[int, tuple[str, int]]:
    """Of each thread, its kind and the time that it has run."""
    times = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
            ran = int((task / "schedstat").read_text().split()[0])
        except OSError:
            continue  # it has ended
        kind = "main" if int(task.name) == pid else "sockets" if name == "sockets" else "others"
        times[int(task.name)] = (kind, ran)
    return times


class Bench:
    def __init__(self, folder: pathlib.Path, *, short: bool):
        self.folder = folder
        self.volume_bytes, self.log_bytes = (256 * MIB, GIB) if short else (2 * GIB, 8 * GIB)
        self.seconds, self.rounds = (0.7, 1) if short else (8.0, 5)
        self.measured: dict[tuple[str, str], list[Measured]] = collections.defaultdict(list)

    def measure(self):
        with Mariner(self.folder / "mariner", self.volume_bytes, self.log_bytes, STORAGE, window=WINDOW) as server:
            server.wait_initialised(180)
            self._fill(Target(server.url, server.pid))
            for at in range(self.rounds):
                ways = list(WAYS)
                for way in ways if at % 2 == 0 else reversed(ways):
                    server.daemon.stop(60)
                    server.daemon.configure_server(socket_threads=WAYS[way], socket_threads_load="0%")
                    server.daemon.start()
                    for load in LOADS:
                        server.wait_applied(60)
                        self._measure(load, way, server)

    def _fill(self, target: Target):
        for write in (True, False):
            fill = Load("fill", "fill", write, False, 256 << 10, 8)
            run = run_iscsi(fill, target, Limits(0, 600, self.volume_bytes, self.volume_bytes))
            if run["failure"]:
                raise servers.mariner.Failed(f"filling {target.url}: {run['failure']}")

    def _measure(self, load: Load, way: str, server: Mariner):
        target = Target(server.url, server.pid)
        region = self.volume_bytes // 2
        run_iscsi(load, target, Limits(0, self.seconds / 4, region))  # in the steady state, and what is read is cached
        before = cpu_ns(server.pid)
        run = run_iscsi(load, target, Limits(0, self.seconds, region))
        if run["failure"]:
            raise servers.mariner.Failed(f"{load.what}, {way}: {run['failure']}")
        cpu_us: dict[str, float] = collections.Counter()
        for thread, (kind, ran) in cpu_ns(server.pid).items():
            cpu_us[kind] += (ran - before.get(thread, (kind, 0))[1]) / 1e3 / run["operations"]
        self.measured[load.id, way].append(Measured(run["rate"], dict(cpu_us)))
        say(f"{load.what:<42} {way:<22} {run['rate']:>9.0f}/s, us of CPU: " +
            ", ".join(f"{kind} {value:.1f}" for kind, value in sorted(cpu_us.items())))

    def records(self) -> list[dict]:
        records = []
        for load in LOADS:
            for way in WAYS:
                runs = self.measured[load.id, way]
                record = {"load": load.id, "what": load.what, "way": way, "rate": statistics.median(run.rate for run in runs)}
                for kind in ("main", "sockets", "others"):
                    record[f"{kind}_us"] = statistics.median(run.cpu_us.get(kind, 0) for run in runs)
                records.append(record)
        return records

    def table(self, records: list[dict], about: dict) -> str:
        lines = header("", "rate here, per s", "main thread, µs", "socket thread, µs", "others, µs", "main thread's bound, per s")
        for record in records:
            lines.append(line(f"{record['what']}, {record['way']}", number(record["rate"]), f"{record['main_us']:.1f}",
                              f"{record['sockets_us']:.1f}", f"{record['others_us']:.1f}", number(1e6 / record["main_us"])))
        notes = (f"Medians of {self.rounds} rounds, in turns. CPU time of the daemon's threads for one command (the kernel's own threads are charged to "
                 "nobody). *Bound*: what the main thread could do if it ran all the time and nothing else was short; not measured.")
        return "\n".join([*lines, "", notes, "Measured on " + describe(about)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="under a minute; shows that it works")
    parser.add_argument("--folder", type=pathlib.Path, default=OUT, help="for 10 GiB of volume and log (default: %(default)s)")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    about = machine(options.folder.resolve())
    with tempfile.TemporaryDirectory(prefix="threads-", dir=options.folder) as folder:
        bench = Bench(pathlib.Path(folder), short=options.short)
        bench.measure()
    records = bench.records()
    write_json(OUT / "threads.json", {"machine": about, "rows": records})
    print("\n" + bench.table(records, about))
    return 0


if __name__ == "__main__":
    sys.exit(main())
