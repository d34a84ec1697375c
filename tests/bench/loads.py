"""The loads, and the two programs that make them: ours over iSCSI, fio on the bare file system."""

import dataclasses
import json
import pathlib
import subprocess

import device
import mariner

LOAD = mariner.BUILD / "tests" / "bench" / "mariner-iscsi-load"
# What a program may take beyond its own time before it counts as hanging.
PATIENCE_S = 60


@dataclasses.dataclass(frozen=True)
class Load:
    id: str
    what: str
    write: bool
    random: bool
    block: int
    depth: int
    burst: bool = False
    compressible: int | None = None  # percent of what is written; None: the same bytes again and again

    @property
    def unit(self) -> str:
        return "MB/s" if self.block >= 1 << 16 else "IO/s"

    def rate(self, run: dict) -> float:
        return run["bytes_per_s"] / 1e6 if self.unit == "MB/s" else run["rate"]


@dataclasses.dataclass(frozen=True)
class Target:
    """Where a load goes. `pid`: whose CPU time is measured, 0: nobody's; `prefix` runs the initiator in a network namespace."""
    url: str
    pid: int
    fua: bool = False
    prefix: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Limits:
    warmup_s: float
    seconds: float
    region_bytes: int
    bytes_max: int = 0
    region_from: int = 0


def run_iscsi(load: Load, target: Target, limits: Limits, more: tuple[str, ...] = ()) -> dict:
    """What mariner-iscsi-load measured, with `more` options; with `failure` if it could not."""
    command = [*target.prefix, str(LOAD), target.url, "--block", str(load.block), "--depth", str(load.depth),
               "--warmup", str(limits.warmup_s), "--seconds", str(limits.seconds),
               "--bytes-max", str(limits.bytes_max), "--region-bytes", str(limits.region_bytes),
               "--region-from", str(limits.region_from), "--server-pid", str(target.pid)]
    if load.compressible is not None:
        command += ["--compressible", str(load.compressible)]
    command += more
    command += [flag for flag, on in (("--write", load.write), ("--random", load.random),
                                      ("--fua", target.fua)) if on]
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=limits.warmup_s + limits.seconds + PATIENCE_S)
    except subprocess.TimeoutExpired:
        return {"failure": "it hangs"}
    if not done.stdout:
        return {"failure": done.stderr.strip()}
    run = json.loads(done.stdout)
    if not run["failure"] and run["operations"] == 0:
        run["failure"] = "nothing was completed while it measured"
    return run


def middle(runs: list[dict]) -> dict:
    """Of several runs of the same the one with the median rate (of two in the middle the slower one); the first that failed, if one did."""
    failed = next((run for run in runs if run["failure"]), None)
    return failed or sorted(runs, key=lambda run: run["rate"])[(len(runs) - 1) // 2]


def run_fio(load: Load, file: pathlib.Path, limits: Limits) -> dict:
    """The device's own figures for a load: O_DIRECT, and O_DSYNC for writes.

    One synchronous job for each command outstanding; sequential jobs have a part of the file each."""
    kind = ("rand" if load.random else "") + ("write" if load.write else "read")
    job = device.Job(kind, load.block, jobs=load.depth, sync="dsync" if load.write else "")
    return device.run(job, file, limits.region_bytes, min(1.0, limits.warmup_s), limits.seconds)
