"""SQLite: transactions of one row each, inserts and updates in turn, every one of them durable."""

import contextlib
import dataclasses
import pathlib
import random
import sqlite3
import statistics
import time

ROWS = 10_000  # at the beginning, loaded in one transaction
TEXT_BYTES = 200


@dataclasses.dataclass(frozen=True)
class Sqlite:
    id: str
    what: str
    journal: str  # DELETE or WAL
    seconds: float
    options = "defaults"

    def figures(self) -> dict[str, tuple[str, str, bool]]:
        return {"transactions": ("transactions", "/s", False), "p99": ("a transaction, 99th percentile", "ms", True)}

    def run(self, root: pathlib.Path) -> dict:
        with contextlib.closing(sqlite3.connect(root / "rows.db", isolation_level=None)) as database:
            mode = database.execute(f"PRAGMA journal_mode = {self.journal}").fetchone()[0]
            assert mode.upper() == self.journal, mode
            database.execute("PRAGMA synchronous = FULL")
            chance = random.Random(1)
            fill(database, chance)
            return figures_of(transactions(database, chance, self.seconds))


def fill(database: sqlite3.Connection, chance: random.Random):
    database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
    database.execute("BEGIN")
    database.executemany("INSERT INTO rows VALUES (?, ?)", ((at, text(chance)) for at in range(ROWS)))
    database.execute("COMMIT")


def text(chance: random.Random) -> str:
    return f"{chance.getrandbits(TEXT_BYTES * 4):0{TEXT_BYTES}x}"


def transactions(database: sqlite3.Connection, chance: random.Random, seconds: float) -> list[float]:
    """Seconds of each, for so long: one inserts a row, the next one updates one."""
    took = []
    rows = ROWS
    begun = now = time.monotonic()
    while now - begun < seconds:
        if len(took) % 2 == 0:
            database.execute("INSERT INTO rows VALUES (?, ?)", (rows, text(chance)))
            rows += 1
        else:
            database.execute("UPDATE rows SET text = ? WHERE id = ?", (text(chance), chance.randrange(rows)))
        before, now = now, time.monotonic()
        took.append(now - before)
    return took


def figures_of(took: list[float]) -> dict:
    p99 = statistics.quantiles(took, n=100)[98] if len(took) > 1 else took[0]
    return {"transactions": len(took) / sum(took), "p99": p99 * 1e3, "seconds": sum(took), "count": len(took)}
