"""Ways to clean the log, in a model: which of them holds a window that takes most of the log, and at which write amplification."""

import dataclasses
import json
import pathlib
import subprocess
import time

import curve
import loads
from history import Measured, Scale
from results import Row, header, line, say

GOAL_WINDOW = 0.85
AMPLIFICATION_MAX = 1.3
MODEL = loads.LOAD.parent / "mariner-cleaner-model"
RINGS = "rings, counted"

NOTES = """\
- A model, exact in versions and slots, without headers and disks: {tracks} tracks of {track_blocks} blocks, of which a 32nd is kept free; a volume of a fifth of the log, overwritten block by block at random; an image that is a 40th of the log behind.
  Time is counted in host writes, a window as a share of the log: each host write replaces one version, which is needed for a window from then on, so history takes just that share of the log. Measured over twice the log, after three times it at the least and until
  two turns differ by less than 1 %.
- *Amplification*: blocks appended for a host write (the write, before-images, what is moved). *A dash*: the window was not held; how far moments could be opened instead,
  at the least and on average, as a share of the log, stands behind it, with what that cost. *A tilde*: two turns of the log still differed after eight.
- *Fifo* is what Mariner does (at most half of a track is moved); *greedy* frees the track with the fewest needed blocks and drops current versions to the image, *greedy, keeps current* moves them; *cost-benefit* is that of Sprite LFS; *generations* have a young stream of {young:.0%} of the log,
  the oldest track of which is dropped or moved to an old one; *streams* are hot and cold writes and history in four streams by when it expires, victims by benefit over cost; *rings* are four streams (hot, cold, history, late survivors), the oldest track of each first. All but fifo move at most 7/8 of a track.
- A write is *hot* if its block is expected to be written again within the room that the log has beside history and free tracks (*span* is a multiple of that): because it was written within it before (*last*, by its exact time; *Bloom*, by two filters), because of how often it was (*rate*: exact counts that fade
  over four spans; *counted*: half a byte for each block, halved by a hand that goes round), or because the *future* is known. *Guarded*: the span
  shrinks by a hundredth for each hot track of which more than {guard:.0%} survives, and grows back as slowly.
- The bounds, R being the room beside history, each class of blocks being written at a rate w_i (sum 1) with exponential lives of mean T_i. *Oracle*: what lives longer than l is dropped once the image has it, 1 + sum w_i exp(-l/T_i), with sum w_i (T_i (1 - exp(-l/T_i)) - (l - lag) exp(-l/T_i)) = R; no slot is dead. *Rates known*: the log holds
  what is current of the most written blocks; for one class of V blocks 1 + (1 - R/V). *Rates known, in tracks*: a class is dropped at the lag, or its tracks stay for window + x, after which exp(-x/T_i) of them were not replaced in time and cost a block; they take
  x + T_i exp(-x/T_i) (1 - exp(-window/T_i)) of room for each write; least sum of costs within R."""


@dataclasses.dataclass(frozen=True)
class Sizes:
    tracks: int
    track_blocks: int
    windows: tuple[float, ...]


FULL = Sizes(512, 128, (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9))
SHORT = Sizes(512, 16, (0.7, 0.85))
YOUNG = 0.05
GUARD = 0.35


@dataclasses.dataclass(frozen=True)
class Pattern:
    id: str
    what: str
    hot_writes: float = 0
    hot_blocks: float = 0


