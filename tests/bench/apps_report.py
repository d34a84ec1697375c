"""What the benchmark of applications found: rows, tables for people, and pictures."""

import apps_papers
import curve
from apps_paced import Paced
from apps_papers import short
from apps_servers import DURABLE, FLUSHED, LOCAL, MEMORY, NAMES, OURS
from apps_turns import Figures, Turns
from chart import bars
from results import Row, describe, header, line

RIVALS = (DURABLE, MEMORY, LOCAL)

NOTES = """\
- The same path for all: ext4 on a loop device (O_DIRECT), nbdfuse, QEMU's storage daemon, libiscsi, the target on loopback; all on
  the cores of this machine. Some six requests are under way at once at most. *Local disk, same path*: the storage daemon has a file
  (O_DIRECT, fdatasync) instead of a LUN, so it lacks the network and a target, not the rest.
- Mariner keeps its history, and has made every write durable before it answers; *tgt, durable* is the better of rdwr with
  bsoflags=sync and rdwr with a write cache whose flushes are honoured, for each load by its first figure (named below).
  *tgt, in memory* has its store in tmpfs, where a flush does nothing: a ceiling that nothing durable reaches.
- Every fsync reaches the target: Mariner counted {flushes} SYNCHRONIZE CACHE and {writes} writes for each of an application that appends
  4 KiB and flushes. It makes each of these writes durable by itself; a write cache makes them durable with the flush.
- Medians of {rounds} run{s}, servers in turn, a new file system on the same LUN each time; what Mariner had to apply to its image was applied
  before the next one's turn. Its log {log}.
- Postmark: {postmark}; sizes of 500 to 10,000 bytes, pieces of 4 KiB, one thread. *sync*: mounted so; *fsync*: each file is flushed before it
  is closed. SQLite: one row a transaction, synchronous=FULL. pgbench: scale {pg_scale}, PostgreSQL's defaults, {pg_s:g} s. Operations: `sync,dirsync`,
  {operations} of each, setattr flushed as nfsd does.
- At set intervals: {paced} writes of 4 KiB at random, straight to the LUN; tgt durable by bsoflags=sync or by FUA on each.
  A latency counts from when a write was due."""


