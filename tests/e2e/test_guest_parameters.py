"""Every way in which Linux may negotiate a session: each is logged in to, written and read through, and logged out of."""

import itertools

import pytest

pytestmark = pytest.mark.slow

BURSTS = (512, 4096, 65536, 262144)
# What the regression tests of open-iscsi vary, and among which values here.
PARAMETERS = {
    "node.session.iscsi.InitialR2T": ("No", "Yes"),
    "node.session.iscsi.ImmediateData": ("No", "Yes"),
    "node.session.iscsi.FirstBurstLength": BURSTS,
    "node.session.iscsi.MaxBurstLength": (*BURSTS, 1 << 20),
    "node.conn[0].iscsi.HeaderDigest": ("None", "CRC32C"),
    "node.conn[0].iscsi.DataDigest": ("None", "CRC32C"),
    "node.conn[0].iscsi.MaxRecvDataSegmentLength": BURSTS,
}


def pairs_of(row: tuple) -> set:
    return set(itertools.combinations(enumerate(row), 2))


def pairwise(values: list[tuple]) -> list[tuple]:
    """Rows in which every two values of two parameters meet at least once; greedy, always the same."""
    rows = list(itertools.product(*values))
    missing = set().union(*map(pairs_of, rows))
    chosen = []
    while missing:
        best = max(rows, key=lambda row: len(pairs_of(row) & missing))
        missing -= pairs_of(best)
        chosen.append(best)
    return chosen


def every_combination() -> list[tuple]:
    """Of all but the last parameter, which only says how what the initiator reads is cut up: it takes turns."""
    rows = itertools.product(*list(PARAMETERS.values())[:-1])
    return [(*row, BURSTS[number % len(BURSTS)]) for number, row in enumerate(rows)]


def some_combinations() -> list[tuple]:
    """Every two of the extremes."""
    return pairwise([(values[0], values[-1]) for values in PARAMETERS.values()])


def test_every_combination_carries_data(lab, long_run):
    _, iqn = lab.volume("16M")
    portal = lab.daemon.portal()
    rows = every_combination() if long_run else some_combinations()
    print(f"{len(rows)} combinations")
    for row in rows:
        settings = " ".join(f"'{name}' {value}" for name, value in zip(PARAMETERS, row))
        said = lab.guest.run(f"node {iqn} {portal} {settings} && round_trip {iqn} {portal}", timeout_s=60)
        r2t, immediate, first, longest, header, data, received = row
        # An initiator offers no first burst that is longer than a burst (RFC 7143, 13.14).
        expected = [r2t == "Yes", immediate == "Yes", min(first, longest, 262144), longest, received,
                    header == "CRC32C", data == "CRC32C"]
        assert [int(word) for word in said.split()] == list(map(int, expected)), settings
    assert lab.complaints() == ""
    assert lab.damage() == ""
