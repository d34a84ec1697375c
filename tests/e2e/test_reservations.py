"""Persistent reservations that are to survive do: a restart, a crash; the others do not."""

import struct

import pytest

import iscsi_pdu
import mariner

GOOD, CHECK_CONDITION, CONFLICT = 0x00, 0x02, 0x18
REGISTER, RESERVE = 0, 1
WRITE_EXCLUSIVE = 1
APTPL = 1


class Host:
    """An initiator with a name of its own."""

    def __init__(self, daemon, target: str, name: str):
        self.connection = iscsi_pdu.log_in((daemon.address, daemon.port), target,
                                           initiator=f"iqn.2026-11.org.mariner:{name}")
        self.sn = 0
        while self.command(bytes(6))[0] != GOOD:  # unit attentions
            assert self.sn < 10

    def command(self, cdb: bytes, data: bytes = b"", expected: int = 0) -> tuple[int, bytes]:
        self.sn += 1
        return iscsi_pdu.command(self.connection, cdb, data, sn=self.sn, expected=expected)

    def reserve_out(self, action: int, *, key: int = 0, action_key: int = 0, kind: int = 0, flags: int = 0) -> int:
        data = struct.pack(">QQIB3x", key, action_key, 0, flags)
        return self.command(struct.pack(">BBBHIB", 0x5F, action, kind, 0, len(data), 0), data)[0]

    def keys(self) -> list[int]:
        status, data = self.command(struct.pack(">BB5xHx", 0x5E, 0, 1024), expected=1024)
        assert status == GOOD
        return [key for key, in struct.iter_unpack(">Q", data[8:])]

    def write(self) -> int:
        return self.command(struct.pack(">BBIBHB", 0x2A, 0, 0, 0, 1, 0), bytes(512))[0]


@pytest.fixture
def daemon(tmp_path):
    with mariner.Daemon(tmp_path) as running:
        running.start()
        yield running


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_they_survive_a_restart_if_they_are_to(daemon, end):
    kept, lost = (daemon.create(name, "16M")["iqn"] for name in ("kept", "lost"))
    for target, flags in ((kept, APTPL), (lost, 0)):
        host = Host(daemon, target, "a")
        assert host.reserve_out(REGISTER, action_key=0xA, flags=flags) == GOOD
        assert host.reserve_out(RESERVE, key=0xA, kind=WRITE_EXCLUSIVE) == GOOD
        other = Host(daemon, target, "b")
        assert other.write() == CONFLICT
        if end == "stop":  # which would wait for them to leave
            host.connection.close()
            other.connection.close()
    getattr(daemon, end)()
    daemon.start()
    assert Host(daemon, kept, "b").write() == CONFLICT
    host = Host(daemon, kept, "a")
    assert host.keys() == [0xA]
    assert host.write() == GOOD, "registered by its name and ISID"
    assert Host(daemon, lost, "b").write() == GOOD
    assert Host(daemon, lost, "a").keys() == []


def test_they_go_with_their_volume(daemon):
    target = daemon.create("db1", "16M")["iqn"]
    host = Host(daemon, target, "a")
    assert host.reserve_out(REGISTER, action_key=0xA, flags=APTPL) == GOOD
    host.connection.close()
    daemon.ask("volume", "delete", "db1", "--force")
    target = daemon.create("db1", "16M")["iqn"]
    assert Host(daemon, target, "a").keys() == []
