"""What a soak's figures say: how fair the shares were, and whether something grew.

Points are (seconds, value), in the order of time."""

import dataclasses

Point = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Shares:
    """The operations of the session with the most and of the one with the fewest."""
    most: float
    least: float

    @property
    def ratio(self) -> float:
        return self.most / self.least if self.least else float("inf")


def shares(operations: list[float]) -> Shares:
    return Shares(max(operations), min(operations))


def worst(windows: list[list[float]]) -> Shares:
    """Of the window whose shares differ most."""
    return max((shares(window) for window in windows), key=lambda each: each.ratio)


@dataclasses.dataclass(frozen=True)
class Line:
    """A straight line, from the first point's time to the last one's."""
    begin: float
    end: float
    seconds: float

    def after(self, seconds: float) -> float:
        """Its value so long after its beginning."""
        return self.begin + (self.end - self.begin) * seconds / self.seconds


def fit(points: list[Point]) -> Line:
    """The least squares' line through at least two points of different times."""
    count = len(points)
    t_mean = sum(t for t, _ in points) / count
    v_mean = sum(v for _, v in points) / count
    spread = sum((t - t_mean) ** 2 for t, _ in points)
    slope = sum((t - t_mean) * (v - v_mean) for t, v in points) / spread
    first, last = points[0][0], points[-1][0]
    return Line(v_mean + slope * (first - t_mean), v_mean + slope * (last - t_mean), last - first)


def between(points: list[Point], begin: float, end: float) -> list[Point]:
    """Those with begin <= time < end."""
    return [(t, v) for t, v in points if begin <= t < end]


def highest(points: list[Point]) -> float:
    return max(v for _, v in points)


def means(points: list[Point], seconds: float) -> list[Point]:
    """One point for each `seconds` that have any: their middle, and the mean."""
    pieces: dict[int, list[float]] = {}
    for t, v in points:
        pieces.setdefault(int(t // seconds), []).append(v)
    return [((number + 0.5) * seconds, sum(values) / len(values)) for number, values in sorted(pieces.items())]
