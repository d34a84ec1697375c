"""A volume grows while initiators use it: what they are told, what they find, and that a kill does not undo it."""

import re
import signal
import struct
import subprocess

import pytest

import iscsi_pdu
import mariner
from libiscsi_client import Session

MEBIBYTE = 1 << 20
CAPACITY_CHANGED = "6/2A/09"
TEST_UNIT_READY = bytes(6)


@pytest.fixture
def daemon(tmp_path):
    with mariner.Daemon(tmp_path) as running:
        running.start()
        yield running


def capacity(daemon, iqn: str) -> int:
    """In bytes, as libiscsi's program tells."""
    run = subprocess.run(["iscsi-readcapacity16", daemon.url(iqn)], capture_output=True, text=True, timeout=30)
    assert run.returncode == 0, run.stderr
    return int(re.search(r"Total size:\s*(\d+)", run.stdout).group(1))


def block(session: Session, at_bytes: int) -> bytes:
    return session.command(struct.pack(">BBQLBB", 0x88, 0, at_bytes // 512, 8, 0, 0), expected=4096).good()


def write(session: Session, at_bytes: int, data: bytes):
    return session.command(struct.pack(">BBQLBB", 0x8A, 0, at_bytes // 512, len(data) // 512, 0, 0), data)


def test_sessions_are_told_and_find_zeros_behind_the_old_end(daemon):
    iqn = daemon.create("db1", "64M")["iqn"]
    assert capacity(daemon, iqn) == 64 * MEBIBYTE
    first, second = Session(daemon, iqn), Session(daemon, iqn, "iqn.2026-11.org.mariner:second")
    write(first, 0, b"a" * 4096).good()
    assert write(first, 64 * MEBIBYTE, b"b" * 4096).sense == "5/21/00", "behind the end"

    answer = daemon.cli("volume", "resize", "db1", "128M", "--dry-run")
    assert "would grow" in answer.out and capacity(daemon, iqn) == 64 * MEBIBYTE
    assert int(daemon.ask("volume", "resize", "db1", "128M")["size_bytes"]) == 128 * MEBIBYTE
    for session in (first, second):
        assert session.command(TEST_UNIT_READY).sense == CAPACITY_CHANGED
        session.command(TEST_UNIT_READY).good()
        assert block(session, 0) == b"a" * 4096
        assert block(session, 64 * MEBIBYTE) == bytes(4096)
    assert capacity(daemon, iqn) == 128 * MEBIBYTE
    write(second, 128 * MEBIBYTE - 4096, b"z" * 4096).good()

    assert "already" in daemon.cli("volume", "resize", "db1", "128M").out
    first.command(TEST_UNIT_READY).good()  # nobody is told of nothing
    for size in ("64M", "2P", "0"):
        refused = daemon.cli("volume", "resize", "db1", size, check=False)
        assert refused.code != 0 and refused.err
    assert "cannot shrink" in daemon.cli("volume", "resize", "db1", "64M", check=False).err
    first.close()
    second.close()

    daemon.kill()
    daemon.start()
    assert capacity(daemon, iqn) == 128 * MEBIBYTE
    again = Session(daemon, iqn)
    assert block(again, 128 * MEBIBYTE - 4096) == b"z" * 4096
    assert block(again, 64 * MEBIBYTE) == bytes(4096)
    again.close()


def test_what_was_received_before_the_growth_is_refused_after_it(daemon):
    """A WRITE behind the end brings no data, as it came; its turn is when there is such a place, and it gets none."""
    iqn = daemon.create("db1", "64M")["iqn"]
    # Of two connections commands may overtake others.
    connection = iscsi_pdu.log_in((daemon.address, daemon.port), iqn, MaxConnections="2")
    sn = 1
    while iscsi_pdu.command(connection, TEST_UNIT_READY, sn=sn)[0] != 0:
        sn += 1
        assert sn < 10

    def send(number: int, cdb: bytes, data: bytes = b""):
        flags = 0xA1 if data else 0x81
        rest = struct.pack(">III", len(data), sn + number, 0) + cdb.ljust(16, b"\0")
        connection.sendall(iscsi_pdu.header(iscsi_pdu.SCSI_COMMAND, flags=flags, length=len(data), tag=100 + number,
                                            rest=rest) + data)

    def answer() -> tuple[int, int, bytes]:
        """Task tag, status, and sense key with code and qualifier."""
        bhs, sense = iscsi_pdu.receive_pdu(connection)
        assert bhs[0] == 0x21, bhs.hex()
        return int.from_bytes(bhs[16:20], "big"), bhs[3], bytes([sense[4] & 15, *sense[14:16]]) if sense else b""

    write_behind = struct.pack(">BBQLBB", 0x8A, 0, 64 * MEBIBYTE // 512, 8, 0, 0)
    send(2, write_behind, b"x" * 4096)  # waits for the command before it
    daemon.ask("volume", "resize", "db1", "128M")
    send(1, TEST_UNIT_READY)
    assert answer() == (101, 2, b"\x06\x2a\x09")
    assert answer() == (102, 2, b"\x05\x21\x00")
    session = Session(daemon, iqn)
    assert block(session, 64 * MEBIBYTE) == bytes(4096)
    session.close()
    send(3, write_behind, b"x" * 4096)
    assert answer() == (103, 0, b"")
    connection.close()


def test_views_keep_their_size_and_a_rollback_leaves_it(daemon):
    iqn = daemon.create("db1", "64M")["iqn"]
    session = Session(daemon, iqn)
    write(session, 0, b"a" * 4096).good()
    before = daemon.expose("db1", "#1", "--name", "before")
    daemon.ask("volume", "resize", "db1", "96M")
    assert session.command(TEST_UNIT_READY).sense == CAPACITY_CHANGED
    write(session, 64 * MEBIBYTE, b"b" * 4096).good()
    after = daemon.expose("db1", "#1", "--name", "after")
    for _ in range(2):
        assert capacity(daemon, before["iqn"]) == 64 * MEBIBYTE
        assert capacity(daemon, after["iqn"]) == 96 * MEBIBYTE
        sizes = {view["name"]: int(view["size_bytes"]) for view in daemon.ask("view", "list")["views"]}
        assert sizes == {"before": 64 * MEBIBYTE, "after": 96 * MEBIBYTE}
        listed = daemon.cli("view", "list").out
        assert re.search(r"^before +db1 +64 MiB ", listed, re.M) and re.search(r"^after +db1 +96 MiB ", listed, re.M)
        view = Session(daemon, after["iqn"])
        assert block(view, 64 * MEBIBYTE) == bytes(4096)
        view.close()
        session.close()
        daemon.kill()
        daemon.start()
        session = Session(daemon, iqn)
        assert block(session, 64 * MEBIBYTE) == b"b" * 4096
    session.close()
    daemon.rollback("db1", "#1")
    session = Session(daemon, iqn)
    assert capacity(daemon, iqn) == 96 * MEBIBYTE
    assert block(session, 64 * MEBIBYTE) == bytes(4096)
    assert block(session, 0) == b"a" * 4096
    session.close()


def test_a_declared_volume_is_grown_in_the_file(daemon):
    declared = '[[volume]]\nname = "db1"\nsize = "{}"\n'
    daemon.stop()
    daemon.more_config = declared.format("64M")
    daemon.start()
    iqn = daemon.ask("volume", "show", "db1")["iqn"]
    refused = daemon.cli("volume", "resize", "db1", "128M", check=False)
    assert refused.code != 0 and str(daemon.config_file) in refused.err
    session = Session(daemon, iqn)
    daemon.more_config = declared.format("128M")
    daemon.write_config()
    daemon.process.send_signal(signal.SIGHUP)
    mariner.wait_until(lambda: session.command(TEST_UNIT_READY).sense == CAPACITY_CHANGED, 20, "the initiator is told")
    assert capacity(daemon, iqn) == 128 * MEBIBYTE

    daemon.more_config = declared.format("64M")
    daemon.write_config()
    daemon.process.send_signal(signal.SIGHUP)
    mariner.wait_until(lambda: "cannot shrink to 67108864" in daemon.tail(), 20, "the log says why not")
    assert capacity(daemon, iqn) == 128 * MEBIBYTE
    session.command(TEST_UNIT_READY).good()
    session.close()
    refused = daemon.cli("volume", "delete", "db1", "--yes", check=False)
    assert refused.code != 0 and f"declared in {daemon.config_file}, and would come back empty" in refused.err
    said = daemon.times_said("configuration read again")
    daemon.more_config = ""
    daemon.write_config()
    daemon.process.send_signal(signal.SIGHUP)
    mariner.wait_until(lambda: daemon.times_said("configuration read again") > said, 20, "it is declared no more")
    daemon.cli("volume", "delete", "db1", "--yes")
