"""What a load could be expected to reach here, from the ceilings of the same run: one command at a time takes what a target takes that
keeps nothing, and then the device. So it is of servers that sleep while they wait, as tgt does; one that looks for what comes instead,
as Mariner does by itself, saves some of both. It is no bound.

Of many commands at a time nothing like it is known: what is batched passes both tgt's null store and the device's rate for single
writes. Nor of long writes, though they go to the log and to the image: a device takes more than it does for fio's durable writers."""

import dataclasses
from typing import Callable

from target_goals import GOALS


@dataclasses.dataclass(frozen=True)
class Limit:
    what: str
    # Of the rate of a target that keeps nothing, and of the bare device's.
    rate: Callable[[float, float], float]


LIMITS: dict[str, Limit] = {
    "write_4k_qd1": Limit("the null store's time and the device's, one after the other, for servers that sleep while they wait",
                          lambda null, device: 1 / (1 / null + 1 / device)),
}


@dataclasses.dataclass(frozen=True)
class Beside:
    rival: str
    asked: float
    possible: float  # what is expected, as a multiple of the rival's rate

    @property
    def is_expected(self) -> bool:
        return self.possible >= self.asked


def limit_of(load: str, null: float | None, device: float | None) -> float | None:
    """None: nothing is known of it."""
    limit = LIMITS.get(load)
    return limit.rate(null, device) if limit and null and device else None


def beside(load: str, limit: float, rate_of: Callable[[str], float | None]) -> list[Beside]:
    """For each rival that a rate is asked beside, and that was measured."""
    asked = [(rival, goal.ratio) for (of, figure, rival), goal in GOALS.items() if of == load and figure == "rate"]
    return [Beside(rival, ratio, limit / rate) for rival, ratio in asked if (rate := rate_of(rival))]
