"""What a load can reach here at most, from the ceilings of the same run: a write that is durable before it is answered, one at a time, takes
what the device takes for it (fio's O_DIRECT and O_DSYNC, one at a time), and the shortest way from the initiator to a server and back that
was measured: of any server, however it waits. Who was faster would have to make writes durable sooner than the bare device does.

Of many commands at a time nothing like it is known: what is batched passes both tgt's null store and the device's rate for single
writes. Nor of long writes, though they go to the log and to the image: a device takes more than it does for fio's durable writers."""

import dataclasses
from typing import Callable

from target_goals import GOALS


@dataclasses.dataclass(frozen=True)
class Limit:
    what: str
    # Of the greatest rate of answers, one at a time, and of the bare device's.
    rate: Callable[[float, float], float]


LIMITS: dict[str, Limit] = {
    "write_4k_qd1": Limit("the shortest answer, and the device's time for a durable write, one after the other",
                          lambda answers, device: 1 / (1 / answers + 1 / device)),
}


@dataclasses.dataclass(frozen=True)
class Beside:
    rival: str
    asked: float
    possible: float  # what is possible, as a multiple of the rival's rate

    @property
    def is_possible(self) -> bool:
        return self.possible >= self.asked


def limit_of(load: str, answers: float | None, device: float | None) -> float | None:
    """None: nothing is known of it."""
    limit = LIMITS.get(load)
    return limit.rate(answers, device) if limit and answers and device else None


def beside(load: str, limit: float, rate_of: Callable[[str], float | None]) -> list[Beside]:
    """For each rival that a rate is asked beside, and that was measured."""
    asked = [(rival, goal.ratio) for (of, figure, rival), goal in GOALS.items() if of == load and figure == "rate"]
    return [Beside(rival, ratio, limit / rate) for rival, ratio in asked if (rate := rate_of(rival))]
