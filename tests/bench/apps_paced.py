"""Writes of 4 KiB at set intervals, straight to a LUN (mariner-paced-load): the papers' Figures 4.13 and 4.14."""

import dataclasses
import json

import mariner
from uvfs_lab import run

PROGRAM = mariner.BUILD / "tests" / "bench" / "mariner-paced-load"
BURST, PAUSE_MS = 1000, 1000  # of Figure 4.14


@dataclasses.dataclass(frozen=True)
class Paced:
    """One interval; in bursts, or without an end."""
    id: str
    what: str
    interval_us: int
    count: int
    bursts: bool = False

    def figures(self) -> dict[str, tuple[str, str, bool]]:
        return {"mean": ("latency, mean", "us", True), "p99": ("latency, 99th percentile", "us", True)}

    def run(self, url: str, fua: bool) -> dict:
        told = json.loads(run(PROGRAM, url, "--interval-us", self.interval_us, "--count", self.count,
                              *(["--burst", BURST, "--pause-ms", PAUSE_MS] if self.bursts else []), *(["--fua"] if fua else [])))
        return {"mean": told["latency_us"]["mean"], "p99": told["latency_us"]["p99"], "seconds": told["seconds"], "told": told}
