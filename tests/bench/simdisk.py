#!/usr/bin/env python3
"""Track-based logging on simulated drives beside the dissertation's figures (4.6.2 to 4.6.4).

    simdisk.py [--short]

Everything is in virtual time, so that the machine and what else runs on it do not matter. What is
fitted and what follows stands in NOTES."""

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time

import curve
from curve import Axis, Mark
from results import OUT, Row, machine, write_json

PAPER = "the dissertation"
FULL, SHORT = 20_000, 2_000  # requests of each point; the dissertation's own number is the full one
WITHIN = 1.15  # of the paper's figure

NOTES = """\
- The drive is a model of the IBM Deskstar DTLA-307030 with its write cache off: controller delay, zones, rotation, switches,
  seeks, settling, media transfer. Fitted were its settling time (so that the dissertation's look-ahead of 22 sectors just covers
  it in the outermost zone, where the log lies here) and how unevenly it turns (so that measuring the position every 50 ms is
  right). The other figures follow; the dissertation prints most of its curves without numbers, so only those that
  its text names are compared.
- What writes is the log itself: each drive is formatted, recovered and written by `logging`, records through `LogWriter::append`, latency up to
  its completion. A batch begins with its header sectors of 512 bytes, one for up to three records: 9 sectors for one record of 4 KiB, 42 for
  five. Utilization counts what is written, headers included. Look-ahead counts behind the controller's delay of 0.104 ms:
  only so do the dissertation's 22 sectors, 0.4 ms and 0.475 ms agree with each other.
- The log goes round: when a quarter of a drive's tracks is left, up to 500 are given up at once. That writes two pages of the allocation list in
  front of the first track, for which the head leaves the log for some 25 to 50 ms when it is 7,000 tracks away. Where each record takes a
  track (4.7, 4.12) this costs up to 0.2 ms on average (at an interval of 4 ms; nothing in runs too short to go round). `headline.round` is the headline
  on a log of 60 tracks a drive, each of which goes round every 1.4 s, though over shorter ways.
- Figures 4.7 and 4.12 write each record to a fresh track, as the first implementation did; 4.12 under requests at random intervals
  of 300 ms on average (at fixed ones the two rhythms would beat). 4.7 measures no position in between.
- Two rules go beyond the dissertation: a disk whose track is fragmented enough gets no more requests until it is on the next
  (there, only an empty queue lets it move on, which steady load never leaves it), and a queue may go out in parts that fit
  into the gaps at hand.
- The headline is the worst of five seeds. 4.10: the highest rate at which the mean latency is at most 2 ms, which is where the dissertation ends its curves.
- No network, no processor time: the dissertation's "stand-alone Trail device"."""


@dataclasses.dataclass
class PaperRow(Row):
    """`goal` bounds the ratio from above where less is better. A short run never holds."""
    less_is_better: bool = True

    def record(self, about: dict) -> dict:
        record = super().record(about)
        ratio = record["ratio"]
        reached = ratio is not None and (
            self.goal is None or (ratio <= self.goal if self.less_is_better else ratio >= self.goal))
        record["holds"] = reached and self.scale == "full"
        return record


class Points:
    def __init__(self, points: list[dict]):
        self.points = points

    def of(self, experiment: str, series: float | None = None) -> list[dict]:
        return [p for p in self.points if p["experiment"] == experiment
                and (series is None or p["series"] == series)]

    def at(self, experiment: str, x: float, series: float = 0) -> dict:
        return next(p for p in self.of(experiment, series) if p["x"] == x)

    def best(self, experiment: str) -> dict:
        return min(self.of(experiment), key=lambda p: p["latency_ms"])

    def curves(self, experiment: str, name: str, x: str = "x", y: str = "latency_ms"):
        numbers = sorted({p["series"] for p in self.of(experiment)})
        return [(name.format(number), [(p[x], p[y]) for p in self.of(experiment, number)])
                for number in numbers]


def fit_line(points: list[tuple[float, float]]) -> tuple[float, float, float]:
    """(value at 0, slope, share of the variance that the line explains)."""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    sxx = sum((x - mean_x) ** 2 for x, _ in points)
    sxy = sum((x - mean_x) * (y - mean_y) for x, y in points)
    syy = sum((y - mean_y) ** 2 for _, y in points)
    return mean_y - sxy / sxx * mean_x, sxy / sxx, sxy * sxy / (sxx * syy)


