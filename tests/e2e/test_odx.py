"""Offloaded data transfer (POPULATE TOKEN, WRITE USING TOKEN) with libiscsi as the initiator."""

import random
import struct
import subprocess
import time

import pytest

import mariner
from libiscsi_client import GOOD, Session

BLOCK = 512
MIB = 1 << 20
DONE, PARTLY, IN_BACKGROUND, TERMINATED = 0x01, 0x03, 0x12, 0x60
OWNER = "iqn.2026-11.org.mariner:owner"
CONFIG = f"""
[[volume]]
name = "private"
size = "16M"
acl = ["{OWNER}"]
"""


class Host(Session):
    """What Windows does to copy a file."""

    def read(self, lba: int, blocks: int) -> bytes:
        return self.command(struct.pack(">BBIBHB", 0x28, 0, lba, 0, blocks, 0), expected=blocks * BLOCK).good()

    def write(self, lba: int, data: bytes):
        for at in range(0, len(data), MIB):
            part = data[at:at + MIB]
            self.command(struct.pack(">BBIBHB", 0x2A, 0, lba + at // BLOCK, 0, len(part) // BLOCK, 0), part).good()

    def populate(self, ranges, list_id: int = 1, seconds: int = 0, immediate: bool = False):
        table = b"".join(struct.pack(">QI4x", lba, blocks) for lba, blocks in ranges)
        data = struct.pack(">HBxIIxxH", 14 + len(table), int(immediate), seconds, 0, len(table)) + table
        return self.command(struct.pack(">BB4xII2x", 0x83, 0x10, list_id, len(data)), data)

    def write_using(self, token: bytes, ranges, list_id: int = 2, offset: int = 0, delete: bool = False,
                    immediate: bool = False):
        table = b"".join(struct.pack(">QI4x", lba, blocks) for lba, blocks in ranges)
        data = struct.pack(">HB5xQ512s6xH", 534 + len(table), delete << 1 | int(immediate), offset, token,
                           len(table)) + table
        return self.command(struct.pack(">BB4xII2x", 0x83, 0x11, list_id, len(data)), data)

    def information(self, list_id: int) -> tuple[int, int, bytes]:
        """The state of a copy, its transfer count and its token."""
        data = self.command(struct.pack(">BBI4xI2x", 0x84, 0x07, list_id, 1024), expected=1024).good()
        tokens_at = 32 + data[13]
        length = struct.unpack_from(">I", data, tokens_at)[0]
        assert struct.unpack_from(">I", data)[0] == len(data) - 4
        return data[5], struct.unpack_from(">Q", data, 16)[0], data[tokens_at + 6:tokens_at + 4 + length]

    def token(self, ranges, **options) -> bytes:
        assert self.populate(ranges, **options).status == GOOD
        state, count, token = self.information(1)
        assert (state, count, len(token)) == (DONE, sum(blocks for _, blocks in ranges), 512)
        return token

    def vpd(self, page: int) -> bytes:
        return self.command(struct.pack(">BBBHB", 0x12, 1, page, 1024, 0), expected=1024).good()


def blocks_of(data: bytes) -> int:
    return len(data) // BLOCK


def some_bytes(length: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(length)


@pytest.fixture
def daemon(tmp_path):
    with mariner.Daemon(tmp_path / "d", more_config=CONFIG) as running:
        yield running.start()


def test_a_file_is_copied_as_it_was_when_the_token_was_made(daemon):
    here = Host(daemon, daemon.create("a", "64M")["iqn"])
    there = Host(daemon, daemon.create("b", "64M")["iqn"])
    data = some_bytes(5 * MIB)
    here.write(100, data[:3 * MIB])
    here.write(50_000, data[3 * MIB:])
    ranges = [(100, 4096), (100 + 4096, 2048), (50_000, 4096)]
    token = here.token(ranges)
    here.write(100, bytes(3 * MIB))
    here.write(50_000, some_bytes(2 * MIB, 2))
    there.write(0, some_bytes(6 * MIB, 3))
    before = there.read(0, 100)
    assert there.write_using(token, [(1, 4096), (4097, 4096), (70_001, 2048)]).status == GOOD
    assert there.information(2)[:2] == (DONE, blocks_of(data))
    copied = b"".join(there.read(lba, 2048) for lba in (1, 2049, 4097, 6145, 70_001))
    assert copied == data
    # And in the other direction, within one unit, from an offset on; the token has an end.
    assert here.write_using(token, [(0, 4096), (4096, 4096)], offset=4096).status == GOOD
    assert here.information(2)[:2] == (PARTLY, blocks_of(data) - 4096)
    assert here.read(0, 2048) == data[2 * MIB:3 * MIB]
    # The destination remembers what it held before.
    past = Host(daemon, daemon.expose("b", "#6")["iqn"])
    assert past.read(0, 100) == before


def test_from_a_view_and_into_a_writable_one(daemon):
    here = Host(daemon, daemon.create("a", "16M")["iqn"])
    data = some_bytes(64 * BLOCK)
    here.write(8, data)
    here.write(8, bytes(len(data)))
    past = Host(daemon, daemon.expose("a", "#1")["iqn"])
    token = past.token([(8, 64)])
    assert here.write_using(token, [(1000, 64)]).status == GOOD
    assert here.read(1000, 64) == data
    draft = Host(daemon, daemon.expose("a", "#1", "--writable")["iqn"])
    assert draft.write_using(token, [(2000, 64)]).status == GOOD
    assert draft.read(2000, 64) == data
    of_draft = draft.token([(2000, 64)])
    assert here.write_using(of_draft, [(3000, 64)]).status == GOOD
    assert here.read(3000, 64) == data
    assert past.write_using(token, [(0, 1)]).sense == "7/27/00"


def test_what_is_not_stored_stays_unmapped_and_zeros_are_trimmed(daemon):
    here = Host(daemon, daemon.create("a", "64M")["iqn"])
    there = Host(daemon, daemon.create("b", "64M")["iqn"])
    there.write(0, some_bytes(4 * MIB))

    def mapped(lba: int) -> bool:
        status = there.command(struct.pack(">BBQI2x", 0x9E, 0x12, lba, 24), expected=24).good()
        return status[20] == 0

    assert mapped(0) and mapped(4096)
    token = here.token([(0, 4096)])
    assert there.write_using(token, [(0, 4096)]).status == GOOD
    assert not mapped(0) and mapped(4096)
    zero = struct.pack(">IHH504x", 0xFFFF0001, 0, 0x1F8)
    assert there.write_using(zero, [(4096, 4096)]).status == GOOD
    assert there.information(2)[:2] == (DONE, 4096)
    assert not mapped(4096)
    assert there.read(4096, 100) == bytes(100 * BLOCK)


def test_the_token_says_what_became_of_it(daemon):
    here = Host(daemon, daemon.create("a", "16M")["iqn"])
    here.write(0, some_bytes(8 * BLOCK))
    token = here.token([(0, 8)])
    forged = token[:300] + bytes([token[300] ^ 1]) + token[301:]
    assert here.write_using(forged, [(100, 8)]).sense == "5/23/04"
    assert here.write_using(token, [(100, 8)], delete=True).status == GOOD
    assert here.write_using(token, [(100, 8)]).sense == "5/23/09"
    short = here.token([(0, 8)], seconds=1)
    time.sleep(2.2)
    assert here.write_using(short, [(100, 8)]).sense == "5/23/07"
    assert here.populate([(0, 8)], seconds=601).sense == "5/26/00"
    lost = here.token([(0, 8)])
    here.close()  # nobody is waited for
    daemon.stop()
    daemon.start()
    here = Host(daemon, here_again(daemon))
    assert here.write_using(lost, [(100, 8)]).sense == "5/23/04", "tokens do not survive a restart"


def here_again(daemon) -> str:
    return daemon.ask("volume", "show", "a")["iqn"]


def test_a_token_reaches_no_further_than_who_uses_it(daemon):
    private = daemon.ask("volume", "show", "private")["iqn"]
    a = daemon.create("a", "16M")["iqn"]
    owner = Host(daemon, private, initiator=OWNER)
    owner.write(0, some_bytes(8 * BLOCK))
    token = owner.token([(0, 8)])
    assert Host(daemon, a, initiator=OWNER).write_using(token, [(0, 8)]).status == GOOD
    stranger = Host(daemon, a, initiator="iqn.2026-11.org.mariner:stranger")
    assert stranger.write_using(token, [(100, 8)]).sense == "5/23/00"
    assert stranger.read(100, 8) == bytes(8 * BLOCK)


def test_in_the_background(daemon):
    here = Host(daemon, daemon.create("a", "256M")["iqn"])
    data = some_bytes(32 * MIB)
    here.write(0, data)
    ranges = [(lba, 4096) for lba in range(0, blocks_of(data), 4096)]
    assert here.populate(ranges, list_id=7, immediate=True).status == GOOD
    state, count, token = mariner.wait_until(lambda: here.information(7), 10, "the token")
    assert (state, count) == (DONE, blocks_of(data))
    target = [(lba + 262_144, blocks) for lba, blocks in ranges]
    assert here.write_using(token, target, list_id=8, immediate=True).status == GOOD

    def ended():
        now = here.information(8)
        return now if now[0] != IN_BACKGROUND else None

    assert mariner.wait_until(ended, 30, "the copy")[:2] == (DONE, blocks_of(data))
    assert here.read(262_144, 2048) == data[:MIB]
    assert here.read(262_144 + 63_488, 2048) == data[-MIB:]
    # Ended on the way: how far it came is known, and nothing is written any more.
    assert here.write_using(token, [(262_144 + i * 4096, 4096) for i in range(16)], list_id=9,
                            immediate=True).status == GOOD
    abort = here.command(struct.pack(">BBI10x", 0x83, 0x1C, 9))
    assert abort.status == GOOD or abort.sense == "5/24/00", "unless it was over already"
    assert here.information(9)[0] in (TERMINATED, DONE)


def test_a_full_log_cancels_tokens_before_it_gives_up_anything_else(tmp_path):
    with mariner.Daemon(tmp_path / "d", log={"max_size": "128M", "track_size": "8M"}, window="1s") as daemon:
        daemon.start()
        here = Host(daemon, daemon.create("a", "64M")["iqn"])
        data = some_bytes(MIB)
        here.write(0, data)
        token = here.token([(0, 2048)], seconds=600)
        for i in range(40):  # a good part of the log, and more than the window
            here.write(0, some_bytes(MIB, i))
        time.sleep(2.5)
        assert here.write_using(token, [(50_000, 2048)]).status == GOOD
        assert here.read(50_000, 2048) == data
        for i in range(200):
            here.write(0, some_bytes(MIB, i))
        assert here.write_using(token, [(50_000, 2048)]).sense == "5/23/08"


def test_sg3_utils_read_the_page(daemon, tmp_path):
    page = Host(daemon, daemon.create("a", "16M")["iqn"]).vpd(0x8F)
    (tmp_path / "page").write_text(" ".join(f"{byte:02x}" for byte in page))
    text = subprocess.run(["sg_vpd", "--page=0x8f", f"--inhex={tmp_path / 'page'}"], capture_output=True, text=True,
                          check=True).stdout
    for line in ("Maximum range descriptors: 256", "Maximum inactivity timeout: 600 seconds",
                 "Default inactivity timeout: 60 seconds", "Maximum token transfer size: 524288",
                 "Optimal transfer count: 131072", "Populate token", "Write using token",
                 "Receive ROD token information", "Remote tokens: 4", "point in time copy - default"):
        assert line in text, text
