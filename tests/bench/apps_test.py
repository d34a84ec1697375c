#!/usr/bin/env python3
"""What the benchmark of applications computes: figures of what programs print, medians, the better way of tgt, turns."""

import os
import pathlib
import random
import sqlite3
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import mariner  # noqa: E402

import apps  # noqa: E402
import apps_disk  # noqa: E402
import apps_operations  # noqa: E402
import apps_papers  # noqa: E402
import apps_pgbench  # noqa: E402
import apps_postmark  # noqa: E402
import apps_servers  # noqa: E402
import apps_sqlite  # noqa: E402
import apps_turns  # noqa: E402
from apps_servers import DURABLE, FLUSHED, LOCAL, OURS, SYNC  # noqa: E402

PGBENCH = """\
pgbench (15.18 (Debian 15.18-0+deb12u1))
transaction type: <builtin: TPC-B (sort of)>
number of failed transactions: {failed} (0.000%)
latency average = 12.345 ms
initial connection time = 5.432 ms
tps = 81.006480 (without initial connection time)
"""


def ended(value: float, **more) -> dict:
    return {"mean": value, "seconds": 1, "failure": ""} | more


class FiguresTest(unittest.TestCase):
    def setUp(self):
        self.load = apps.Fsync("fsync", "append, fsync", 10)

    def figures(self, runs: dict) -> apps_turns.Figures:
        return apps_turns.Figures([self.load], {"fsync": runs})

    def test_a_value_is_the_median_of_all_rounds(self):
        figures = self.figures({OURS: [ended(3), ended(9), ended(4)]})
        self.assertEqual(figures.value("fsync", OURS, "mean"), 4)
        self.assertEqual(figures.seconds("fsync", OURS), 3)

    def test_a_failed_round_or_none_is_no_value(self):
        figures = self.figures({OURS: [ended(3), {"failure": "it hangs"}], LOCAL: []})
        self.assertIsNone(figures.value("fsync", OURS, "mean"))
        self.assertEqual(figures.failures("fsync", OURS), "it hangs")
        self.assertIsNone(figures.value("fsync", LOCAL, "mean"))
        self.assertIsNone(figures.value("another", OURS, "mean"))

    def test_tgt_is_durable_in_the_better_way(self):
        figures = self.figures({SYNC: [ended(5)], FLUSHED: [ended(2)]})
        self.assertEqual(figures.better_tgt("fsync"), FLUSHED)
        self.assertEqual(figures.value("fsync", DURABLE, "mean"), 2)
        figures = self.figures({SYNC: [ended(5)], FLUSHED: [{"failure": "dead"}]})
        self.assertEqual(figures.value("fsync", DURABLE, "mean"), 5)
        self.assertIsNone(self.figures({}).value("fsync", DURABLE, "mean"))

    def test_rates_are_better_where_they_are_greater(self):
        load = apps.Sqlite("sqlite_wal", "SQLite", "WAL", 1)
        figures = apps_turns.Figures([load], {"sqlite_wal": {
            SYNC: [ended(0, transactions=50, p99=9)], FLUSHED: [ended(0, transactions=40, p99=1)]}})
        self.assertEqual(figures.better_tgt("sqlite_wal"), SYNC)
        self.assertEqual(figures.value("sqlite_wal", DURABLE, "p99"), 9)

    def test_everybody_comes_first_once(self):
        firsts = [apps_turns.turn_of(self.load, round_)[0] for round_ in range(5)]
        self.assertEqual(sorted(firsts), sorted(apps_turns.TURN))
        paced = apps.Paced("interval_1", "", 1, 1)
        self.assertNotIn(LOCAL, apps_turns.turn_of(paced, 3))


class PrintedTest(unittest.TestCase):
    def test_pgbench(self):
        self.assertEqual(apps_pgbench.figures_of(PGBENCH.format(failed=0)), {"tps": 81.00648, "latency": 12.345})
        for text in (PGBENCH.format(failed=3), "pgbench: error: no answer"):
            with self.assertRaises(mariner.Failed):
                apps_pgbench.figures_of(text)

    def test_postmark(self):
        actions = {"create": {"count": 30, "mean_us": 1000}, "append": {"count": 10, "mean_us": 3000},
                   "read": {"count": 99, "mean_us": 1}, "remove": {"count": 99, "mean_us": 1}}
        figures = apps_postmark.figures_of({"transactions_per_s": 7, "read_bytes_per_s": 2000, "written_bytes_per_s": 3000,
                                            "make_s": 1, "transactions_s": 2, "remove_s": 3, "actions": actions})
        self.assertEqual((figures["write_latency"], figures["read"], figures["written"], figures["seconds"]), (1.5, 2, 3, 6))

    def test_a_load_that_only_appends_has_no_figure_of_reading(self):
        only = apps.Postmark("x", "", 1, 1, 1, read_bias=0)
        self.assertNotIn("read", only.figures())
        self.assertIn("read", apps.Postmark("x", "", 1, 1, 1).figures())


