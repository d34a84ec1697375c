#!/usr/bin/env python3
"""What soak_judge.py makes of figures whose answer is known."""

import random
import unittest

import soak_judge as judge


class SharesTest(unittest.TestCase):
    def test_equal_shares_are_one(self):
        self.assertEqual(judge.shares([7, 7, 7]).ratio, 1)

    def test_the_most_is_set_against_the_fewest(self):
        found = judge.shares([12, 8, 10])
        self.assertEqual((found.most, found.least, found.ratio), (12, 8, 1.5))

    def test_a_session_with_nothing_is_infinitely_worse(self):
        self.assertEqual(judge.shares([5, 0]).ratio, float("inf"))

    def test_the_worst_window_is_found_though_the_sum_is_fair(self):
        windows = [[10, 10], [30, 10], [10, 30], [10, 12]]
        self.assertEqual(judge.worst(windows).ratio, 3)
        self.assertAlmostEqual(judge.shares([sum(each) for each in zip(*windows)]).ratio, 62 / 60)

    def test_a_window_without_an_answer_is_the_worst(self):
        self.assertEqual(judge.worst([[100, 1], [1, 0]]), judge.Shares(1, 0))


class TrendTest(unittest.TestCase):
    def test_a_line_is_found_again(self):
        line = judge.fit([(t, 100 + 0.5 * t) for t in range(60, 661)])
        self.assertAlmostEqual(line.begin, 130)
        self.assertAlmostEqual(line.end, 430)
        self.assertAlmostEqual(line.after(1200), 730)

    def test_noise_without_a_trend_is_flat(self):
        numbers = random.Random(1)
        line = judge.fit([(t, 400 + numbers.uniform(-20, 20)) for t in range(600)])
        self.assertLess(abs(line.end / line.begin - 1), 0.01)

    def test_a_small_leak_below_larger_noise_is_seen(self):
        numbers = random.Random(2)
        line = judge.fit([(t, 400 + 8 * t / 600 + numbers.uniform(-20, 20)) for t in range(600)])
        self.assertGreater(line.end / line.begin, 1.01)

    def test_points_are_taken_by_half_open_times(self):
        points = [(float(t), float(t)) for t in range(10)]
        self.assertEqual(judge.between(points, 2, 5), [(2, 2), (3, 3), (4, 4)])
        self.assertEqual(judge.highest(judge.between(points, 2, 5)), 4)

    def test_means_stand_in_the_middle_of_their_pieces(self):
        self.assertEqual(judge.means([(0, 1), (5, 3), (10, 7), (31, 2)], 10), [(5, 2), (15, 7), (35, 2)])


if __name__ == "__main__":
    unittest.main()
