"""Rows, the machine that they were measured on, and the files that keep them."""

import dataclasses
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
OUT = HERE.parents[2] / "build" / "bench"


@dataclasses.dataclass
class Row:
    """One comparison. `ratio` is ours to the rival's, unless it was taken otherwise (`paired`: the median of
    ratios within rounds); a row without both figures does not hold.

    The goal is the least ratio, or the greatest where less is better. A row that was measured for less
    than `needs_s`, or that `lacks` something else (in words) of what its goal needs, does not hold."""
    id: str
    what: str
    unit: str
    ours: float | None
    rival: float | None
    rival_name: str
    measured_s: float
    scale: str
    goal: float | None = None
    less_is_better: bool = False
    needs_s: float = 0
    lacks: str = ""
    paired: float | None = None

    def record(self, machine: dict) -> dict:
        measured = self.ours is not None and bool(self.rival)
        ratio = (self.paired or self.ours / self.rival) if measured else None
        lacks = [self.lacks] if self.lacks else []
        if self.measured_s < self.needs_s:
            lacks.append(f"measured for {self.measured_s:.3g} s, the goal needs {self.needs_s:g} s")
        reached = measured and (self.goal is None or
                                (ratio <= self.goal if self.less_is_better else ratio >= self.goal))
        holds = reached and not lacks
        return {"id": self.id, "what": self.what, "unit": self.unit, "ours": _round(self.ours),
                "rival": _round(self.rival), "rival_name": self.rival_name, "ratio": _round(ratio),
                "goal": self.goal, "less_is_better": self.less_is_better, "holds": holds,
                "lacks": "; ".join(lacks), "measured_s": _round(self.measured_s),
                "scale": self.scale, "machine": machine}


def get(run: dict, *path) -> float | None:
    """What stands at `path` of a run's figures; None: it is not there."""
    for key in path:
        if not isinstance(run, dict) or key not in run:
            return None
        run = run[key]
    return run


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _first(path: str, key: str) -> str:
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(key):
            return line.split(":", 1)[1].strip()
    return "unknown"


def machine(folder: pathlib.Path) -> dict:
    """The machine, and the file system of `folder`."""
    mounts = [line.split()[:3] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    inside = [(len(where), kind) for _, where, kind in mounts if str(folder).startswith(where)]
    load = os.getloadavg()[0]
    commit = subprocess.run(["git", "-C", str(HERE.parent), "describe", "--always", "--dirty"],
                            capture_output=True, text=True)
    return {"cpu": _first("/proc/cpuinfo", "model name"), "cores": os.cpu_count(),
            "memory": _first("/proc/meminfo", "MemTotal"), "kernel": platform.release(),
            "file_system": max(inside)[1], "load_before": load,
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "commit": commit.stdout.strip() or "unknown"}


def describe(about: dict) -> str:
    text = (f"{about['cores']} cores of {about['cpu']}, {about['memory']} of memory, "
            f"{about['file_system']}, Linux {about['kernel']}, {about['date']}, {about['commit']}.")
    if about["load_before"] > 0.5:
        text += (f" **The machine was not idle (load {about['load_before']:.1f}): "
                 "these figures are worth little.**")
    return text


def write_json(path: pathlib.Path, value):
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(value, indent=1) + "\n")
    fresh.replace(path)


# -- for people to read ---------------------------------------------------------------------------

def say(text: str):
    print(text, file=sys.stderr, flush=True)


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def header(*cells: str) -> list[str]:
    return [line(*cells), line("---", *["---:"] * (len(cells) - 1))]


def goals(records: list[dict]) -> str:
    """A table of records, each with its goal and whether it holds."""
    lines = header("", "ours", "beside", "", "ratio", "goal", "holds")
    for r in records:
        goal = "" if r["goal"] is None else f"{'≤' if r['less_is_better'] else '≥'} {r['goal']:g}"
        holds = "" if r["goal"] is None else "yes" if r["holds"] else "**no**"
        lines.append(line(r["what"], f"{r['ours']} {r['unit']}", str(r["rival"]), r["rival_name"], str(r["ratio"]), goal, holds))
    return "\n".join(lines)
