"""RocksDB as a store that remembers every write, each of them durable: a library in the program that writes, without a network."""

import json
import os
import pathlib
import shutil
import subprocess

import servers  # first: it shows Python where the end-to-end drivers are
import loads
from servers import mariner

LOAD = mariner.BUILD / "tests" / "bench" / "mariner-versioned-store-load"
LIBRARY = os.environ.get("MARINER_RIVAL_ROCKSDB", "")  # the folder of the one without assertions; empty: Debian's


def lacks() -> str | None:
    """What is missing for it; None: nothing."""
    return None if LOAD.exists() else "it was not built: librocksdb-dev is missing"


def run(folder: pathlib.Path, writers: int, limits: loads.Limits) -> dict:
    """The better of values in blob files and in the sorted files, as `run_iscsi` tells it, with its `mode`."""
    runs = []
    for blobs, mode in (("true", "values in blob files"), ("false", "values in the sorted files")):
        run_ = _run(folder / f"rocksdb-{blobs}", writers, limits, blobs)
        run_["mode"] = mode + ("" if LIBRARY else ", Debian's library, with assertions")
        runs.append(run_)
    return max(runs, key=lambda each: each.get("rate", 0))


def _run(folder: pathlib.Path, writers: int, limits: loads.Limits, blobs: str) -> dict:
    command = [LOAD, folder, "--writers", writers, "--region-bytes", limits.region_bytes, "--warmup", limits.warmup_s,
               "--seconds", limits.seconds, "--blobs", blobs]
    environment = {**os.environ, **({"LD_LIBRARY_PATH": LIBRARY} if LIBRARY else {})}
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment, check=False,
                              timeout=limits.warmup_s + limits.seconds + loads.PATIENCE_S)
    except subprocess.TimeoutExpired:
        return {"failure": "it hangs"}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return json.loads(done.stdout) if done.stdout else {"failure": done.stderr.strip()}
