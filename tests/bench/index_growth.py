"""What the arithmetic of committing in place predicts for the metadata that a random write costs.

Every version is one record of r bytes in LT, at a random place, and one of t bytes in TL, at its end.
TL's leaves are written once each, full: t bytes for a version, and no more.

LT has B leaves of b bytes. A sweep commits every leaf that has something pending, and with it the
clean ones in between: in a run at least half are dirty, so that all of the leaves are rewritten as
soon as half of them are dirty. So a sweep writes

    about B b bytes,      or B b p where p, the part that is dirty, is below one half,

besides c bytes for each leaf in the checkpoint behind it. If n versions come during a sweep, each
leaf gets n / B of them, on average: call that x. The leaves being random, what one gets is Poisson,
and p = 1 - exp(-x). A version then costs

    W = b / x + c / x + t           (b p / x where p < 1/2)

How large x becomes is a question of memory: Q bytes of queues, in which a version takes r bytes, in
chunks of h bytes that hold k = (h - 8) // r of them. Without chunks, B x r bytes come in a sweep.

- If a sweep begins when the queues are full and takes no time, all of it is there: B x r = Q. That is
  the least x.
- If inserts go on as fast as commits make room, the sweep never ends. A leaf that was committed a part
  a of a sweep ago has a x pending, a being anything between 0 and 1: the mean is half. B x r / 2 = Q.
  That is the most.

With chunks, a leaf with y pending (Poisson, mean m) takes h ceil(y / k): C(m) = h E[ceil(y / k)]. So
x follows from B C(x) = Q for the least, and from B times the mean of C(a x) over a = Q for the most.
Queues are allowed memory - cache - runs, and a sweep begins at 80 % of that.

So W grows as B / Q does, that is with the ratio of index to memory; and chunks, h bytes for each leaf
that has anything, make it grow faster as soon as B h is not much less than Q.
"""

import dataclasses
import math

COMMIT_AT = 0.8
CACHE_PART = 8                # of the memory
RUN_BYTES = 2 * 32 * 16384 * 4  # 32 blocks, read and written, four runs in flight
CHUNK = 256
CHUNK_HEADER = 8
BLOCK = 16384
LT_RECORD = 32
TL_RECORD = 48
TL_LEAF_OVERHEAD = BLOCK / ((BLOCK - 64 - 32) // TL_RECORD * TL_RECORD)
CHECKPOINT_ENTRY = 56         # of a block: its own entry and its leaf's in the tree


@dataclasses.dataclass(frozen=True)
class Prediction:
    least: float     # metadata bytes for a version
    most: float
    plain: float     # the least without chunks
    x_least: float   # versions that a leaf gets between two commits
    x_most: float


def chunk_bytes(mean: float, chunk: int = CHUNK, record: int = LT_RECORD) -> float:
    """C(m): of a queue that has a Poisson number of modifications."""
    each = (chunk - CHUNK_HEADER) // record
    # E[ceil(y / k)] = sum over j >= 0 of P(y > j k); far above the mean the normal curve will do.
    if mean > 300:
        return chunk * (mean / each + 0.5)
    expected = 0.0
    term = math.exp(-mean)     # P(y = 0)
    below = 0.0                # P(y <= i)
    i = 0
    while True:
        below += term
        if i % each == 0:      # i = j k
            expected += max(1 - below, 0)
            if i > mean and 1 - below < 1e-9:
                return chunk * expected
        i += 1
        term *= mean / i


def versions_for(queue_bytes_each: float, of) -> float:
    """The x at which of(x), which grows, is so many bytes for each leaf."""
    low, high = 0.0, 1.0
    while of(high) < queue_bytes_each:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if of(middle) < queue_bytes_each else (low, middle)
    return low


def swept(x: float) -> float:
    """The mean of C(a x) for a between 0 and 1."""
    steps = 32
    return sum(chunk_bytes((i + 0.5) / steps * x) for i in range(steps)) / steps


def cost(x: float) -> float:
    dirty = 1 - math.exp(-x)
    written = (BLOCK if dirty >= 0.5 else BLOCK * dirty) / x
    return written + CHECKPOINT_ENTRY / x + TL_RECORD * TL_LEAF_OVERHEAD


def predict(memory_bytes: int, lt_leaves: float) -> Prediction:
    queues = memory_bytes - memory_bytes / CACHE_PART - RUN_BYTES
    x_least = versions_for(COMMIT_AT * queues / lt_leaves, chunk_bytes)
    x_most = versions_for(queues / lt_leaves, swept)
    plain = COMMIT_AT * queues / (lt_leaves * LT_RECORD)
    return Prediction(cost(x_most), cost(x_least), cost(plain), x_least, x_most)


def lt_leaves_of(disk_bytes: float, versions: float) -> float:
    """Of an index that keeps so many versions, all of TL's leaves full."""
    return (disk_bytes - versions * TL_RECORD * TL_LEAF_OVERHEAD) / BLOCK
