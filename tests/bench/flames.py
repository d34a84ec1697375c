#!/usr/bin/env python3
"""Where the CPU time of the servers goes: flame graphs, and a table by the kind of work, of a write's and a read's path.

    flames.py [--short] [--before MARINERD] [--folder FOLDER]

--before: another build of marinerd, measured beside this one. Takes Debian's linux-perf and root."""

import argparse
import dataclasses
import pathlib
import shutil
import sys
import tempfile

import servers  # first: it shows Python where the end-to-end drivers are
import flame
import perf
from ending import end_cleanly
from loads import Limits, Load, Target, run_iscsi
from results import OUT, describe, header, line, machine, say, write_json
from servers import GIB, Mariner, Tgt

MIB = 1 << 20
LOADS = [
    Load("write_4k_qd1", "4 KiB durable random write, depth 1", True, True, 4096, 1),
    Load("write_4k_qd32", "4 KiB durable random write, depth 32", True, True, 4096, 32),
    Load("read_4k_qd32", "4 KiB cached random read, depth 32", False, True, 4096, 32),
]
STORAGE = {"pending_memory": "256M", "lag_max": "1G", "apply_delay": "1s"}
WINDOW = "2s"

# (kind, what is found in its stacks); the first that fits.
KINDS = [
    ("receiving", r"sys_recvmsg|sys_recvfrom|sock_read_iter|tcp_recvmsg"),
    ("sending", r"sys_sendmsg|sys_sendto|sock_write_iter|tcp_sendmsg"),
    ("flushing files (of Mariner: images)", r"sync_file_range|ext4_sync_file|fdatasync|vfs_fsync"),
    ("writing images", r"write_image"),
    ("the log: the kernel's part", r"io_uring|io_wq|iou-wrk|blkdev|iomap_dio"),
    ("reading and writing files through the page cache", r"pwrite64|pread64|vfs_write|vfs_read|preadv|pwritev"),
    ("the index", r"mariner::index::"),
    ("checksums", r"crc32c|crc32_"),
    ("memory", r"malloc|free$|operator new|operator delete|Payload::destroy|page_fault"),
    ("sleeping, waking, looking", r"epoll|schedule|futex|eventfd|sched_yield|pthread_cond|reactor|io_context"
                                  r"(?!.*mariner::(iscsi|scsi|volume|logging))"),
    ("iSCSI and SCSI", r"mariner::(iscsi|scsi)::|iscsi_|scsi_|target_cmd"),
    ("volume and log", r"mariner::(volume|logging|node)::"),
]


@dataclasses.dataclass(frozen=True)
class Measured:
    load: Load
    server: str
    cpu_us: float  # an operation
    shares: dict[str, float]


