"""What no server could beat that has this initiator, this device and these processors: the ceilings of the same run, put together.

A goal that lies above its limit cannot be reached on this machine; one that lies below is the server's own to reach. What the
server's own software costs counts for nothing here, nor what the kernel takes of the processors for writing in the background."""

import dataclasses
from typing import Callable

from target_goals import GOALS


@dataclasses.dataclass(frozen=True)
class Limit:
    what: str
    # Of the rate of a target that keeps nothing, and of the bare device's, where the load has one.
    rate: Callable[[float, float | None], float | None]


def _one_after_the_other(null: float, device: float | None) -> float | None:
    return 1 / (1 / null + 1 / device) if device else None


def _the_slower(null: float, device: float | None) -> float | None:
    return min(null, device) if device else None


def _written_twice(null: float, device: float | None) -> float | None:
    return min(null, device / 2) if device else None


LIMITS: dict[str, Limit] = {
    "write_4k_qd1": Limit("the bare target's time and the device's, one after the other", _one_after_the_other),
    "write_4k_qd32": Limit("the bare target's rate, or the device's", _the_slower),
    "write_4k_qd128": Limit("the bare target's rate, or the device's", _the_slower),
    "burst_256k": Limit("the bare target's rate", lambda null, device: null),
    "write_256k": Limit("the bare target's rate, or half of the device's: the log and the image are written", _written_twice),
}


@dataclasses.dataclass(frozen=True)
class Beside:
    rival: str
    asked: float
    possible: float  # the limit as a multiple of the rival's rate

    @property
    def within_reach(self) -> bool:
        return self.possible >= self.asked


def limit_of(load: str, null: float | None, device: float | None) -> float | None:
    """None: nothing is known of it."""
    limit = LIMITS.get(load)
    return limit.rate(null, device) if limit and null else None


def beside(load: str, limit: float, rate_of: Callable[[str], float | None]) -> list[Beside]:
    """For each rival that a rate is asked beside, and that was measured."""
    asked = [(rival, goal.ratio) for (of, figure, rival), goal in GOALS.items() if of == load and figure == "rate"]
    return [Beside(rival, ratio, limit / rate) for rival, ratio in asked if (rate := rate_of(rival))]
