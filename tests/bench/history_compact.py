"""Compaction: how little a past of real files takes, how fast it is read, and that all is there."""

import contextlib
import dataclasses
import pathlib
import random
import shutil

import compact_past
import uvfs_lab
from compact_database import Database
from compact_packages import Packages
from compact_past import DEPTHS, MIB, Past, Reading
from compact_sources import Sources
from compaction import Compaction
from history import Measured, Scale
from results import OUT, Row, header, line, number, say

LOADS = (Packages, Sources, Database)
RATIO_MIN = 4
SLOWER_MAX = 2
CPU_PERCENT = 10  # the setting that is measured
CPU_NEEDS_S = 20
KILLS = {"full": 10, "short": 3}  # over all loads
KILL_CPU_PERCENT = 5  # so that none is done before it is killed
KILL_WITHIN_S = {"full": 4.0, "short": 0.3}
CPU_S = {"full": 10.0, "short": 1.0}  # of each load

NOTES = """\
- Each load runs on a volume of its own with an ext4 of this machine's kernel ({volume} GiB;
  QEMU's storage daemon shows the LUN as a file, the kernel mounts that), in a daemon of its own.
  *Packages*: dpkg unpacks a base and some forty packages of Debian, upgrades them, removes half
  of them; the archives lie elsewhere. *Sources*: git clones a repository (the kernel's without
  drivers, at up to five versions; in a short run this project's own), checks out one version
  after the other, the newest one once more beside it, goes back to the middle, and packs.
  *Database*: SQLite, TPC-B's transactions, each of them durable, with a rollback journal, then
  with a log ahead; in the end it is made compact.
- *Before* and *after*: bytes that the log uses, headers and all, with tracks of {track} MiB; the
  last track, which is still written, is in both.
- Reading: {moments} moments of each as views, the daemon restarted and the page cache dropped
  before each. The whole view: `qemu-img convert`, to nowhere, of what is allocated. At random:
  {reads} of its allocated blocks of 4 KiB of each moment, none twice, the same ones before and
  after.
- CPU: of the compaction's threads over wall time, with `compact_cpu = "{cpu}%"`.
- Killed: kill -9 at {kills} moments by chance while it compacts (`compact_cpu = "{kill_cpu}%"`);
  then it is let finish, and all of {all_moments} moments of each volume are compared by SHA-256
  with what they were before."""


@dataclasses.dataclass
class Run:
    """What a load gave; what is none was not measured, and `lacks` says why."""

    lacks: str = ""
    load_s: float = 0
    before_bytes: int | None = None
    history_bytes: int | None = None  # what the daemon says that it was
    after_bytes: int | None = None
    before: Reading | None = None
    after: Reading | None = None
    cpu_s: float = 0
    cpu_wall_s: float = 0
    kills: int = 0  # that met it at work
    moments: int = 0
    exact: int | None = None
    steps: list[str] = dataclasses.field(default_factory=list)


def _compact(past: Past, run: Run, scale: Scale, kills: int):
    compaction = Compaction(past.daemon)
    run.lacks = compaction.lacks()
    if run.lacks:
        return
    checksums = past.checksums()
    run.cpu_s, run.cpu_wall_s = compaction.measure_cpu(CPU_PERCENT, CPU_S[scale.name])
    chance = random.Random(past.load.name)
    for _ in range(kills):
        run.kills += compaction.kill_within(KILL_CPU_PERCENT, chance, KILL_WITHIN_S[scale.name])
        say(f"   killed; the log has {past.used_bytes / MIB:,.0f} MiB")
    compaction.set(True, 100)
    compaction.finish()
    run.after_bytes = past.used_bytes
    run.history_bytes = int(past.metric("mariner_log_history_bytes"))
    compaction.set(False, 100)  # nothing of it beside what is read
    run.after = past.read()
    run.exact = sum(now == then for now, then in zip(past.checksums(), checksums))


def _run(kind, scale: Scale, folder: pathlib.Path, kills: int) -> Run:
    load = kind(scale.short, OUT.parent / "bench-cache")
    run = Run(lacks=uvfs_lab.may_measure() or load.lacks())
    if run.lacks:
        return run
    try:
        with compact_past.past_of(
            folder, load, compact_past.SHORT if scale.short else compact_past.FULL
        ) as past:
            run.load_s, run.moments, run.steps = (
                past.load_s,
                len(past.moments),
                [moment.step for moment in past.moments],
            )
            run.before_bytes = past.used_bytes
            run.before = past.read()
            _compact(past, run, scale, kills)
    except Exception as error:  # whatever it was: this load's rows do not hold, and say why
        run.lacks = f"{type(error).__name__}: {error}"
        say(f"   {run.lacks}")
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
    return run