class Bench:
    def __init__(self, folder: pathlib.Path, *, short: bool, before: pathlib.Path | None):
        self.folder = folder
        self.before = before
        self.volume_bytes, self.log_bytes = (512 * MIB, GIB) if short else (2 * GIB, 8 * GIB)
        self.warmup_s, self.seconds = (0.3, 0.7) if short else (3.0, 8.0)
        self.measured: list[Measured] = []
        self.in_log = 0  # what size of writes the log is full of

    def measure(self):
        builds = [("Mariner", servers.mariner.MARINERD)]
        if self.before is not None:
            builds.insert(0, ("Mariner, before", self.before))
        for name, program in builds:
            self.in_log = 0
            ours = Mariner(self.folder / name.replace(", ", "-"), self.volume_bytes, self.log_bytes, STORAGE, window=WINDOW)
            ours.daemon.program = program
            with ours:
                ours.wait_initialised(180)
                self._fill(Target(ours.url, ours.pid), self.volume_bytes + self.log_bytes)
                ours.wait_applied(60)
                for load in reversed(LOADS):  # what is read is in the page cache
                    if load.write:
                        self._go_round(Target(ours.url, ours.pid))
                        ours.wait_applied(60)
                    self._record(load, name, Target(ours.url, ours.pid))
                    ours.wait_applied(60)
        with Tgt(self.folder / "tgt", self.volume_bytes) as tgt:
            self._fill(Target(tgt.urls["plain"], tgt.pid), self.volume_bytes)
            for load in reversed(LOADS):
                self._record(load, "tgt", Target(tgt.urls["plain"], tgt.pid, fua=load.write))

    def _fill(self, target: Target, bytes_max: int):
        for write, limit in ((True, bytes_max), (False, self.volume_bytes // 2)):
            fill = Load("fill", "fill", write, False, 256 << 10, 8)
            run = run_iscsi(fill, target, Limits(0, 600, self.volume_bytes, limit))
            if run["failure"]:
                raise servers.mariner.Failed(f"filling {target.url}: {run['failure']}")

    def _go_round(self, target: Target):
        """The log is full of writes of 4 KiB: what is given up for those of a load are such writes."""
        if self.in_log == 4096:
            return
        self.in_log = 4096
        around = Load("round", "the log goes round", True, True, 4096, 128)
        run = run_iscsi(around, target, Limits(0, 600, self.volume_bytes // 2, self.log_bytes))
        if run["failure"]:
            raise servers.mariner.Failed(f"{around.what}, {target.url}: {run['failure']}")

    def _record(self, load: Load, server: str, target: Target):
        limits = Limits(self.warmup_s, self.seconds, self.volume_bytes // 2)
        plain = run_iscsi(load, target, limits)  # its CPU time; with perf beside it there is more
        options = ["-F", "499", "--call-graph", "dwarf,16384", "-p", str(target.pid)]
        run, script = perf.beside(lambda: run_iscsi(load, target, limits), self.warmup_s, self.seconds, options, "ip,sym,dso",
                                  self.folder / "perf.data")
        if failure := plain["failure"] or run["failure"]:
            raise servers.mariner.Failed(f"{load.what}, {server}: {failure}")
        folded = flame.fold(script)
        if not folded:
            raise servers.mariner.Failed(f"{load.what}, {server}: perf saw nothing")
        name = server.lower().replace(", ", "-")
        (OUT / f"flames-{load.id}-{name}.svg").write_text(flame.svg(f"{load.what}: {server}, {plain['server_cpu_us']:.1f} µs of CPU", folded))
        self.measured.append(Measured(load, server, plain["server_cpu_us"], flame.shares(folded, KINDS)))
        say(f"{load.what:<40} {server:<16} {plain['server_cpu_us']:.1f} us, {sum(folded.values())} samples")

    def table(self, about: dict) -> str:
        names = list(dict.fromkeys(each.server for each in self.measured))
        parts = []
        for load in LOADS:
            lines = header(f"{load.what}: CPU in µs", *names)
            of = {each.server: each for each in self.measured if each.load is load}
            lines.append(line("**all**", *(f"**{of[name].cpu_us:.1f}**" for name in names)))
            for kind in [*dict(KINDS), "other"]:
                values = [of[name].cpu_us * of[name].shares[kind] for name in names]
                if max(values) >= 0.05:
                    lines.append(line(kind, *(f"{value:.1f}" for value in values)))
            parts.append("\n".join(lines))
        return "\n\n".join([*parts, "All threads of the server; what the kernel's own threads do is charged to nobody. tgt writes with FUA.",
                            "Measured on " + describe(about)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="under a minute; shows that it works")
    parser.add_argument("--before", type=pathlib.Path, help="another marinerd, measured beside this one")
    parser.add_argument("--folder", type=pathlib.Path, default=OUT, help="on the file system to measure (default: %(default)s)")
    options = parser.parse_args()
    end_cleanly()
    if shutil.which("perf") is None:
        say("perf is missing: apt install linux-perf")
        return 1
    OUT.mkdir(parents=True, exist_ok=True)
    about = machine(options.folder.resolve())
    with tempfile.TemporaryDirectory(prefix="flames-", dir=options.folder) as folder:
        bench = Bench(pathlib.Path(folder), short=options.short, before=options.before)
        bench.measure()
    write_json(OUT / "flames.json", [{"load": each.load.id, "server": each.server, "cpu_us": each.cpu_us, "shares": each.shares}
                                     for each in bench.measured])
    print(bench.table(about))
    return 0


if __name__ == "__main__":
    sys.exit(main())
