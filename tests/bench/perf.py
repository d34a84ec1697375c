"""perf(1) beside a load."""

import pathlib
import subprocess

import mariner


def beside(run, delay_s: float, seconds: float, options: list[str], fields: str, data: pathlib.Path) -> tuple:
    """What `run()` gives, and `perf script` of the `seconds` that began `delay_s` after it. `options` of record; `data` is for its own use."""
    command = ["perf", "record", "-q", *options, "-o", str(data), "--", "sleep", str(seconds)]
    with subprocess.Popen(["sh", "-c", 'sleep "$0"; exec "$@"', str(delay_s), *command],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as perf:
        result = run()
        _, said = perf.communicate(timeout=120)
    if perf.returncode != 0:
        raise mariner.Failed(f"perf: {said.strip()}")
    script = subprocess.run(["perf", "script", "--no-inline", "--ns", "-i", str(data), "-F", fields], capture_output=True, text=True,
                            check=True, errors="replace").stdout
    data.unlink()
    return result, script
