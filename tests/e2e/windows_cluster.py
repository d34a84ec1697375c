"""A node of a Windows failover cluster, as cluster validation drives it.

The commands are those of [MS-CSVP] 3.2.4.16 to 3.2.4.23 and 3.4.4
(https://learn.microsoft.com/openspecs/windows_protocols/ms-csvp, pages f87a5a9f-..., c31db66c-..., 1f5d398f-...,
adf8b623-...): registering is REGISTER AND IGNORE EXISTING KEY, unregistering is the same with key 0, PREEMPT carries
the own key and the owner's, and the order is CLEAR, REGISTER, RESERVE. classpnp allows the types 1, 3, 5 and 6 and
parameter lists of 24 bytes (Windows-driver-samples, storage/class/classpnp/src/clntirp.c); msdsm registers each path
that arrives and sends REPORT TARGET PORT GROUPS of 4,356 bytes (storage/msdsm/src/intrface.c, utils.c). The key is
eight bytes, unique for a node, the lower four the same for all clusters (http://itinfras.blogspot.com/2010/03); their
value is not told there. Arbitration takes 7 s
(https://learn.microsoft.com/previous-versions/windows/desktop/mscs/storage-pools-arbitrate); here the owner's defence
is called while the challenger waits, so that it takes no time.
"""

import struct

from libiscsi import GOOD, Session
from windows_disk import Disk, write10

REGISTER, RESERVE, RELEASE, CLEAR, PREEMPT, PREEMPT_ABORT, REGISTER_IGNORE = range(7)
WRITE_EXCLUSIVE_REGISTRANTS_ONLY = 5
READ_KEYS, READ_RESERVATION, REPORT_CAPABILITIES = 0, 1, 2
CLUSTER = 0x4D534654
APTPL = 1


def key_of(node: int) -> int:
    return node << 32 | CLUSTER


class Node:
    """Its sessions are its paths to the disk. What is not said to go over a path goes over the first."""

    def __init__(self, number: int, paths: list[Session]):
        self.key = key_of(number)
        self.paths = [Disk(path) for path in paths]
        self.met: list[tuple[int, int]] = []  # the unit attentions of an arbitration
        for path in self.paths:
            path.attentions()

    def out(self, action: int, key: int | None = None, action_key: int = 0, flags: int = 0, path: int = 0) -> int:
        """PERSISTENT RESERVE OUT, with this node's key unless another is given; its status."""
        kind = WRITE_EXCLUSIVE_REGISTRANTS_ONLY if action in (RESERVE, RELEASE, PREEMPT, PREEMPT_ABORT) else 0
        data = struct.pack(">QQIB3x", self.key if key is None else key, action_key, 0, flags)
        cdb = struct.pack(">BBBHIB", 0x5F, action, kind, 0, len(data), 0)
        return self.paths[path].session.command(cdb, data).status

    def register(self, flags: int = 0, path: int = 0) -> int:
        return self.out(REGISTER_IGNORE, key=0, action_key=self.key, flags=flags, path=path)

    def unregister(self, path: int = 0) -> int:
        return self.out(REGISTER_IGNORE, key=0, action_key=0, path=path)

    def _in(self, action: int, path: int) -> bytes:
        # "SCSI-3 Persistent Reservation" fails where this does (https://github.com/quantum/esos/issues/62).
        return self.paths[path].ask(struct.pack(">BB5xHB", 0x5E, action, 1024, 0), 1024)

    def keys(self, path: int = 0) -> list[int]:
        data = self._in(READ_KEYS, path)
        assert int.from_bytes(data[4:8], "big") == len(data) - 8
        return sorted(key for key, in struct.iter_unpack(">Q", data[8:]))

    def generation(self) -> int:
        return int.from_bytes(self._in(READ_KEYS, 0)[:4], "big")

    def reservation(self, path: int = 0) -> tuple[int, int] | None:
        """Key and type; None: there is none."""
        data = self._in(READ_RESERVATION, path)
        if not data[8:]:
            return None
        assert len(data) == 24 and data[21] >> 4 == 0, "the scope is the logical unit"
        return int.from_bytes(data[8:16], "big"), data[21] & 0x0F

    def capabilities(self) -> bytes:
        return self._in(REPORT_CAPABILITIES, 0)

    def write(self, lba: int = 0, path: int = 0) -> int:
        disk = self.paths[path]
        _, block_bytes, _ = disk.capacity()
        return disk.session.command(write10(lba, 1), bytes(block_bytes)).status

    def arbitrate(self, wait) -> bool:
        """Registers, and takes the disk from an owner who does not remove that registration while this node waits.
        Whether this node owns the disk then."""
        assert self.register() == GOOD
        held = self.reservation()
        if held is None:
            return self.out(RESERVE) == GOOD
        wait()
        self.met = self.paths[0].attentions()
        if self.key not in self.keys():
            return False
        return self.out(PREEMPT, action_key=held[0]) == GOOD and self.reservation() == (self.key, held[1])

    def defend(self) -> int:
        """As the owner does every 3 s: whoever else has registered is preempted."""
        for other in self.keys():
            if other != self.key:
                assert self.out(PREEMPT, action_key=other) == GOOD
        return self.out(RESERVE)
