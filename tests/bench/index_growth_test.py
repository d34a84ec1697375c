#!/usr/bin/env python3
"""The arithmetic of index_growth.py beside what a small simulation of the same gives."""

import math
import random
import unittest

import index_growth as growth


def poisson(mean: float, numbers: random.Random) -> int:
    count, product, end = 0, numbers.random(), math.exp(-mean)
    while product >= end:
        count += 1
        product *= numbers.random()
    return count


class IndexGrowthTest(unittest.TestCase):
    def test_a_queue_takes_whole_chunks(self):
        numbers = random.Random(1)
        for mean in (0.1, 1, 5, 7, 30, 120):
            simulated = sum(256 * math.ceil(poisson(mean, numbers) / 7) for _ in range(20_000)) / 20_000
            self.assertAlmostEqual(growth.chunk_bytes(mean) / simulated, 1, delta=0.05)
        self.assertAlmostEqual(growth.chunk_bytes(299) / growth.chunk_bytes(301), 299 / 301, delta=0.01)

    def test_a_sweep_without_end_has_half_of_it_pending(self):
        """Leaves in a circle, a hand that commits one after another, inserts at random."""
        numbers = random.Random(2)
        leaves, x = 500, 40
        pending = [0] * leaves
        used = []
        for turn in range(leaves * 6):
            for _ in range(x):
                pending[numbers.randrange(leaves)] += 1
            hand = turn % leaves
            # x for each leaf come during a sweep of as many turns as there are leaves.
            pending[hand] = 0
            if turn > 2 * leaves and turn % 50 == 0:
                used.append(sum(256 * math.ceil(count / 7) for count in pending) / leaves)
        self.assertAlmostEqual(growth.swept(x) / (sum(used) / len(used)), 1, delta=0.05)

    def test_versions_follow_from_memory(self):
        x = growth.versions_for(1000, growth.chunk_bytes)
        self.assertAlmostEqual(growth.chunk_bytes(x), 1000, delta=1)

    def test_the_cost_grows_with_the_index_and_faster_where_chunks_fill_the_memory(self):
        costs = [growth.predict(512 << 20, leaves) for leaves in (130_000, 260_000, 520_000, 1_040_000)]
        for one, next_one in zip(costs, costs[1:]):
            self.assertGreater(next_one.most, 1.7 * one.most - 50)
            self.assertLess(one.least, one.most)
            self.assertLess(one.plain, one.most)
        self.assertGreater(costs[-1].most / costs[-1].plain, costs[0].most / costs[0].plain)

    def test_the_leaves_of_an_index(self):
        versions = 1_000_000
        disk = 3_000 * growth.BLOCK + versions * growth.TL_RECORD * growth.TL_LEAF_OVERHEAD
        self.assertAlmostEqual(growth.lt_leaves_of(disk, versions), 3_000, delta=0.01)


if __name__ == "__main__":
    unittest.main()