PATTERNS = (Pattern("uniform", "uniform"), Pattern("80-20", "80/20", 0.8, 0.2), Pattern("95-5", "95/5", 0.95, 0.05))
POLICIES: dict[str, tuple[str, ...]] = {
    "fifo": ("fifo", "--moved-max=0.5"),
    "greedy": ("greedy",),
    "greedy, keeps current": ("greedy-keep",),
    "cost-benefit": ("cost-benefit",),
    "generations": ("generations", f"--young={YOUNG}"),
    "streams, last": ("streams", "--heat=last"),
    "streams, Bloom": ("streams", "--heat=bloom"),
    "streams, counted": ("streams", "--heat=swept"),
    "rings, Bloom": ("rings", "--heat=bloom"),
    "rings, rate": ("rings", "--heat=rate"),
    RINGS: ("rings", "--heat=swept"),
    "rings, future": ("rings", "--heat=future"),
}
BOUNDS = {"oracle": "oracle", "without_tracks": "rates known", "with_tracks": "rates known, in tracks"}
DRAWN = ("fifo", "generations", "streams, counted", RINGS, "rings, future")
# What the chosen ones depend on, at GOAL_WINDOW.
SPANS = (0.5, 0.75, 1, 1.25, 1.5, 2, 3)
VARIANTS: dict[str, tuple[str, ...]] = {
    **{f"{RINGS}, span {span:g}": (*POLICIES[RINGS], f"--span={span}") for span in SPANS},
    **{f"{RINGS}, fading over {memory} spans": (*POLICIES[RINGS], f"--memory={memory}") for memory in (1, 2, 3, 6, 8)},
    **{f"{RINGS}, guarded, span {span:g}": (*POLICIES[RINGS], f"--span={span}", f"--survivors={GUARD}") for span in (1, 1.5, 2, 3)},
    f"{RINGS}, three: history in the hot one": (*POLICIES[RINGS], "--no-history-ring"),
    f"{RINGS}, three: survivors to the hot one": (*POLICIES[RINGS], "--no-late-ring"),
    **{f"{name}, hot blocks change once in {change:g} of the log": (*POLICIES[name], f"--change={change}") for name in (RINGS, "generations") for change in (0.25, 1, 4)},
    **{f"{RINGS}, guarded, hot blocks change once in {change:g} of the log": (*POLICIES[RINGS], f"--survivors={GUARD}", f"--change={change}") for change in (0.25, 1, 4)},
    "fifo, up to 7/8 of a track are moved": ("fifo",),
    **{f"streams, Bloom, span {span:g}": (*POLICIES["streams, Bloom"], f"--span={span}") for span in SPANS},
    **{f"streams, counted, {buckets} of history": (*POLICIES["streams, counted"], f"--buckets={buckets}") for buckets in (1, 2, 6)},
    **{f"generations, {young:.0%} young, adopted from {adopt:.0%}": ("generations", f"--young={young}", f"--adopt={adopt}") for young in (0.03, 0.05, 0.1) for adopt in (0.7, 0.9)},
    **{f"{RINGS}, a volume of 1/{parts} of the log": (*POLICIES[RINGS], f"--volume={1 / parts}") for parts in (10, 20)},
    **{f"fifo, a volume of 1/{parts} of the log": (*POLICIES["fifo"], f"--volume={1 / parts}") for parts in (10, 20)},
    f"{RINGS}, an image 1/20 behind": (*POLICIES[RINGS], "--lag=0.05"),
    f"{RINGS}, 320 tracks of 205 blocks": (*POLICIES[RINGS], "--tracks=320", "--track-blocks=205"),
    f"{RINGS}, 2048 tracks of 32 blocks": (*POLICIES[RINGS], "--tracks=2048", "--track-blocks=32"),
    f"{RINGS}, another seed": (*POLICIES[RINGS], "--seed=2"),
}


def _run(arguments: tuple[str, ...], pattern: Pattern, windows: tuple[float, ...], sizes: Sizes) -> dict[float, dict]:
    """What the model says of each window."""
    general = [f"--windows={','.join(map(str, windows))}", f"--hot-writes={pattern.hot_writes}", f"--hot-blocks={pattern.hot_blocks}"]
    if not any(argument.startswith("--tracks") for argument in arguments):
        general += [f"--tracks={sizes.tracks}", f"--track-blocks={sizes.track_blocks}"]
    text = subprocess.run([str(MODEL), *arguments, *general], check=True, capture_output=True, text=True, timeout=loads.PATIENCE_S).stdout
    return dict(zip(windows, json.loads(text)))


