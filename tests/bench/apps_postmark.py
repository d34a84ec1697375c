"""Postmark (mariner-postmark): a mail server's small files, on a file system that is mounted with `sync` or flushed file by file."""

import dataclasses
import json
import pathlib

import mariner
from uvfs_lab import run

PROGRAM = mariner.BUILD / "tests" / "bench" / "mariner-postmark"


@dataclasses.dataclass(frozen=True)
class Postmark:
    """`read_bias`: of ten transactions so many read, the others append."""
    id: str
    what: str
    files: int
    folders: int
    transactions: int
    read_bias: int = 5
    fsync: bool = False

    # name: (what, unit, less is better)
    FIGURES = {"transactions": ("transactions", "/s", False), "read": ("read", "kB/s", False),
               "written": ("written", "kB/s", False), "write_latency": ("a create or an append, mean", "ms", True)}

    @property
    def options(self) -> str:
        return "defaults" if self.fsync else "sync"

    def figures(self) -> dict[str, tuple[str, str, bool]]:
        return {name: figure for name, figure in self.FIGURES.items() if name != "read" or self.read_bias > 0}

    def run(self, root: pathlib.Path) -> dict:
        told = run(PROGRAM, root, "--files", self.files, "--folders", self.folders, "--transactions", self.transactions,
                   "--read-bias", self.read_bias, *(["--fsync"] if self.fsync else []))
        return figures_of(json.loads(told))


def figures_of(told: dict) -> dict:
    """Our figures, of the program's."""
    writes = [told["actions"][name] for name in ("create", "append")]
    count = sum(each["count"] for each in writes)
    return {"transactions": told["transactions_per_s"], "read": told["read_bytes_per_s"] / 1e3,
            "written": told["written_bytes_per_s"] / 1e3,
            "write_latency": sum(each["count"] * each["mean_us"] for each in writes) / count / 1e3,
            "seconds": told["make_s"] + told["transactions_s"] + told["remove_s"], "told": told}