class LoadsTest(unittest.TestCase):
    def test_postmark_does_what_it_says_and_leaves_nothing(self):
        if not apps_postmark.PROGRAM.exists():
            self.skipTest(f"{apps_postmark.PROGRAM} is not built")
        for fsync in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                run = apps_postmark.Postmark("x", "", 50, 5, 400, fsync=fsync).run(pathlib.Path(folder))
                self.assertEqual(os.listdir(folder), [])
            actions = {name: each["count"] for name, each in run["told"]["actions"].items()}
            self.assertEqual(actions["create"], actions["remove"])
            # Chance: of 400 transactions half create, and half read.
            self.assertAlmostEqual(actions["create"], 50 + 200, delta=50)
            self.assertAlmostEqual(actions["read"], 200, delta=50)
            self.assertGreater(run["written"], 0)

    def test_ids_are_the_same_at_both_scales_and_each_once(self):
        full, short = ([load.id for load in scale.loads()] for scale in (apps.FULL, apps.SHORT))
        self.assertEqual(full, short)
        self.assertEqual(len(full), len(set(full)))
        known = {load.id: load for load in apps.FULL.loads()}
        for shape in apps_papers.SHAPES:
            self.assertIn(shape.name, known[shape.load].figures())

    def test_sqlite_inserts_and_updates_in_turn(self):
        database = sqlite3.connect(":memory:", isolation_level=None)
        apps_sqlite.fill(database, random.Random(1))
        took = apps_sqlite.transactions(database, random.Random(1), 0.05)
        rows = database.execute("SELECT COUNT(*) FROM rows").fetchone()[0]
        self.assertEqual(rows, apps_sqlite.ROWS + (len(took) + 1) // 2)
        self.assertAlmostEqual(apps_sqlite.figures_of([0.01] * 99 + [0.5])["transactions"], 100 / 1.49)
        self.assertEqual(len(apps_sqlite.text(random.Random(2))), apps_sqlite.TEXT_BYTES)

    def test_each_operation_is_done(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            took = apps_operations.measured(root, 3)
            self.assertEqual(set(took), set(apps_operations.Operations.NAMES))
            self.assertEqual(sorted(os.listdir(root)), ["d0", "d1", "d2", "f0", "f1", "f2"])
            self.assertEqual((root / "f1").stat().st_size, len(apps_operations.WRITE))
            self.assertEqual((root / "f1").stat().st_mode & 0o777, 0o644)
            self.assertEqual((root / "f2").stat().st_mode & 0o777, 0o600)


class PapersTest(unittest.TestCase):
    def test_times_better(self):
        self.assertEqual(apps_papers.times_better(10, 5, less_is_better=False), 2)
        self.assertEqual(apps_papers.times_better(10, 5, less_is_better=True), 0.5)
        self.assertIsNone(apps_papers.times_better(None, 5, less_is_better=True))

    def test_the_knee(self):
        self.assertEqual(apps_papers.knee_us({100: 9000, 180: 300, 240: 210, 1000: 200}), 180)
        self.assertEqual(apps_papers.knee_us({100: 210, 1000: 200}), 100)
        self.assertIsNone(apps_papers.knee_us({100: 100, 1000: 900}))
        self.assertEqual(apps_papers.knee_us({100: 150, 180: 900, 240: 140, 1000: 150}), 240)

    def test_the_papers_own_ratios(self):
        better = {f"{shape.figure} {shape.what}": shape.better for shape in apps_papers.SHAPES}
        self.assertAlmostEqual(better["4.3 mkdir"], 12.01, delta=0.01)
        self.assertEqual(better["4.17 Postmark, transactions"], 5)

    def test_three_digits_that_count(self):
        self.assertEqual([apps_papers.short(value) for value in (1234.5, 12.345, 0.12345, None)], ["1,234", "12.3", "0.123", "–"])


class DiskTest(unittest.TestCase):
    def test_who_may_not_mount_is_told_what_it_takes(self):
        with mock.patch("os.geteuid", return_value=1000):
            self.assertIn("takes root", apps_disk.lacks())
        with mock.patch("os.geteuid", return_value=0), mock.patch("os.access", return_value=True), \
                mock.patch("pathlib.Path.exists", return_value=True), mock.patch("shutil.which", lambda tool: tool != "nbdfuse" or None):
            self.assertIn("nbdfuse missing", apps_disk.lacks())

    def test_a_lun_in_the_words_of_qemu(self):
        node = apps_disk.lun_node("iscsi://127.0.0.1:3260/iqn.2026-11.org.mariner:bench/1")
        self.assertEqual((node["portal"], node["target"], node["lun"]), ("127.0.0.1:3260", "iqn.2026-11.org.mariner:bench", 1))


if __name__ == "__main__":
    unittest.main()
