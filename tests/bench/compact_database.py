"""A database of accounts under SQLite: filled, updated in many durable transactions, and vacuumed.

The transactions are those of TPC-B: an account, its teller and its branch change, and a row of what
happened is added."""

import contextlib
import dataclasses
import pathlib
import random
import sqlite3
import time
from collections.abc import Iterator

from results import HERE

WORDS_FROM = HERE.parents[2] / "ARCHITECTURE.md"
TABLES = """
CREATE TABLE branches (id INTEGER PRIMARY KEY, balance INTEGER, name TEXT);
CREATE TABLE tellers (id INTEGER PRIMARY KEY, branch INTEGER, balance INTEGER, name TEXT);
CREATE TABLE accounts (id INTEGER PRIMARY KEY, branch INTEGER, balance INTEGER, name TEXT,
                       email TEXT, street TEXT, note TEXT);
CREATE INDEX accounts_by_name ON accounts (name);
CREATE TABLE history (teller INTEGER, branch INTEGER, account INTEGER, delta INTEGER, at TEXT,
                      note TEXT);
"""
TELLERS_OF_BRANCH = 10


@dataclasses.dataclass(frozen=True)
class Sizes:
    branches: int
    accounts: int
    rollback_journal: int  # transactions with it
    ahead: int  # ... with a log ahead
    rounds: int  # of the latter


FULL = Sizes(branches=20, accounts=300_000, rollback_journal=2_000, ahead=6_000, rounds=3)
SHORT = Sizes(branches=2, accounts=20_000, rollback_journal=100, ahead=500, rounds=2)


class Database:
    name = "database"

    def __init__(self, short: bool, cache: pathlib.Path):
        self._sizes = SHORT if short else FULL

    def lacks(self) -> str:
        """Empty: it can be done here."""
        return ""

    def prepare(self):
        """What is written is the same each time."""
        self._chance = random.Random(1)
        self._words = sorted(
            {word.strip("`*.,:;()") for word in WORDS_FROM.read_text().split()} - {""}
        )
        self._second = 0

    def steps(self, root: pathlib.Path) -> Iterator[str]:
        """Goes on to the next step when it is asked for its name."""
        sizes = self._sizes
        with contextlib.closing(
            sqlite3.connect(root / "accounts.db", isolation_level=None)
        ) as database:
            database.execute(f"PRAGMA temp_store_directory = '{root}'")  # where VACUUM copies to
            database.execute("PRAGMA synchronous = FULL")
            self._fill(database)
            yield "filled"
            self._transactions(database, sizes.rollback_journal)
            yield f"{sizes.rollback_journal} transactions with a rollback journal"
            database.execute("PRAGMA journal_mode = WAL")
            for at in range(1, sizes.rounds + 1):
                self._transactions(database, sizes.ahead)
                yield f"{at * sizes.ahead} transactions with a log ahead"
            database.execute("DELETE FROM history WHERE rowid % 2 = 0")
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            yield "made compact"

    def _fill(self, database: sqlite3.Connection):
        sizes, chance = self._sizes, self._chance
        database.executescript(TABLES)
        database.execute("BEGIN")
        for branch in range(sizes.branches):
            database.execute("INSERT INTO branches VALUES (?, 0, ?)", (branch, self._text(2)))
            database.executemany(
                "INSERT INTO tellers VALUES (?, ?, 0, ?)",
                (
                    (branch * TELLERS_OF_BRANCH + at, branch, self._text(2))
                    for at in range(TELLERS_OF_BRANCH)
                ),
            )
        for first in range(0, sizes.accounts, 10_000):
            rows = []
            for account in range(first, min(first + 10_000, sizes.accounts)):
                name = self._text(2).title()
                rows.append(
                    (
                        account,
                        account % sizes.branches,
                        chance.randrange(1_000_000),
                        name,
                        f"{name.replace(' ', '.').lower()}{chance.randrange(1000)}@example.com",
                        f"{self._text(1).title()} Street {chance.randrange(200)}",
                        self._text(chance.randrange(4, 24)),
                    )
                )
            database.executemany("INSERT INTO accounts VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        database.execute("COMMIT")

    def _transactions(self, database: sqlite3.Connection, count: int):
        sizes, chance = self._sizes, self._chance
        for _ in range(count):
            self._second += 1
            account, delta = chance.randrange(sizes.accounts), chance.randrange(-5000, 5000)
            branch = chance.randrange(sizes.branches)
            teller = branch * TELLERS_OF_BRANCH + chance.randrange(TELLERS_OF_BRANCH)
            database.execute("BEGIN IMMEDIATE")
            database.execute(
                "UPDATE accounts SET balance = balance + ? WHERE id = ?", (delta, account)
            )
            database.execute(
                "UPDATE tellers SET balance = balance + ? WHERE id = ?", (delta, teller)
            )
            database.execute(
                "UPDATE branches SET balance = balance + ? WHERE id = ?", (delta, branch)
            )
            at = time.strftime("2026-11-%dT%H:%M:%SZ", time.gmtime(self._second))
            database.execute(
                "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?)",
                (teller, branch, account, delta, at, self._text(chance.randrange(3, 9))),
            )
            database.execute("COMMIT")

    def _text(self, words: int) -> str:
        return " ".join(self._chance.choices(self._words, k=words))