def _reading_rows(name: str, run: Run, common: dict) -> list[Row]:
    def pair(of) -> tuple[float | None, float | None]:
        return tuple(of(each) if each else None for each in (run.after, run.before))

    common = common | {"rival_name": "before", "goal": SLOWER_MAX, "less_is_better": True}
    ours, rival = pair(lambda each: each.sequential_s)
    rows = [
        Row(
            f"compact.read.sequential.{name}",
            f"{name}: reading whole views",
            "s",
            ours,
            rival,
            **common,
        )
    ]
    for depth in DEPTHS:
        ours, rival = pair(lambda each, d=depth: each.random_s[d] * 1e6)
        rows.append(
            Row(
                f"compact.read.random_{depth}.{name}",
                f"{name}: a random 4 KiB of the past, {depth} outstanding",
                "us",
                ours,
                rival,
                **common,
            )
        )
    return rows


def _rows(runs: dict[str, Run], scale: Scale) -> list[Row]:
    rows = []
    whole = all(run.after_bytes is not None for run in runs.values())
    lacks = "; ".join(
        [
            *filter(None, [scale.lacks]),
            *(f"{name}: {run.lacks}" for name, run in runs.items() if run.lacks),
        ]
    )
    for name, run in runs.items():
        common = {
            "measured_s": run.load_s,
            "scale": scale.name,
            "lacks": "; ".join(filter(None, [scale.lacks, run.lacks])),
        }
        before, after = (each and each / MIB for each in (run.before_bytes, run.after_bytes))
        rows.append(
            Row(
                f"compact.ratio.{name}",
                f"{name}: history, before",
                "MiB",
                before,
                after,
                "after",
                **common,
            )
        )
        rows += _reading_rows(name, run, common)
    common = {
        "measured_s": sum(run.load_s for run in runs.values()),
        "scale": scale.name,
        "lacks": lacks,
    }
    before, after = (
        (sum(getattr(run, which) for run in runs.values()) / MIB if whole else None)
        for which in ("before_bytes", "after_bytes")
    )
    rows.append(
        Row(
            "compact.ratio",
            "history of the three together, before",
            "MiB",
            before,
            after,
            "after",
            goal=RATIO_MIN,
            **common,
        )
    )
    wall = sum(run.cpu_wall_s for run in runs.values())
    share = 100 * sum(run.cpu_s for run in runs.values()) / wall if wall else None
    rows.append(
        Row(
            "compact.cpu",
            "CPU of the compaction",
            "% of a core",
            share,
            CPU_PERCENT,
            "the setting",
            goal=1,
            less_is_better=True,
            needs_s=CPU_NEEDS_S,
            **(common | {"measured_s": wall}),
        )
    )
    kills, wanted = sum(run.kills for run in runs.values()), KILLS[scale.name]
    short_of = f"{wanted} kills while it compacts: {kills} were" if kills < wanted else ""
    exact = sum(run.exact or 0 for run in runs.values()) if whole else None
    rows.append(
        Row(
            "compact.killed",
            f"killed {kills} times while it compacts: moments that are what they were",
            "",
            exact,
            sum(run.moments for run in runs.values()),
            "moments",
            goal=1,
            **(common | {"lacks": "; ".join(filter(None, [lacks, short_of]))}),
        )
    )
    return rows


def _table(runs: dict[str, Run]) -> str:
    rows = header(
        "",
        "load",
        "before",
        "after",
        "whole views: before",
        "after",
        *(f"random, {depth}: {when}" for depth in DEPTHS for when in ("before", "after")),
        "exact",
    )
    for name, run in runs.items():

        def read(of, text: str) -> list[str]:
            return [text.format(of(each)) if each else "–" for each in (run.before, run.after)]

        sizes = (
            f"{number(each and each / MIB)} MiB" for each in (run.before_bytes, run.after_bytes)
        )
        times = [
            cell
            for depth in DEPTHS
            for cell in read(lambda each, d=depth: each.random_s[d] * 1e6, "{:.0f} us")
        ]
        rows.append(
            line(
                name,
                f"{run.load_s:.0f} s",
                *sizes,
                *read(lambda each: each.sequential_bytes / each.sequential_s / 1e6, "{:.0f} MB/s"),
                *times,
                "–" if run.exact is None else f"{run.exact} of {run.moments}",
            )
        )
    return "\n".join(rows)


def measure(scale: Scale, folder: pathlib.Path) -> Measured:
    runs: dict[str, Run] = {}
    kills = KILLS[scale.name]
    for at, kind in enumerate(LOADS):
        share = kills * (at + 1) // len(LOADS) - kills * at // len(LOADS)
        say(f"   {kind.name}")
        runs[kind.name] = _run(kind, scale, folder / kind.name, share)
    sizes = compact_past.SHORT if scale.short else compact_past.FULL
    notes = NOTES.format(
        volume=f"{sizes.volume_bytes / compact_past.GIB:g}",
        track=sizes.track_bytes // MIB,
        moments=sizes.read_moments,
        reads=number(sizes.random_reads),
        cpu=CPU_PERCENT,
        kills=kills,
        kill_cpu=KILL_CPU_PERCENT,
        all_moments=sizes.moments,
    )
    return Measured(
        _rows(runs, scale),
        [_table(runs)],
        notes,
        {name: dataclasses.asdict(run) for name, run in runs.items()},
    )
