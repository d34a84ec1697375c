"""The soak's picture: memory over time, and below it the rates of the steady sessions."""

import curve
import soak_judge as judge

MIB = 1 << 20
POINTS = 60  # of a curve, about


def picture(soak) -> str:
    """As SVG. `soak` has samples, the time when its measuring began, and the load's windows."""
    charts = [_memory(soak), _rates(soak)]
    drawn = [chart for chart in charts if chart]
    inner = "".join(chart.replace("<svg ", f'<svg y="{number * curve.HEIGHT}" ', 1) for number, chart in enumerate(drawn))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{curve.WIDTH}" height="{max(1, len(drawn)) * curve.HEIGHT}">'
            f"{inner}</svg>\n")


def _memory(soak) -> str:
    if len(soak.samples) < 2 or "measuring" not in soak.times:
        return ""
    begin, first = soak.times["measuring"], soak.samples[0]["t"]
    piece = (soak.samples[-1]["t"] - first) / POINTS
    series = []
    for name, what in (("rss", "resident"), ("anonymous", "anonymous"), ("payload", "payload")):
        points = judge.means([(sample["t"] - first, sample[name] / MIB) for sample in soak.samples], piece)
        series.append((what, [(t + first - begin, v) for t, v in points]))
    return curve.lines("Memory of marinerd: before, under and after the load", curve.Axis("seconds from the beginning of the measured time"),
                       curve.Axis("MiB"), series)


def _rates(soak) -> str:
    windows, seconds = soak.ours.get("windows"), soak.ours.get("window_s")
    if not windows:
        return ""
    series = [(what, [((number + 0.5) * seconds, of(window) / seconds) for number, window in enumerate(windows)])
              for what, of in (("the fastest", max), ("the mean", lambda window: sum(window) / len(window)), ("the slowest", min))]
    return curve.lines("Steady sessions of marinerd", curve.Axis("seconds from the beginning of the measured time"),
                       curve.Axis("IO/s of a session"), series)
