"""The log with both version indexes behind it, beside the log alone: what history costs a writer.

Rounds of the same load on both, one after the other, so that both meet the disk as it is at that
time; what counts is the median of the ratios within rounds."""

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess

from results import Row, say

PATIENCE_S = 900


@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    rounds: int
    memory: str
    versions: int      # that the indexes have before, evenly over 1 TiB
    warmup_s: float    # three commit cycles at the log's speed
    seconds: float
    log_bytes: str


FULL = Scale("full", 4, "512M", 11_500_000, 110, 40, "6G")
SHORT = Scale("short", 1, "64M", 200_000, 0.5, 2, "1G")


def _load(scale: Scale, folder: pathlib.Path, indexed: bool) -> dict:
    program = pathlib.Path(os.environ["MARINER_BUILD"]) / "tests" / "bench" / "mariner-log-load"
    command = [program, "--mode", "ours", "--folder", folder, "--depth", 32, "--bytes", 4096, "--log-bytes", scale.log_bytes,
               "--seconds", scale.seconds]
    command += ["--warmup", scale.warmup_s, "--index-memory", scale.memory, "--index-versions", scale.versions] if indexed \
        else ["--warmup", min(5.0, scale.warmup_s)]
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return {"failure": "it hangs"}
    try:
        return json.loads(done.stdout.splitlines()[0])
    except (IndexError, json.JSONDecodeError):
        return {"failure": done.stderr.strip() or "it ended without a word"}


def measure(scale: Scale, folder: pathlib.Path) -> tuple[dict, list[Row]]:
    """The runs, and their rows."""
    runs, plain, indexed = {}, [], []
    for number in range(scale.rounds):
        for name, to, with_index in (("plain", plain, False), ("indexed", indexed, True)):
            say(f"log {name}, round {number + 1} of {scale.rounds}")
            got = _load(scale, folder, with_index)
            runs[f"log_{name}_{number}"] = got
            if got.get("failure"):
                say(f"  {got['failure']}")
            else:
                to.append(got)
    rows = []
    whole = len(plain) == len(indexed) == scale.rounds

    def row(key, what, unit, pick, goal, less):
        ours = statistics.median(map(pick, indexed)) if whole else None
        alone = statistics.median(map(pick, plain)) if whole else None
        paired = statistics.median(pick(i) / pick(p) for i, p in zip(indexed, plain)) if whole else None
        rows.append(Row(f"end_to_end.{key}", f"log with both indexes, 32 outstanding, 4 KiB, {scale.memory}: {what}", unit, ours, alone,
                        "the log alone", scale.seconds * scale.rounds, scale.name, goal, less_is_better=less, paired=paired,
                        lacks="" if scale is FULL else "the goal needs the full size"))

    row("rate", "writes", "/s", lambda run: run["rate"], 0.95, False)
    row("p99", "99th percentile (less is better)", "us", lambda run: run["latency_us"]["p99"], None, True)
    row("cpu", "CPU for a write (less is better)", "us", lambda run: run["cpu_us"]["all"], None, True)
    return runs, rows