class Report:
    """`scale`: an apps.Scale."""

    def __init__(self, scale, loads: list, turns: Turns, log_text: str):
        self.scale, self.loads, self.turns = scale, loads, turns
        self.figures = Figures(loads, turns.runs)
        self._log_text = log_text

    def commands_each(self, operation: str) -> float | None:
        """Of Mariner, for each fsync."""
        done = self.turns.flushes
        return sum(each[operation] for each in done) / sum(each["fsync"] for each in done) if done else None

    def name_of(self, load, rival: str) -> str:
        if rival != DURABLE:
            return NAMES[rival]
        chosen = self.figures.better_tgt(load.id)
        if isinstance(load, Paced) and chosen == FLUSHED:
            return "tgt, durable (FUA on each write)"
        return f"{NAMES[rival]} ({NAMES[chosen].removeprefix('tgt, ')})" if chosen else NAMES[rival]

    def rivals(self, load) -> tuple[str, ...]:
        return (DURABLE, MEMORY) if isinstance(load, Paced) else RIVALS

    def rows(self) -> list[Row]:
        rows = []
        for load in self.loads:
            for name, (what, unit, less) in load.figures().items():
                for rival in self.rivals(load):
                    lacks = [self.figures.failures(load.id, server) for server in (OURS, rival)]
                    rows.append(Row(f"{load.id}.{name}.{rival}", f"{load.what}: {what}", unit, self.figures.value(load.id, OURS, name),
                                    self.figures.value(load.id, rival, name), self.name_of(load, rival),
                                    self.figures.seconds(load.id, OURS), self.scale.name, less_is_better=less,
                                    lacks="; ".join(filter(None, lacks))))
        if any(load.id == "fsync" for load in self.loads):
            rows.append(Row("flushes", "SYNCHRONIZE CACHE for an fsync", "", self.commands_each("flush"), 1, "fsyncs",
                            self.figures.seconds("fsync", OURS), self.scale.name, goal=1))
        return rows

    def table(self, about: dict) -> str:
        parts = [self._applications(), self._paced(), self._papers(), self._notes(), "Measured on " + describe(about)]
        return "\n\n".join(filter(None, parts))

    def _cells(self, load, name: str, unit: str, less: bool) -> list[str]:
        ours = self.figures.value(load.id, OURS, name)
        cells = [f"**{short(ours)} {unit.replace('us', 'µs')}**"]
        for rival in RIVALS:
            theirs = self.figures.value(load.id, rival, name)
            times = apps_papers.times_better(ours, theirs, less)
            cells.append("" if rival not in self.rivals(load) else short(theirs) + (f" ({times:.2f}×)" if times else ""))
        return cells

    def _applications(self) -> str:
        loads = [load for load in self.loads if not isinstance(load, Paced)]
        if not loads:
            return ""
        lines = header("", "Mariner", *(NAMES[r] for r in RIVALS), "tgt durable by")
        for load in loads:
            chosen = self.figures.better_tgt(load.id)
            for name, (what, unit, less) in load.figures().items():
                lines.append(line(f"{load.what}: {what}", *self._cells(load, name, unit, less),
                                  NAMES[chosen].removeprefix("tgt, ") if chosen else "–"))
        return "\n".join(lines) + "\n\nIn brackets: how many times better Mariner is (of times: the other's as a multiple of Mariner's)."

    def _paced(self) -> str:
        loads = [load for load in self.loads if isinstance(load, Paced)]
        if not loads:
            return ""
        lines = header("latency in µs: mean / p99", "Mariner", *(NAMES[r] for r in (DURABLE, MEMORY)))
        for load in loads:
            cells = [" / ".join(short(self.figures.value(load.id, server, name)) for name in ("mean", "p99"))
                     for server in (OURS, DURABLE, MEMORY)]
            lines.append(line(load.what, *cells))
        knees = []
        for server in (OURS, DURABLE):
            if means := self._means(server):
                knee = apps_papers.knee_us(means)
                knees.append(f"{NAMES[server]} " + (f"{knee} µs" if knee else "none of these"))
        return "\n".join(lines) + (
            f"\n\nThe shortest interval whose mean (and that of all longer ones) is less than twice the least: {', '.join(knees)}; Figure 4.13: {apps_papers.PAPER_KNEE_US} µs." if knees else "")

    def _papers(self) -> str:
        if not {"postmark_sync", "operations"} <= {load.id for load in self.loads}:
            return ""
        known = {load.id: load for load in self.loads}

        def less(load_id: str, name: str) -> bool:
            return load_id in known and self.figures.less_is_better(load_id, name)
        return apps_papers.shapes_table(self.figures.value, less) + "\n\nWhat the dissertation's systems were, and ours:\n" + apps_papers.systems_text()

    def _notes(self) -> str:
        files, folders, transactions = self.scale.postmark
        return NOTES.format(flushes=short(self.commands_each("flush")), writes=short(self.commands_each("write")), rounds=self.scale.rounds, s="s" * (self.scale.rounds > 1),
                            log=self._log_text, postmark=f"{files:,} files, {folders:,} folders, {transactions:,} transactions",
                            pg_scale=self.scale.pgbench[0], pg_s=self.scale.pgbench[1], operations=self.scale.operations,
                            paced=f"{self.scale.paced:,}")

    def _means(self, server: str) -> dict[int, float]:
        """Figure 4.13's: by interval. Empty: not all of them were measured."""
        means = {load.interval_us: self.figures.value(load.id, server, "mean")
                 for load in self.loads if isinstance(load, Paced) and not load.bursts}
        return means if all(means.values()) else {}

    def interval_picture(self) -> str:
        """Figure 4.13; empty: it was not measured."""
        series = [(NAMES[server], sorted(means.items())) for server in (OURS, DURABLE, MEMORY) if (means := self._means(server))]
        if not series:
            return ""
        return curve.lines("4 KiB writes at set intervals, straight to the LUN", curve.Axis("us between two writes", logarithmic=True),
                           curve.Axis("mean latency, us", logarithmic=True), series,
                           [curve.Mark("Figure 4.13: it rises", apps_papers.PAPER_KNEE_US, None)])

    def picture(self) -> str:
        groups = []
        for load in self.loads:
            for name, (what, unit, less) in load.figures().items():
                if isinstance(load, Paced) or (less and unit != "ms"):
                    continue
                values = [(NAMES[s], self.figures.value(load.id, s, name)) for s in (OURS, *RIVALS)]
                if unit == "ms":
                    values = [(who, value and value * 1000) for who, value in values]
                groups.append((f"{load.what}: {what}", "us" if unit == "ms" else unit, values))
        return bars("Applications on Mariner, beside tgt and a local disk", groups)
