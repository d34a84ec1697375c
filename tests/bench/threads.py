#!/usr/bin/env python3
"""What socket threads take from the daemon's main thread: its CPU time for a command, with them and without.

    threads.py [--short] [--folder FOLDER]

The same server with sockets that stay with the main thread and with sockets that are always lent to one other thread, in turns. On two
processors, one of which is the initiator's, the rates say little; what the main thread has to do is what bounds them where there are more."""

import argparse
import collections
import contextlib
import dataclasses
import pathlib
import statistics
import sys
import tempfile

import servers  # first: it shows Python where the end-to-end drivers are
from ending import end_cleanly
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
ALONE, LENT = "alone", "with a socket thread"
WAYS = {ALONE: "0", LENT: "1"}
STORAGE = {"pending_memory": "256M", "lag_max": "1G", "apply_delay": "1s"}
WINDOW = "2s"
KINDS = ("main", "sockets", "others")


@dataclasses.dataclass(frozen=True)
class Measured:
    rate: float
    cpu_us: dict[str, float]  # of an operation, by kind of thread


def tasks(pid: int) -> dict[int, str]:
    """The process's threads, with their kinds."""
    kinds = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            sockets = (task / "comm").read_text().strip() == "sockets"
            kinds[int(task.name)] = "main" if int(task.name) == pid else "sockets" if sockets else "others"
    return kinds


def cpu_ns(pid: int) -> dict[int, int]:
    """For how long each thread has run."""
    times = {}
    for task in tasks(pid):
        with contextlib.suppress(OSError):
            times[task] = int(pathlib.Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
    return times


class Bench:
    def __init__(self, folder: pathlib.Path, *, short: bool):
        self.folder = folder
        self.volume_bytes, self.log_bytes = (256 * MIB, GIB) if short else (2 * GIB, 8 * GIB)
        self.seconds, self.rounds = (0.7, 1) if short else (4.0, 5)
        self.measured: dict[tuple[str, str], list[Measured]] = collections.defaultdict(list)

    def measure(self):
        with Mariner(self.folder / "mariner", self.volume_bytes, self.log_bytes, STORAGE, window=WINDOW) as server:
            server.wait_initialised(180)
            self._fill(Target(server.url, server.pid))
            for at in range(self.rounds):
                ways = list(WAYS)
                for way in ways if at % 2 == 0 else reversed(ways):
                    server.wait_applied(60)
                    server.daemon.stop(60)
                    server.daemon.configure_server(socket_threads=WAYS[way], socket_threads_load="0%")
                    server.daemon.start()
                    for load in LOADS:
                        self._measure(load, way, server)
                        server.wait_applied(60)

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
        after = cpu_ns(server.pid)
        if run["failure"]:
            raise servers.mariner.Failed(f"{load.what}, {way}: {run['failure']}")
        cpu_us = dict.fromkeys(KINDS, 0.0)
        for task, kind in tasks(server.pid).items():
            cpu_us[kind] += (after.get(task, 0) - before.get(task, 0)) / 1e3 / run["operations"]
        self.measured[load.id, way].append(Measured(run["rate"], cpu_us))
        say(f"{load.what:<42} {way:<22} {run['rate']:>9.0f}/s, us of CPU: " +
            ", ".join(f"{kind} {value:.1f}" for kind, value in cpu_us.items()))

    def records(self) -> list[dict]:
        records = []
        for load in LOADS:
            ratios = [lent.cpu_us["main"] / alone.cpu_us["main"] for alone, lent in zip(self.measured[load.id, ALONE], self.measured[load.id, LENT])]
            for way in WAYS:
                runs = self.measured[load.id, way]
                records.append({"load": load.id, "what": load.what, "way": way, "rate": statistics.median(run.rate for run in runs),
                                "ratio": statistics.median(ratios) if way == LENT else None,
                                **{f"{kind}_us": statistics.median(run.cpu_us[kind] for run in runs) for kind in KINDS}})
        return records

    def table(self, records: list[dict], about: dict) -> str:
        lines = header("", "main thread, µs", "of it alone", "socket thread, µs", "others, µs", "commands a second, here")
        for record in records:
            ratio = f"**{record['ratio']:.2f}×**" if record["ratio"] else ""
            main, sockets, others = (f"{record[f'{kind}_us']:.1f}" for kind in KINDS)
            lines.append(line(f"{record['what']}, {record['way']}", main, ratio, sockets, others, number(record["rate"])))
        notes = (f"CPU time of the daemon's threads for one command; the kernel's own threads are charged to nobody. Medians of {self.rounds} rounds, in "
                 "turns; the ratio is of those within rounds.")
        return "\n".join([*lines, "", notes, "Measured on " + describe(about)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="under a minute; shows that it works")
    parser.add_argument("--folder", type=pathlib.Path, default=OUT, help="for 10 GiB of volume and log (default: %(default)s)")
    options = parser.parse_args()
    end_cleanly()
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