def rows(points: Points, scale: str, seconds: float) -> list[Row]:
    def row(name, what, unit, ours, rival, goal, rival_name=PAPER, less=True):
        return PaperRow(name, what, unit, ours, rival, rival_name, seconds, scale, goal, less)

    interval = [(p["x"], p["latency_ms"]) for p in points.of("4.7")]
    idle = [p for p in interval if p[0] >= 50]
    sizes = [(p["x"], p["min_ms"]) for p in points.of("4.8")]
    wait = points.best("table4.2")
    fastest = {p["x"]: p["rate"] for p in points.of("4.10.fastest")}
    headline = [p for p in points.of("headline") if p["x"] == 8]
    round_ = points.of("round")
    return [
        row("4.7.minimum", "minimum 4 KiB latency", "ms", min(y for _, y in interval), 0.475, WITHIN),
        row("4.7.linear", "latency against inter-request interval from 50 ms: variance explained by a line",
            "", fit_line(idle)[2], 1.0, 0.9, "a line", False),
        row("4.8.intercept", "latency at size 0", "ms", fit_line(sizes)[0], 0.4, WITHIN),
        row("table4.2.latency", f"least latency of all t_wait (at {wait['x']:g} ms; paper: 0.36 ms), a request every 60 us",
            "ms", wait["latency_ms"], 1.9, WITHIN),
        row("table4.2.at_036", "latency at t_wait = 0.36 ms, a request every 60 us", "ms",
            points.at("table4.2", 0.36)["latency_ms"], 1.9, WITHIN),
        row("table4.2.batch", "payload of a batch at t_wait = 0.36 ms", "KiB",
            points.at("table4.2", 0.36)["batch_bytes"] / 1024, 20, None, less=False),
        row("4.9.latency", "highest latency of t_switch up to 14 and intervals down to 0.08 ms", "ms",
            max(p["latency_ms"] for p in points.of("4.9")), 2.0, 1.0),
        row("4.9.utilization", "utilization won from t_switch = 2 to 12 at 10,000 writes/s", "share",
            points.at("4.9", 0.1, 12)["utilization"], points.at("4.9", 0.1, 2)["utilization"], 1.5,
            "t_switch = 2", False),
        row("4.10.linear", "highest rate of five disks at 2 ms", "writes/s", fastest[5], 5 * fastest[1],
            1 / WITHIN, "five times one disk's", False),
        row("4.11.latency", "latency at t_wait = 0.2 ms, 12,500 writes/s", "ms",
            points.at("4.11", 0.08, 0.2)["latency_ms"], 2.0, 1.0),
        row("4.12.at_50", "latency with a recalibration every 50 ms (to which the drive was fitted)", "ms", points.at("4.12", 50)["latency_ms"],
            points.best("4.12")["latency_ms"], 1.02, "the best interval"),
        row("headline.latency", "five disks, 12,500 writes/s of 4 KiB, t_switch = 8: latency", "ms",
            max(p["latency_ms"] for p in headline), 1.8, 1.0),
        row("headline.utilization", "the same: space utilization", "share", min(p["utilization"] for p in headline),
            0.7, 1.0, less=False),
        row("headline.rate", "five disks, 12,500 writes/s, t_switch = 8: rate", "writes/s", min(p["rate"] for p in headline), 12_500, 0.99, less=False),
        row("headline.round", "the same on a log of 60 tracks a drive, which goes round: latency", "ms",
            max(p["latency_ms"] for p in round_), 1.8, 1.0),
        row("headline.round_utilization", "the same: space utilization", "share", min(p["utilization"] for p in round_),
            0.7, 1.0, less=False),
    ]


