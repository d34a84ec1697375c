"""FORMAT UNIT with libiscsi as the initiator: the volume reads as zeros, and its history remembers what it held."""

import struct

import pytest

import mariner
from libiscsi_client import GOOD, Session

BLOCK = 512
FMTDATA = 0x10
IMMEDIATELY = bytes([0, 0x82, 0, 0])


class Host(Session):
    def read(self, lba: int, blocks: int = 8) -> bytes:
        return self.command(struct.pack(">BBIBHB", 0x28, 0, lba, 0, blocks, 0), expected=blocks * BLOCK).good()

    def write(self, lba: int, data: bytes):
        self.command(struct.pack(">BBIBHB", 0x2A, 0, lba, 0, len(data) // BLOCK, 0), data).good()

    def format(self, data: bytes = b""):
        return self.command(struct.pack(">BB4x", 0x04, FMTDATA if data else 0), data)

    def ready(self) -> bool:
        return self.command(bytes(6)).status == GOOD

    def mapped(self) -> bool:
        answer = self.command(struct.pack(">BBQIxx", 0x9E, 0x12, 0, 24), expected=24).good()
        return answer[20] == 0


@pytest.fixture
def daemon(tmp_path):
    with mariner.Daemon(tmp_path / "d") as running:
        yield running.start()


def sequence(daemon) -> int:
    return int(daemon.ask("volume", "show", "a")["newest"]["sequence"])


@pytest.mark.parametrize("data", [b"", IMMEDIATELY], ids=["waits", "immed"])
def test_a_format_is_one_write_and_is_undone(daemon, data):
    target = daemon.create("a", "1T")["iqn"]
    host, other = Host(daemon, target), Host(daemon, target)
    for lba in (0, 2**31 - 8):
        host.write(lba, b"precious" * (BLOCK * 8 // 8))
    before = sequence(daemon)
    assert host.format(data).status == GOOD
    mariner.wait_until(host.ready, 30, "the end of it")
    for lba in (0, 2**31 - 8):
        assert other.read(lba) == bytes(8 * BLOCK)
    assert not host.mapped()
    assert sequence(daemon) == before + 1, "one record, however large"
    view = daemon.expose("a", f"#{before}")
    past = Host(daemon, view["iqn"])
    assert past.read(2**31 - 8)[:8] == b"precious"
    assert past.format().sense == "7/27/00", "a view is of the past"
    past.close()
    host.close()
    other.close()
    daemon.cli("view", "unexpose", view["name"])
    daemon.rollback("a", f"#{before}")
    host = Host(daemon, target)
    assert host.read(0)[:8] == b"precious"
    assert host.mapped()


def test_after_a_crash_it_is_whole_or_has_not_been(daemon):
    target = daemon.create("a", "1T")["iqn"]
    host = Host(daemon, target)
    for lba in (0, 2**31 - 8):
        host.write(lba, b"precious" * (BLOCK * 8 // 8))
    assert host.format(IMMEDIATELY).status == GOOD
    daemon.kill()
    daemon.start()
    host = Host(daemon, target, ready=False)
    assert host.command(bytes(6)).sense == "6/29/00", "who waits for its end hears that there was a restart"
    assert host.ready()
    first, last = (host.read(lba)[:8] for lba in (0, 2**31 - 8))
    assert first == last
    assert first in (bytes(8), b"precious")


def test_lists_that_ask_for_more_are_refused(daemon):
    host = Host(daemon, daemon.create("a", "16M")["iqn"])
    host.write(0, b"x" * BLOCK)
    assert host.format(bytes([0, 0x80, 0, 8]) + bytes(8)).sense == "5/26/00"
    assert host.format(bytes(3)).sense == "5/1A/00"
    assert host.command(struct.pack(">BB4x", 0x04, 0x40)).sense == "5/24/00"
    assert host.read(0, 1) == b"x" * BLOCK
