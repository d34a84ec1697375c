"""SANITIZE of volumes that permit it, with libiscsi as the initiator: the past goes, and nothing brings it back."""

import pathlib
import struct

import pytest

import mariner
from libiscsi_client import GOOD, Session

BLOCK = 512
BLOCK_ERASE, OVERWRITE = 0x02, 0x01
IMMEDIATE = 0x80
CONFIG = """
[[volume]]
name = "configured"
size = "16M"
sanitize = true
"""


class Host(Session):
    def read(self, lba: int, blocks: int = 8) -> bytes:
        return self.command(struct.pack(">BBIBHB", 0x28, 0, lba, 0, blocks, 0), expected=blocks * BLOCK).good()

    def write(self, lba: int, data: bytes):
        self.command(struct.pack(">BBIBHB", 0x2A, 0, lba, 0, len(data) // BLOCK, 0), data).good()

    def sanitize(self, action: int, data: bytes = b""):
        return self.command(struct.pack(">BB5xHB", 0x48, action, len(data), 0), data)

    def ready(self) -> bool:
        return self.command(bytes(6)).status == GOOD

    def populate(self, lba: int, blocks: int) -> bytes:
        data = struct.pack(">HB11xHQI4x", 30, 0, 16, lba, blocks)
        self.command(struct.pack(">BB4xII2x", 0x83, 0x10, 1, len(data)), data).good()
        return self.command(struct.pack(">BBI4xI2x", 0x84, 0x07, 1, 1024), expected=1024).good()[-512:]

    def write_using(self, token: bytes, lba: int, blocks: int):
        data = struct.pack(">HB13x512s6xHQI4x", 550, 0, token, 16, lba, blocks)
        return self.command(struct.pack(">BB4xII2x", 0x83, 0x11, 2, len(data)), data)


@pytest.fixture
def daemon(tmp_path):
    with mariner.Daemon(tmp_path / "d", more_config=CONFIG) as running:
        yield running.start()


def test_without_the_permission_it_is_not_known(daemon):
    host = Host(daemon, daemon.create("a", "16M")["iqn"])
    host.write(0, b"x" * BLOCK)
    assert host.sanitize(BLOCK_ERASE).sense == "5/20/00"
    assert host.read(0, 1) == b"x" * BLOCK
    assert not daemon.ask("volume", "show", "a").get("sanitize", False)


def test_the_past_is_gone(daemon):
    daemon.create("a", "64M", "--sanitize")
    shown = daemon.ask("volume", "show", "a")
    assert shown["sanitize"]
    host = Host(daemon, shown["iqn"])
    secret = b"SECRET!!" * (BLOCK // 8)
    for lba in range(0, 800, 8):
        host.write(lba, secret * 8)
    token = host.populate(0, 8)
    daemon.ask("mark", "add", "a", "before")
    assert host.sanitize(BLOCK_ERASE).status == GOOD
    assert host.read(0) == bytes(8 * BLOCK)
    assert host.write_using(token, 100, 8).sense == "5/23/08", "a token does not bring it back"
    for moment in ("#1", "#50", "mark:before"):
        assert daemon.cli("view", "expose", f"a@{moment}", check=False).code != 0, moment
        assert daemon.cli("rollback", f"a@{moment}", "--force", check=False).code != 0, moment
    after = sequence(daemon)
    host.write(0, b"new" + bytes(BLOCK - 3))
    view = daemon.expose("a", f"#{after}")
    past = Host(daemon, view["iqn"])
    assert past.read(0) == bytes(8 * BLOCK), "the history begins with the erasure"
    past.close()
    daemon.cli("view", "unexpose", view["name"])
    host.close()
    daemon.stop()
    assert b"SECRET!!" not in pathlib.Path(shown["image_path"]).read_bytes()
    daemon.start()
    assert daemon.cli("view", "expose", "a@#1", check=False).code != 0, "nor does a restart"
    assert Host(daemon, shown["iqn"]).read(0)[:3] == b"new"


def sequence(daemon) -> int:
    return int(daemon.ask("volume", "show", "a")["newest"]["sequence"])


def test_a_pattern_is_written_in_the_background(daemon):
    host = Host(daemon, daemon.ask("volume", "show", "configured")["iqn"])
    host.write(0, b"x" * BLOCK)
    assert host.sanitize(OVERWRITE | IMMEDIATE, struct.pack(">BxH4s", 1, 4, b"\xDE\xAD\xBE\xEF")).status == GOOD
    mariner.wait_until(host.ready, 30, "the end of it")
    for lba in (0, 32_760):
        assert host.read(lba) == b"\xDE\xAD\xBE\xEF" * (BLOCK * 2)
    assert daemon.cli("view", "expose", "configured@#1", check=False).code != 0


def test_a_view_and_a_locked_mark_stand_in_its_way(daemon):
    host = Host(daemon, daemon.create("a", "16M", "--sanitize")["iqn"])
    host.write(0, b"x" * BLOCK)
    name = daemon.expose("a", "#1")["name"]
    assert host.sanitize(BLOCK_ERASE).sense == "5/2C/00"
    daemon.cli("view", "unexpose", name)
    daemon.ask("mark", "add", "a", "kept", "--lock", "1h")
    assert host.sanitize(BLOCK_ERASE).sense == "7/27/06"
    assert host.read(0, 1) == b"x" * BLOCK


def test_what_a_crash_interrupts_has_failed(daemon):
    target = daemon.create("a", "1G", "--sanitize")["iqn"]
    host = Host(daemon, target)
    # So much to overwrite that it is not over when the power goes.
    assert host.sanitize(OVERWRITE | IMMEDIATE, struct.pack(">BxHB", 1, 1, 0xAA)).status == GOOD
    daemon.kill()
    daemon.start()
    host = Host(daemon, target, ready=False)
    assert host.command(bytes(6)).sense == "6/29/00"
    assert host.command(bytes(6)).sense == "3/31/03"
    assert host.sanitize(0x1F).sense == "5/24/00", "restricted: only another one helps"
    assert host.sanitize(BLOCK_ERASE).status == GOOD
    assert host.ready()
