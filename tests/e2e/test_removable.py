"""Volumes with a removable medium, with libiscsi as the initiator: initiators miss what is ejected, nobody else does."""

import struct

import pytest

import mariner
from libiscsi_client import GOOD, Session

BLOCK = 512
EJECT, LOAD = 0x02, 0x03
NO_MEDIUM, MAY_HAVE_CHANGED, PREVENTED = "2/3A/02", "6/28/00", "5/53/02"
CONFIG = """
[[volume]]
name = "configured"
size = "16M"
removable = true
"""


class Host(Session):
    def read(self, lba: int):
        return self.command(struct.pack(">BBIBHB", 0x28, 0, lba, 0, 1, 0), expected=BLOCK)

    def write(self, lba: int, data: bytes):
        self.command(struct.pack(">BBIBHB", 0x2A, 0, lba, 0, len(data) // BLOCK, 0), data).good()

    def move(self, action: int):
        return self.command(bytes([0x1B, 0, 0, 0, action, 0]))

    def prevent(self, prevented: bool):
        self.command(bytes([0x1E, 0, 0, 0, prevented, 0])).good()

    def removable(self) -> bool:
        return bool(self.command(bytes([0x12, 0, 0, 0, 36, 0]), expected=36).good()[1] & 0x80)


@pytest.fixture
def daemon(tmp_path):
    with mariner.Daemon(tmp_path / "d", more_config=CONFIG) as running:
        yield running.start()


def other(daemon, target: str) -> Host:
    return Host(daemon, target, "iqn.2026-11.org.mariner:other")


def test_who_does_not_ask_for_it_gets_a_fixed_disk(daemon):
    host = Host(daemon, daemon.create("a", "16M")["iqn"])
    assert not host.removable()
    assert host.move(EJECT).sense == "5/24/00"
    assert not daemon.ask("volume", "show", "a").get("removable", False)


def test_one_ejects_it_for_all(daemon):
    target = daemon.ask("volume", "show", "configured")["iqn"]
    host, neighbour = Host(daemon, target), other(daemon, target)
    assert host.removable()
    host.write(0, b"x" * BLOCK)
    assert host.move(EJECT).status == GOOD
    assert host.read(0).sense == NO_MEDIUM
    assert neighbour.read(0).sense == NO_MEDIUM
    assert host.move(LOAD).status == GOOD
    assert neighbour.read(0).sense == MAY_HAVE_CHANGED
    assert neighbour.read(0).good() == host.read(0).good() == b"x" * BLOCK


def test_one_keeps_it_in_until_it_leaves(daemon):
    target = daemon.create("a", "16M", "--removable")["iqn"]
    host, neighbour = Host(daemon, target), other(daemon, target)
    neighbour.prevent(True)
    assert host.move(EJECT).sense == PREVENTED
    neighbour.close()
    mariner.wait_until(lambda: host.move(EJECT).status == GOOD, 10, "the nexus to end")
    assert host.read(0).sense == NO_MEDIUM


def test_administrators_do_not_miss_it(daemon):
    shown = daemon.create("a", "16M", "--removable")
    assert shown["removable"]
    host = Host(daemon, shown["iqn"])
    host.write(0, b"1" * BLOCK)
    first = mariner.sequence_of(daemon.ask("volume", "show", "a")["newest"])
    host.write(0, b"2" * BLOCK)
    assert host.move(EJECT).status == GOOD
    view = Host(daemon, daemon.expose("a", f"#{first}")["iqn"])
    assert view.read(0).good() == b"1" * BLOCK
    assert not view.removable()
    daemon.rollback("a", f"#{first}")
    assert host.read(0).sense in ("6/2A/01", "6/28/00"), "the host hears of the rollback"
    host.command(bytes(6))
    assert host.read(0).sense == NO_MEDIUM, "which brings nothing back in"
    assert host.move(LOAD).status == GOOD
    assert host.read(0).good() == b"1" * BLOCK


def test_a_restart_brings_it_back_in(daemon):
    target = daemon.create("a", "16M", "--removable")["iqn"]
    host = Host(daemon, target)
    host.write(0, b"x" * BLOCK)
    assert host.move(EJECT).status == GOOD
    daemon.kill()
    daemon.start()
    host = Host(daemon, target)
    assert host.removable()
    assert host.read(0).good() == b"x" * BLOCK
