"""tgt as the conformance suite's rival: its disks, as well configured as tgt can be."""

import contextlib
import itertools
import pathlib
import threading

import servers  # first: it shows Python where the end-to-end drivers are
import digest_relay
from libiscsi_suite import (ADDRESSES, MUTUAL_SECRET, MUTUAL_USER, OF_REMOVABLE_MEDIA, SECRET, USER, Variant,
                            family_of)

DISK_BYTES = 128 << 20
LUN = 1
# Without it UNMAP, WRITE SAME with UNMAP and GET LBA STATUS are refused.
THIN = "thin_provisioning=1"
# As the tests of removable media have it with Mariner, too.
REMOVABLE = "removable=1"


class TgtDisks:
    """A tgtd that makes a target and a sparse file for each test; what MarinerDisks is for Mariner."""

    def __init__(self, folder: pathlib.Path, variant: Variant):
        self.variant = variant
        self._folder = folder
        self._tgtd = servers.Tgtd(folder, ADDRESSES[0], ADDRESSES[1:])
        self._relays: list[digest_relay.DigestRelay] = []
        self._tids = itertools.count(1)
        self._lock = threading.Lock()

    def __enter__(self):
        self._tgtd.__enter__()
        if self.variant.chap:
            for user, secret in ((USER, SECRET), (MUTUAL_USER, MUTUAL_SECRET)):
                self._tgtd.admin("--mode", "account", "--op", "new", "--user", user, "--password", secret)
        if self.variant.digests:
            self._relays = [digest_relay.DigestRelay(address, self._tgtd.port) for address in ADDRESSES]
        return self

    def __exit__(self, *_):
        for relay in self._relays:
            relay.close()
        self._tgtd.__exit__()

    @contextlib.contextmanager
    def disk(self, name: str):
        with self._lock:
            tid = next(self._tids)
        file = self._folder / f"{name}.img"
        with open(file, "wb") as image:
            image.truncate(DISK_BYTES)
        digests = {"HeaderDigest": "CRC32C", "DataDigest": "CRC32C"} if self.variant.digests else {}
        iqn = self._tgtd.new_target(tid, name.lower().replace("_", "-"), {**servers.Tgt.TUNING, **digests})
        account = ("--mode", "account", "--op", "bind", "--tid", tid, "--user")
        if self.variant.chap:
            self._tgtd.admin(*account, USER)
            self._tgtd.admin(*account, MUTUAL_USER, "--outgoing")
        unit = ("--mode", "logicalunit", "--tid", tid, "--lun", LUN)
        self._tgtd.admin(*unit, "--op", "new", "--backing-store", file, "--bstype", "rdwr",
                         "--blocksize", self.variant.block_bytes)
        self._tgtd.admin(*unit, "--op", "update", "--params", THIN)
        if family_of(name) in OF_REMOVABLE_MEDIA:
            self._tgtd.admin(*unit, "--op", "update", "--params", REMOVABLE)
        ports = [relay.port for relay in self._relays] or [self._tgtd.port] * len(ADDRESSES)
        yield [self.variant.url(address, port, iqn, LUN) for address, port in zip(ADDRESSES, ports)]
        self._tgtd.admin("--mode", "target", "--op", "delete", "--tid", tid, "--force", check=False)
        file.unlink()
