"""What the target is to reach beside its rivals: for each load, figure and rival the least ratio, or the greatest."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Goal:
    ratio: float
    less_is_better: bool = False


_WRITES_4K = ("write_4k_qd1", "write_4k_qd32", "write_4k_qd128")
_NEVER_WORSE = Goal(1, less_is_better=True)

# By load, figure and rival, as target.py names them.
GOALS: dict[tuple[str, str, str], Goal] = {
    ("write_4k_qd1", "rate", "tgt_durable"): Goal(1.5),
    ("write_4k_qd32", "rate", "tgt_durable"): Goal(2),
    ("write_4k_qd128", "rate", "tgt_durable"): Goal(2),
    ("write_4k_qd32", "rate", "tgt_volatile"): Goal(1.1),
    ("write_4k_qd128", "rate", "tgt_volatile"): Goal(1.1),
    ("write_4k_qd32", "rate", "btrfs"): Goal(15),
    ("write_4k_qd1", "rate", "btrfs_durable"): Goal(12),
    ("write_4k_qd32", "rate", "rocksdb"): Goal(2),
    ("read_4k_qd32", "rate", "tgt_volatile"): Goal(1.7),
    ("read_256k", "rate", "tgt_volatile"): Goal(1.5),
    ("burst_256k", "rate", "tgt_volatile"): Goal(0.9),
    ("write_256k", "rate", "tgt_durable"): Goal(1.2),
    ("read_4k_qd32", "cpu", "tgt_volatile"): Goal(0.6, less_is_better=True),
    **{(load, "cpu", "tgt_durable"): _NEVER_WORSE for load in _WRITES_4K},
    **{(load, "p99.9", "tgt_durable"): _NEVER_WORSE for load in (*_WRITES_4K, "write_256k", "burst_4k_qd32", "burst_256k")},
    **{(load, "p99.9", "tgt_volatile"): _NEVER_WORSE for load in ("read_4k_qd1", "read_4k_qd32", "read_256k")},
}


def goal_of(load: str, figure: str, rival: str) -> Goal | None:
    """None: it is measured, and nothing is asked of it."""
    return GOALS.get((load, figure, rival))
