#!/usr/bin/env python3
"""What could be reached at most, and whether a goal lies above it."""

import unittest

import servers  # noqa: F401  first: it shows Python where the end-to-end drivers are
import target_goals
import target_limits


class LimitsTest(unittest.TestCase):
    def test_of_a_lone_write_the_times_add_up(self):
        self.assertAlmostEqual(target_limits.limit_of("write_4k_qd1", 10_000, 10_000), 5_000)

    def test_many_at_a_time_have_none(self):
        for load in ("write_4k_qd32", "write_4k_qd128", "write_256k"):
            self.assertIsNone(target_limits.limit_of(load, 70_000, 90_000))

    def test_what_was_not_measured_limits_nothing(self):
        self.assertIsNone(target_limits.limit_of("write_4k_qd1", None, 10_000))
        self.assertIsNone(target_limits.limit_of("write_4k_qd1", 10_000, None))
        self.assertIsNone(target_limits.limit_of("read_256k", 10_000, 10_000))

    def test_a_goal_above_the_limit_is_out_of_reach(self):
        rates = {"tgt_durable": 4_000, "btrfs_durable": 1_000}
        found = {each.rival: each for each in target_limits.beside("write_4k_qd1", 6_000, rates.get)}
        self.assertEqual(set(found), set(rates))
        self.assertTrue(found["tgt_durable"].is_possible)
        self.assertFalse(found["btrfs_durable"].is_possible)
        self.assertEqual(found["btrfs_durable"].possible, 6)

    def test_limits_are_of_loads_that_something_is_asked_of(self):
        self.assertLessEqual(set(target_limits.LIMITS), {load for load, figure, _ in target_goals.GOALS if figure == "rate"})


if __name__ == "__main__":
    unittest.main()
