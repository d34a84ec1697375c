#!/usr/bin/env python3
"""Which of several runs of a load stands for them."""

import unittest

import servers  # noqa: F401  first: it shows Python where the end-to-end drivers are
import loads
import target_goals


def run(rate: float, failure: str = "") -> dict:
    return {"rate": rate, "failure": failure}


class MiddleTest(unittest.TestCase):
    def test_the_median_stands_for_all(self):
        self.assertEqual(loads.middle([run(7), run(90), run(8)])["rate"], 8)

    def test_of_two_the_slower_one(self):
        self.assertEqual(loads.middle([run(9), run(4)])["rate"], 4)

    def test_a_failure_is_not_outvoted(self):
        self.assertEqual(loads.middle([run(9), {"failure": "it hangs"}, run(4)])["failure"], "it hangs")


class GoalsTest(unittest.TestCase):
    def test_a_rate_is_to_be_high_and_all_else_low(self):
        for (_, figure, _), goal in target_goals.GOALS.items():
            self.assertEqual(goal.less_is_better, figure != "rate")

    def test_what_nothing_is_asked_of_has_none(self):
        self.assertIsNone(target_goals.goal_of("write_4k_qd1", "rate", "tgt_null"))


if __name__ == "__main__":
    unittest.main()