def _cell(run: dict) -> str:
    steady = "" if run["steady"] else " ~"
    return f"{run['amplification']:.3f}{steady}" if run["holds"] else f"– ({run['held_min']:.1%} to {run['held']:.1%}, {run['amplification']:.2f})"


def _table(pattern: Pattern, runs: dict[str, dict[float, dict]], windows: tuple[float, ...]) -> str:
    table = header(f"{pattern.what}, a window of", *(f"{window:.0%}" for window in windows))
    for name, by_window in runs.items():
        table.append(line(name, *(_cell(by_window[window]) for window in windows)))
    for bound, name in BOUNDS.items():
        table.append(line(f"*{name}*", *(f"{runs[RINGS][window][bound]:.3f}" for window in windows)))
    return "\n".join(table)


def _variants(runs: dict[str, dict[str, dict[float, dict]]]) -> str:
    table = header(f"A window of {GOAL_WINDOW:.0%}", *(pattern.what for pattern in PATTERNS))
    for name in VARIANTS:
        table.append(line(name, *(_cell(runs[pattern.id][name][GOAL_WINDOW]) for pattern in PATTERNS)))
    return "\n".join(table)


def _picture(pattern: Pattern, runs: dict[str, dict[float, dict]]) -> str:
    """The amplification at which a policy holds a window; nothing where it does not."""
    series = []
    for name in DRAWN:
        points = [(window, run["amplification"]) for window, run in runs[name].items() if run["holds"]]
        if points:
            series.append((name, points))
    for bound in ("without_tracks", "with_tracks"):
        series.append((BOUNDS[bound], [(window, run[bound]) for window, run in runs[RINGS].items()]))
    return curve.lines(f"Write amplification against the window, {pattern.what}", curve.Axis("window held, as a share of the log"), curve.Axis("blocks appended for a host write"), series)


def measure(scale: Scale, folder: pathlib.Path) -> Measured:
    sizes = SHORT if scale.short else FULL
    rows, tables, pictures = [], [], {}
    runs: dict[str, dict[str, dict[float, dict]]] = {}
    variants: dict[str, dict[str, dict[float, dict]]] = {}
    for pattern in PATTERNS:
        say(f"{pattern.what}: {len(POLICIES)} ways to clean, {len(sizes.windows)} windows")
        began = time.monotonic()
        runs[pattern.id] = {name: _run(arguments, pattern, sizes.windows, sizes) for name, arguments in POLICIES.items()}
        variants[pattern.id] = {name: _run(arguments, pattern, (GOAL_WINDOW,), sizes) for name, arguments in VARIANTS.items()}
        seconds = time.monotonic() - began
        tables.append(_table(pattern, runs[pattern.id], sizes.windows))
        pictures[f"cleaners-{pattern.id}"] = _picture(pattern, runs[pattern.id])
        for name, by_window in runs[pattern.id].items():
            run = by_window[GOAL_WINDOW]
            goal = AMPLIFICATION_MAX if name == RINGS and pattern.hot_writes else None
            lacks = scale.lacks or ("" if run["holds"] else f"the window: {run['held']:.1%} of the log was held") or ("" if run["steady"] else "a steady state")
            rows.append(Row(f"cleaners.{pattern.id}.{name.replace(', ', '.').replace(' ', '_')}", f"Cleaners, {pattern.what}, a window of {GOAL_WINDOW:.0%}: {name}", "blocks for a write",
                            run["amplification"], 1, "the write alone", seconds, scale.name, goal, True, 0, lacks))
    tables.append(_variants(variants))
    notes = NOTES.format(tracks=sizes.tracks, track_blocks=sizes.track_blocks, young=YOUNG, guard=GUARD)
    named = {pattern: {name: list(by_window.values()) for name, by_window in {**runs[pattern], **variants[pattern]}.items()} for pattern in runs}
    return Measured(rows, tables, notes, named, pictures)
