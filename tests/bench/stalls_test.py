#!/usr/bin/env python3
"""What the processors did while commands were slow, out of what perf says."""

import unittest

import stalls

SCRIPT = """\
marinerd  100 [000]    10.000001000:
\tffff80 tcp_sendmsg+0x10 ([kernel.kallsyms])
\t    40 mariner::log::Writer::append(int)+0x1 (/usr/bin/marinerd)
\t    30 mariner::node::EventLoop::turn()+0x1 (/usr/bin/marinerd)

swapper     0 [001]    10.000001500:
\tffff81 default_idle+0x10 ([kernel.kallsyms])

log writer  101 [001]    10.000003000:
\tffff82 io_uring_enter+0x10 ([kernel.kallsyms])
\t    20 syscall+0x1 (/usr/lib/libc.so)

"""


class StallsTest(unittest.TestCase):
    def setUp(self):
        self.found = stalls.samples(SCRIPT)

    def test_samples_have_a_time_a_processor_and_a_label(self):
        self.assertEqual([(each.time_ns, each.cpu, each.label) for each in self.found], [
            (10_000_001_000, 0, "marinerd: log::Writer::append"),
            (10_000_001_500, 1, "idle"),
            (10_000_003_000, 1, "log writer: io_uring_enter_[k]"),
        ])

    def test_commands_that_overlap_are_one_stretch(self):
        self.assertEqual(stalls.merged([[5, 9], [1, 3], [8, 12], [3, 4], [20, 21]]), [(1, 4), (5, 12), (20, 21)])
        self.assertEqual(stalls.merged([[1, 10], [2, 3]]), [(1, 10)])

    def test_a_stretch_has_what_lies_within(self):
        self.assertEqual(len(stalls.within(self.found, (10_000_001_000, 10_000_001_500))), 2)
        self.assertEqual(stalls.within(self.found, (10_000_001_501, 10_000_002_999)), [])

    def test_what_is_done_more_while_they_are_slow_comes_first(self):
        found = stalls.shares(self.found, [(10_000_002_000, 10_000_004_000)])
        self.assertEqual(found[0], stalls.Share("log writer: io_uring_enter_[k]", 1.0, 1 / 3))
        self.assertEqual({each.slow for each in found[1:]}, {0.0})

    def test_without_samples_there_is_nothing(self):
        self.assertEqual(stalls.shares([], [(1, 2)]), [])


if __name__ == "__main__":
    unittest.main()
