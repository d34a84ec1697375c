"""The dissertation's figures of applications (section 4.6.5 and 4.6.6) beside ours, in shape: as multiples of the plain way."""

import dataclasses

from apps_servers import DURABLE, LOCAL, OURS
from results import header, line

# One sentence for each system that the dissertation measured, and what is ours in its place.
SYSTEMS = {
    "4.13": "4 KiB writes at a set interval through iSCSI to a Trail node with five ATA log disks, from a kernel initiator "
            "with a queue of 2,048; ours go through libiscsi on loopback to one log in a file.",
    "4.14": "bursts of 1,000 such writes a second apart, to one node and by two-phase commit to three; ours are to one node "
            "(`tests/bench/run.sh replication` has three).",
    "4.15": "traces of a database server's disk, played at several speeds: they are not to be had, so this is left out "
            "(there Mariner is at least 500 times as fast as one disk without a write cache, most of it queueing).",
    "4.16": "Postmark on a file system that is mounted `sync`, directly on an ATA disk whose write cache is off, and on Mariner "
            "(the text says 10,000 files and 50,000 transactions, the caption ten times as many); ours is ext4, "
            "the local disk by the same path but the network.",
    "4.17": "the transactions of the same runs.",
    "4.3": "operations of NFS, of a trace (Lair) that is played at full speed by several requests at once, on an export that is mounted `sync`; "
           "ours are one after the other on ext4, without NFS.",
}


@dataclasses.dataclass(frozen=True)
class Shape:
    """`plain` and `mariner` are the paper's values; or only how many times better Mariner is, of what its text says."""
    figure: str
    what: str
    load: str
    name: str
    unit: str = ""
    plain: float | None = None
    mariner: float | None = None
    times: float | None = None

    @property
    def better(self) -> float:
        return self.times or self.plain / self.mariner


SHAPES = (
    Shape("4.16", "Postmark, read", "postmark_sync", "read", times=5),
    Shape("4.16", "Postmark, written", "postmark_sync", "written", times=5),
    Shape("4.16", "Postmark that only appends: a write's latency", "postmark_sync_r0", "write_latency", "ms", 20, 3.2),
    Shape("4.17", "Postmark, transactions", "postmark_sync", "transactions", times=5),
    Shape("4.17", "Postmark that only appends, transactions", "postmark_sync_r0", "transactions", times=5),
    Shape("4.17", "Postmark that mostly reads, transactions", "postmark_sync_r8", "transactions", times=5),
    Shape("4.3", "setattr", "operations", "setattr", "ms", 33.3, 4.8),
    Shape("4.3", "write", "operations", "write", "ms", 121, 12),
    Shape("4.3", "create", "operations", "create", "ms", 82.7, 9),
    Shape("4.3", "remove", "operations", "remove", "ms", 64.5, 7),
    Shape("4.3", "rename", "operations", "rename", "ms", 57.3, 9.0),
    Shape("4.3", "link", "operations", "link", "ms", 83.2, 8.9),
    Shape("4.3", "mkdir", "operations", "mkdir", "ms", 161, 13.4),
)
PAPER_KNEE_US = 180  # Figure 4.13: below it, latency rises dramatically


def times_better(ours: float | None, other: float | None, less_is_better: bool) -> float | None:
    if not ours or not other:
        return None
    return other / ours if less_is_better else ours / other


def knee_us(latencies: dict[int, float]) -> int | None:
    """The shortest interval from which on, to the longest, none has twice the least latency of all or more.

    `latencies`: by interval. None: even the longest has."""
    found = None
    for interval in sorted(latencies, reverse=True):
        if latencies[interval] >= 2 * min(latencies.values()):
            break
        found = interval
    return found


def short(value: float | None) -> str:
    """Three digits that count."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def shapes_table(figure, less_is_better) -> str:
    """`figure(load, server, name)`: ours; `less_is_better(load, name)`."""
    lines = header("dissertation", "its disk", "its Mariner", "times better", "local disk here", "Mariner here",
                   "times better than the local disk", "than tgt, durable")
    for shape in SHAPES:
        ours, local, tgt = (figure(shape.load, server, shape.name) for server in (OURS, LOCAL, DURABLE))
        less = less_is_better(shape.load, shape.name)
        kind = "Table" if shape.figure == "4.3" else "Figure"
        lines.append(line(f"{kind} {shape.figure}: {shape.what}",
                          *(f"{short(value)} {shape.unit}" if value else "" for value in (shape.plain, shape.mariner)),
                          f"{shape.better:.1f}", short(local), short(ours),
                          short(times_better(ours, local, less)), short(times_better(ours, tgt, less))))
    return "\n".join(lines)


def systems_text() -> str:
    return "\n".join(f"- {'Table' if figure == '4.3' else 'Figure'} {figure}: {text}" for figure, text in SYSTEMS.items())
