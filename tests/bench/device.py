"""The device's own figures: fio on a file of the same file system, O_DIRECT."""

import dataclasses
import json
import pathlib
import subprocess

# What fio may take beyond its own time before it counts as hanging.
PATIENCE_S = 60
PERCENTILES = {"p50": "50.000000", "p90": "90.000000", "p99": "99.000000", "p99.9": "99.900000"}


@dataclasses.dataclass(frozen=True)
class Job:
    """`kind` is fio's: write, randread, ... `sync`: "" (volatile), "dsync" (O_DSYNC) or "fdatasync" (after each).

    Sequential jobs have a part of the file each."""
    kind: str
    block: int
    jobs: int = 1
    depth: int = 1  # of each job
    engine: str = "psync"
    sync: str = ""

    def __str__(self) -> str:
        how = {"": "O_DIRECT", "dsync": "O_DIRECT and O_DSYNC", "fdatasync": "O_DIRECT, then fdatasync"}
        parts = [how[self.sync], self.engine]
        if self.jobs > 1:
            parts.append(f"{self.jobs} writers")
        if self.depth > 1:
            parts.append(f"depth {self.depth}")
        return ", ".join(parts)


def run(job: Job, file: pathlib.Path, size: int, warmup_s: float, seconds: float) -> dict:
    """Rate and latency over the first `size` bytes of a file that was written once; or `failure`.

    Percentiles are missing with fdatasync: fio keeps those of the write and of the flush apart. The mean
    latency is that of the whole cycle."""
    part = size // job.jobs // job.block * job.block
    command = ["fio", "--name=device", f"--filename={file}", f"--rw={job.kind}", f"--bs={job.block}",
               f"--ioengine={job.engine}", "--direct=1", f"--numjobs={job.jobs}", f"--iodepth={job.depth}",
               "--thread", "--group_reporting", "--time_based", f"--runtime={round(seconds * 1000)}ms",
               f"--ramp_time={round(warmup_s * 1000)}ms", "--randrepeat=0", "--output-format=json"]
    command += {"": [], "dsync": ["--sync=dsync"], "fdatasync": ["--fdatasync=1"]}[job.sync]
    if job.kind.startswith("rand"):
        command.append(f"--size={size}")
    else:
        command += [f"--size={part}", f"--offset_increment={part}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=warmup_s + seconds + PATIENCE_S)
    except subprocess.TimeoutExpired:
        return {"failure": "fio hangs"}
    if done.returncode != 0:
        return {"failure": done.stderr.strip()}
    side = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    side = side["read" if job.kind.endswith("read") else "write"]
    if not side["total_ios"]:
        return {"failure": "fio completed nothing while it measured"}
    latency = {"mean": job.jobs * job.depth * 1e6 / side["iops"]}
    if job.sync != "fdatasync":
        clat = side["clat_ns"]
        latency |= {name: clat["percentile"][key] / 1000 for name, key in PERCENTILES.items()}
        latency["max"] = clat["max"] / 1000
    return {"operations": side["total_ios"], "seconds": side["runtime"] / 1000, "rate": side["iops"],
            "bytes_per_s": side["bw_bytes"], "failure": "", "how": str(job), "latency_us": latency}