def pictures(points: Points) -> dict[str, str]:
    latency, rate = Axis("mean latency (ms)"), Axis("writes/s")
    paper_42 = [(0, 6.7), (0.12, 5.8), (0.24, 3.1), (0.36, 1.9), (0.48, 2.1), (0.60, 2.3), (0.72, 2.4), (1, 3.0)]
    return {
        "4.7": curve.lines("Latency against inter-request interval (Figure 4.7)", Axis("interval (ms)"), latency,
                           points.curves("4.7", "4 KiB, one drive"), [Mark("paper's minimum, 0.475", None, 0.475)]),
        "4.8": curve.lines("Least latency against write size (Figure 4.8)", Axis("payload (KiB)"),
                           Axis("least latency (ms)"), points.curves("4.8", "one drive", y="min_ms"),
                           [Mark("paper's intercept, 0.4", 0, 0.4), Mark("paper's 4 KiB, 0.475", 4, 0.475)]),
        "table4.2": curve.lines("t_wait at a request every 60 us, five drives (Table 4.2)", Axis("t_wait (ms)"), latency,
                                points.curves("table4.2", "ours") + [("paper", paper_42)]),
        "4.9": curve.lines("t_switch: latency against utilization, five drives (Figure 4.9)",
                           Axis("utilization"), latency,
                           points.curves("4.9", "t_switch = {:g}", x="utilization"), [Mark("paper's end, 2 ms", None, 2)]),
        "4.10": curve.lines("Number of disks: latency against rate (Figure 4.10)", rate, latency,
                            points.curves("4.10", "{:g} disks", x="rate")),
        "4.10-fastest": curve.lines("Number of disks: highest rate at 2 ms (Figure 4.10)", Axis("disks"), rate,
                                    points.curves("4.10.fastest", "ours", y="rate")),
        "4.11": curve.lines("t_wait: latency against rate, five drives (Figure 4.11)", rate, latency,
                            points.curves("4.11", "t_wait = {:g} ms", x="rate"), [Mark("paper's end, 2 ms", None, 2)]),
        "4.12": curve.lines("Recalibration interval (Figure 4.12)", Axis("interval (ms)", True), latency,
                            points.curves("4.12", "4 KiB, one drive"), [Mark("paper's best, 50 ms", 50, None)]),
        "headline": curve.lines("12,500 writes/s, five drives, t_switch from 6 to 12", Axis("utilization"), latency,
                                points.curves("headline", "ours, seed {:g}", x="utilization"),
                                [Mark("paper, 1.8 ms at 70 %", 0.7, 1.8)]),
    }


def comparison(records: list[dict]) -> str:
    lines = header("", "ours", "beside", "", "ratio", "bound", "holds")
    for r in records:
        bound = "" if r["goal"] is None else f"{r['goal']:.2f}"
        lines.append(line(r["what"], f"{r['ours']:.4g} {r['unit']}", f"{r['rival']:.4g}", r["rival_name"],
                          f"{r['ratio']:.2f}", bound, "yes" if r["holds"] else "no"))
    return "\n".join(lines)


def details(points: Points) -> str:
    """Each experiment's points, one table each."""
    tables = []
    for name in dict.fromkeys(p["experiment"] for p in points.points):
        lines = header(f"{name}: series", "x", "mean ms", "least ms", "p99 ms", "writes/s", "batch KiB", "utilization")
        for p in points.of(name):
            lines.append(line(f"{p['series']:g}", f"{p['x']:g}", f"{p['latency_ms']:.3f}", f"{p['min_ms']:.3f}",
                              f"{p['p99_ms']:.3f}", f"{p['rate']:,.0f}", f"{p['batch_bytes'] / 1024:.1f}",
                              f"{p['utilization']:.2f}"))
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def header(*cells: str) -> list[str]:
    return [line(*cells), line("---", *["---:"] * (len(cells) - 1))]


def measure(requests: int) -> Points:
    program = pathlib.Path(os.environ["MARINER_BUILD"]) / "tests" / "bench" / "mariner-simdisk"
    done = subprocess.run([program, str(requests)], stdout=subprocess.PIPE, text=True, check=True)
    return Points([json.loads(text) for text in done.stdout.splitlines()])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a tenth of the requests; shows that it works")
    short = parser.parse_args().short
    OUT.mkdir(parents=True, exist_ok=True)
    about = machine(OUT)
    began = time.monotonic()
    points = measure(SHORT if short else FULL)
    table = rows(points, "short" if short else "full", time.monotonic() - began)
    records = [row.record(about) for row in table]
    write_json(OUT / "simdisk.json", records)
    write_json(OUT / "simdisk-runs.json", points.points)
    for name, picture in pictures(points).items():
        (OUT / f"simdisk-{name}.svg").write_text(picture)
    print("\n\n".join([comparison(records), NOTES, details(points),
                       f"Computed in virtual time, {about['date']}, {about['commit']}."]))
    fallen = [r["id"] for r in records if not r["holds"]]
    if fallen and not short:
        print("does not hold: " + ", ".join(fallen), file=sys.stderr)
    return 1 if fallen and not short else 0


if __name__ == "__main__":
    sys.exit(main())
