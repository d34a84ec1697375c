"""Every load on every server, in turn, several times; each time on a new file system."""

import pathlib
import statistics
import time

from apps_disk import Disk
from apps_paced import Paced
from apps_servers import DURABLE, FLUSHED, LOCAL, MEMORY, NAMES, OURS, SYNC, Rack
from results import say

TURN = (OURS, SYNC, FLUSHED, MEMORY, LOCAL)
PACED_TURN = (OURS, SYNC, FLUSHED, MEMORY)
APPLY_PATIENCE_S = 120
RUN_PATIENCE_S = 3600


def turn_of(load, round_: int) -> list[str]:
    """Who comes first changes from round to round."""
    names = PACED_TURN if isinstance(load, Paced) else TURN
    at = round_ % len(names)
    return [*names[at:], *names[:at]]


class Turns:
    """`runs`: by load and server, one for each round; each its figures, or `failure`."""

    def __init__(self, rack: Rack, loads: list, folder: pathlib.Path):
        self.runs: dict[str, dict[str, list[dict]]] = {load.id: {} for load in loads}
        self.flushes: list[dict] = []  # commands that Mariner answered during the load `fsync`, and how many of these there were
        self._rack, self._loads, self._folder = rack, loads, folder

    def measure(self, rounds: int):
        for round_ in range(rounds):
            for load in self._loads:
                for name in turn_of(load, round_):
                    self._run(load, name, round_)

    def _run(self, load, name: str, round_: int):
        begun = time.monotonic()
        try:
            run = self._paced(load, name) if isinstance(load, Paced) else self._on_disk(load, name)
            run["failure"] = ""
            first = next(iter(load.figures()))
            text = f"{run[first]:,.2f} {load.figures()[first][1]}"
        except Exception as error:  # whatever it was: this run's rows do not hold, and say why
            run = {"failure": f"{type(error).__name__}: {error}"}
            text = run["failure"]
        run["wall_s"] = time.monotonic() - begun
        self.runs[load.id].setdefault(name, []).append(run)
        say(f"{round_ + 1}: {load.what:<58} {NAMES[name]:<26} {text}  ({run['wall_s']:.1f} s)")
        if name == OURS:
            self._rack.mariner.wait_applied(APPLY_PATIENCE_S)  # what is left to apply must not disturb the others

    def _on_disk(self, load, name: str) -> dict:
        with (Disk(self._rack.servers[name].node, self._folder / "disk") as disk,
              disk.watched(lambda: self._rack.lives(name), RUN_PATIENCE_S), disk.file_system(load.options) as root):
            if load.id != "fsync" or name != OURS:
                return load.run(root)
            before = {operation: self._rack.commands(operation) for operation in ("write", "flush")}
            run = load.run(root)
            self.flushes.append({"fsync": load.count} | {name: self._rack.commands(name) - count for name, count in before.items()})
            return run

    def _paced(self, load: Paced, name: str) -> dict:
        return load.run(self._rack.servers[name].url, fua=name == FLUSHED)


class Figures:
    """What the runs amount to: medians, and tgt's better way."""

    def __init__(self, loads: list, runs: dict[str, dict[str, list[dict]]]):
        self._loads = {load.id: load for load in loads}
        self._runs = runs

    def less_is_better(self, load_id: str, name: str) -> bool:
        return self._loads[load_id].figures()[name][2]

    def better_tgt(self, load_id: str) -> str | None:
        """By the load's first figure; None: neither was measured."""
        name = next(iter(self._loads[load_id].figures()))
        values = {server: self._median(load_id, server, name) for server in (SYNC, FLUSHED)}
        known = {server: value for server, value in values.items() if value is not None}
        choose = min if self.less_is_better(load_id, name) else max
        return choose(known, key=known.get) if known else None

    def value(self, load_id: str, server: str, name: str) -> float | None:
        """The median; None: one of the runs failed, or there is none."""
        if load_id not in self._loads:
            return None
        real = self.better_tgt(load_id) if server == DURABLE else server
        return self._median(load_id, real, name) if real else None

    def failures(self, load_id: str, server: str) -> str:
        real = (self.better_tgt(load_id) or SYNC) if server == DURABLE else server
        return "; ".join(run["failure"] for run in self._runs[load_id].get(real, []) if run["failure"])

    def seconds(self, load_id: str, server: str) -> float:
        """Measured in all rounds."""
        return sum(run.get("seconds", 0) for run in self._runs[load_id].get(server, []))

    def _median(self, load_id: str, server: str, name: str) -> float | None:
        runs = self._runs[load_id].get(server, [])
        if not runs or any(run["failure"] for run in runs):
            return None
        return statistics.median(run[name] for run in runs)
