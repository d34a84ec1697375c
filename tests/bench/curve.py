"""A line chart as SVG: curves over two axes, and marks where somebody else's figures lie."""

import dataclasses
import html
import math

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 440, 70, 44, 170, 56
COLOURS = ["#1f6f8b", "#c8553d", "#e0a458", "#5b7553", "#7d5ba6", "#9aa5b1", "#2b2d42"]
MARK = "#b00020"


@dataclasses.dataclass(frozen=True)
class Axis:
    name: str
    logarithmic: bool = False


@dataclasses.dataclass(frozen=True)
class Mark:
    """A point of the paper's, or a line across if one of the two is None."""
    name: str
    x: float | None
    y: float | None


def ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """Round numbers from `low` to `high`."""
    if logarithmic:
        found = [m * 10.0**e for e in range(-4, 8) for m in (1, 2, 5)]
    else:
        step = 10 ** math.floor(math.log10((high - low) or 1))
        step = next(s for s in (step / 5, step / 2, step, step * 2) if (high - low) / s <= 8)
        first = math.ceil(low / step)
        found = [i * step for i in range(first, math.floor(high / step) + 1)]
    return [t for t in found if low * 0.999 <= t <= high * 1.001]


class _Scale:
    def __init__(self, axis: Axis, values: list[float], at_low: float, at_high: float):
        self.axis = axis
        self.low = min(values) if axis.logarithmic else min(0.0, *values)
        self.high = max(values) * (1.0 if axis.logarithmic else 1.06)
        self.at_low, self.at_high = at_low, at_high

    def __call__(self, value: float) -> float:
        low, high, v = self.low, self.high, value
        if self.axis.logarithmic:
            low, high, v = math.log(low), math.log(high), math.log(v)
        return self.at_low + (self.at_high - self.at_low) * (v - low) / ((high - low) or 1)


def lines(title: str, x: Axis, y: Axis, series: list[tuple[str, list[tuple[float, float]]]],
          marks: list[Mark] = ()) -> str:
    points = [p for _, curve in series for p in curve]
    across = _Scale(x, [p[0] for p in points] + [m.x for m in marks if m.x is not None],
                    LEFT, WIDTH - RIGHT)
    up = _Scale(y, [p[1] for p in points] + [m.y for m in marks if m.y is not None],
                HEIGHT - BOTTOM, TOP)
    body = _grid(x, y, across, up)
    legend = []
    for number, (name, curve) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in curve)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [f'<circle cx="{across(a):.1f}" cy="{up(b):.1f}" r="3" fill="{colour}"/>'
                 for a, b in curve]
        legend.append((name, colour))
    for mark in marks:
        body.append(_mark(mark, across, up))
        legend.append((mark.name, MARK))
    for number, (name, colour) in enumerate(legend):
        at = TOP + 18 * number
        body.append(f'<rect x="{WIDTH - RIGHT + 14}" y="{at}" width="12" height="12" fill="{colour}"/>'
                    f'<text x="{WIDTH - RIGHT + 32}" y="{at + 10}">{html.escape(name)}</text>')
    style = "text{font:12px sans-serif;fill:#222}.title{font-size:15px;font-weight:bold}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">'
            f'<style>{style}</style><rect width="100%" height="100%" fill="white"/>'
            f'<text x="10" y="24" class="title">{html.escape(title)}</text>{"".join(body)}</svg>\n')


def _grid(x: Axis, y: Axis, across: _Scale, up: _Scale) -> list[str]:
    body = []
    left, right, bottom = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM
    for t in ticks(across.low, across.high, x.logarithmic):
        at = across(t)
        body.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{bottom}" stroke="#eee"/>'
                    f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{t:g}</text>')
    for t in ticks(up.low, up.high, y.logarithmic):
        at = up(t)
        body.append(f'<line x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" stroke="#eee"/>'
                    f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{t:g}</text>')
    body.append(f'<path d="M{left},{TOP}V{bottom}H{right}" fill="none" stroke="#222"/>'
                f'<text x="{(left + right) / 2}" y="{HEIGHT - 14}" text-anchor="middle">'
                f'{html.escape(x.name)}</text>'
                f'<text transform="translate(18,{(TOP + bottom) / 2}) rotate(-90)" '
                f'text-anchor="middle">{html.escape(y.name)}</text>')
    return body


def _mark(mark: Mark, across: _Scale, up: _Scale) -> str:
    dashes = f'stroke="{MARK}" stroke-dasharray="5,4"'
    if mark.x is None:
        at = up(mark.y)
        return f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" {dashes}/>'
    if mark.y is None:
        at = across(mark.x)
        return f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" {dashes}/>'
    at, high = across(mark.x), up(mark.y)
    return (f'<path d="M{at - 5:.1f},{high - 5:.1f}l10,10m0,-10l-10,10" stroke="{MARK}" '
            'stroke-width="2"/>')
