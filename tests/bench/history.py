#!/usr/bin/env python3
"""History at scale: what keeping it costs in the steady state, and what it gives back how fast.

    history.py [--short] [--part PART]... [--folder FOLDER]

Each part is a module of its own (`history_PART.py`) with `measure(scale, folder)`, which gives rows, tables and notes."""

import argparse
import dataclasses
import importlib
import pathlib
import shutil
import sys
import tempfile

import servers  # noqa: F401  first: it shows Python where the end-to-end drivers are
from ending import end_cleanly
from results import OUT, Row, describe, goals, machine, say, write_json

PARTS = ("steady", "rollback", "views", "forecast", "compact", "cleaners")


@dataclasses.dataclass(frozen=True)
class Scale:
    """How much is measured. `name` stands in every row; goals hold at "full" only."""
    name: str

    @property
    def short(self) -> bool:
        return self.name == "short"

    @property
    def lacks(self) -> str:
        """What rows of this scale lack of what their goals need."""
        return "a full run" if self.short else ""


@dataclasses.dataclass
class Measured:
    """What a part gives: rows for the goals, tables and notes in Markdown, and what it was made of."""
    rows: list[Row]
    tables: list[str] = dataclasses.field(default_factory=list)
    notes: str = ""
    runs: dict = dataclasses.field(default_factory=dict)
    pictures: dict[str, str] = dataclasses.field(default_factory=dict)  # SVG by name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="small and quick; shows that it works")
    parser.add_argument("--part", action="append", choices=PARTS, help="only these")
    parser.add_argument("--folder", type=pathlib.Path, help="where volumes and logs lie; otherwise build/bench")
    given = parser.parse_args()
    scale = Scale("short" if given.short else "full")
    end_cleanly()
    OUT.mkdir(parents=True, exist_ok=True)
    about = machine((given.folder or OUT).resolve())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="history-", dir=given.folder or OUT))
    parts: dict[str, Measured] = {}
    try:
        for name in given.part or PARTS:
            say(f"-- {name}")
            (folder / name).mkdir()
            parts[name] = importlib.import_module(f"history_{name}").measure(scale, folder / name)
            shutil.rmtree(folder / name, ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    records = [row.record(about) for part in parts.values() for row in part.rows]
    write_json(OUT / "history.json", records)
    write_json(OUT / "history-runs.json", {name: part.runs for name, part in parts.items()})
    texts = [goals(records)]
    for name, part in parts.items():
        texts += [*part.tables, *([part.notes] if part.notes else [])]
        for picture, svg in part.pictures.items():
            (OUT / f"history-{picture}.svg").write_text(svg, encoding="utf8")
    print("\n\n".join([*texts, "Measured on " + describe(about)]))
    missing = [r["id"] for r in records if r["goal"] is not None and not r["holds"]]
    if missing:
        say("does not hold: " + ", ".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
