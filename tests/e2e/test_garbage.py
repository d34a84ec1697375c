"""Garbage on the iSCSI port: others are served throughout, memory stays bounded, one log line for each."""

import random
import re
import resource
import socket
import struct
import time

import pytest

import hammer
import iscsi_pdu
import mariner

MEMORY_GROWTH_MAX = 96 << 20
IDLE_CONNECTIONS = 1000
CLOSE_TIMEOUT_S = 10


@pytest.fixture
def served(daemon, folder):
    """A daemon whose volume a well-behaved client uses all the time; yields (daemon, target name)."""
    volume = daemon.create("db1", "64M")
    campaign = hammer.Campaign(folder / "journals")
    url = daemon.url(volume["iqn"])
    campaign.run(url, "--writes", 3000)
    daemon.warm_rss = daemon.rss_bytes()
    load = campaign.start(url, "--seconds", 300, "--depth", 8)
    journal = folder / "journals" / "round-000002.journal"
    try:
        mariner.wait_until(lambda: journal.exists() and "\nA " in journal.read_text(), 10,
                           "the good client's first write")
        yield daemon, volume["iqn"]
        assert load.running(), "the good client lost its session"
        report = load.stop()
        assert report["acknowledged"] > 0 and report["end"] == "done", report
        growth = daemon.rss_bytes() - daemon.warm_rss
        print(f"memory grew by {growth / 2**20:.1f} MiB")
        assert campaign.verify(url)["faults"] == []
    finally:
        load.kill()


def connect(daemon) -> socket.socket:
    return socket.create_connection((daemon.address, daemon.port), timeout=CLOSE_TIMEOUT_S)


def expect_closed(connection: socket.socket) -> int:
    """Waits until the daemon ends the connection; returns our port."""
    port = connection.getsockname()[1]
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    connection.close()
    return port


def expect_one_line_each(daemon, ports: list[int]):
    """Each of these peers, by address and port, is named in exactly one line of the log."""
    def counts():
        text = daemon.log_file.read_text(errors="replace")
        return {port: len(re.findall(rf"^.*{re.escape(daemon.address)}:{port}\b.*$", text, re.M))
                for port in ports}
    mariner.wait_until(lambda: all(n >= 1 for n in counts().values()), 10, f"log lines: {counts()}")
    assert set(counts().values()) == {1}, counts()


def keys(target: str, **more: str) -> dict[str, str]:
    return {"InitiatorName": "iqn.2026-11.org.mariner:bad", "TargetName": target,
            "SessionType": "Normal", **more}


def bad_first_bytes(target: str) -> dict[str, bytes]:
    """What a peer may say before it is logged in; each must end its connection."""
    good = iscsi_pdu.login(keys(target))
    text = b"InitiatorName"
    return {
        "an HTTP request": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(4096),
        "zeros": bytes(4096),
        "ones": b"\xff" * 4096,
        "a command before login": iscsi_pdu.header(iscsi_pdu.SCSI_COMMAND),
        "an unknown opcode": iscsi_pdu.header(0x3e),
        "the longest data segment": iscsi_pdu.header(0x43, length=0xFFFFFF) + bytes(1 << 20),
        "the longest AHS": iscsi_pdu.header(0x43, ahs_words=0xFF, length=0xFFFFFF) + bytes(1 << 16),
        "a key without value": iscsi_pdu.header(0x43, flags=0x87, length=len(text)) + iscsi_pdu.pad(text),
        "a target that does not exist": iscsi_pdu.login(keys("iqn.2026-11.org.mariner:nothing")),
        "no initiator name": iscsi_pdu.login({"TargetName": target, "SessionType": "Normal"}),
        "a stage that does not exist": good[:1] + b"\x8a" + good[2:],
        "a key of 10,000 characters": iscsi_pdu.login(keys(target, **{"X" * 10_000: "1"})),
        "8,000 keys": iscsi_pdu.login({f"X-k{i}": "1" for i in range(8000)}),
    }


def test_nonsense_before_login(served):
    daemon, target = served
    ports = []
    for what, data in bad_first_bytes(target).items():
        connection = connect(daemon)
        try:
            connection.sendall(data)
        except ConnectionError:
            pass  # closed while we were still talking
        try:
            ports.append(expect_closed(connection))
        except TimeoutError:
            pytest.fail(f"{what}: the connection is still open\n{daemon.tail()}")
    expect_one_line_each(daemon, ports)


def test_random_bytes(served, seed):
    daemon, _ = served
    rng = random.Random(seed)
    ports = []
    for _ in range(64):
        connection = connect(daemon)
        try:
            connection.sendall(rng.randbytes(rng.randrange(48, 100_000)))
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        ports.append(expect_closed(connection))
    expect_one_line_each(daemon, ports)


def test_truncated_pdus(served):
    """A peer that goes away in the middle, at every length of a login and of a command."""
    daemon, target = served
    login = iscsi_pdu.login(keys(target))
    for length in range(1, len(login), 7):
        with connect(daemon) as connection:
            connection.sendall(login[:length])
    command = iscsi_pdu.header(iscsi_pdu.SCSI_COMMAND, flags=0xA1, length=4096,
                               rest=struct.pack(">III", 4096, 2, 1) + bytes([0x2A]))
    for length in (1, 20, 47, 48, 49, 1000):
        with iscsi_pdu.log_in((daemon.address, daemon.port), target,
                              isid=b"\x80\x00\x00\x00\x01" + bytes([length % 256])) as connection:
            connection.sendall((command + bytes(4096))[:length])
    assert hammer.login(daemon.url(target), 5) < 5


def test_nonsense_after_login(served, seed):
    daemon, target = served
    rng = random.Random(seed)
    address = (daemon.address, daemon.port)
    bad = [
        iscsi_pdu.header(0x3e),                                                   # no such opcode
        iscsi_pdu.header(iscsi_pdu.SCSI_COMMAND, length=0xFFFFFF) + bytes(1 << 20),
        iscsi_pdu.header(iscsi_pdu.DATA_OUT, length=64, tag=77, rest=b"\xff" * 28) + bytes(64),
        iscsi_pdu.header(iscsi_pdu.LOGIN | iscsi_pdu.IMMEDIATE),                  # login again
        rng.randbytes(48) + b"\xff" * 4096,
    ]
    for number, data in enumerate(bad):
        connection = iscsi_pdu.log_in(address, target, isid=b"\x80\0\0\0\2" + bytes([number]))
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        expect_closed(connection)  # a reject may come first


def test_half_open_and_idle_connections(served):
    daemon, target = served
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    before = daemon.rss_bytes()
    login = iscsi_pdu.login(keys(target))
    half_open, idle = [], []
    try:
        for length in range(50):
            connection = connect(daemon)
            connection.sendall(login[:1 + length])
            half_open.append(connection)
        for _ in range(IDLE_CONNECTIONS):
            idle.append(connect(daemon))
        began = time.monotonic()
        hammer.login(daemon.url(target), 10)
        print(f"login beside {len(idle)} idle connections: {time.monotonic() - began:.2f} s")
        growth = daemon.rss_bytes() - before
        assert growth < MEMORY_GROWTH_MAX, f"{growth / 2**20:.0f} MiB for idle connections"
    finally:
        for connection in half_open + idle:
            connection.close()
    hammer.login(daemon.url(target), 10)


def test_a_flood_of_absurd_lengths_keeps_memory_bounded(served):
    """Peers that announce 16 MiB each and never send it."""
    daemon, _ = served
    before = daemon.rss_bytes()
    connections = []
    try:
        for _ in range(200):
            connection = connect(daemon)
            try:
                connection.sendall(iscsi_pdu.header(0x43, length=0xFFFFFF) + bytes(8192))
            except ConnectionError:
                pass
            connections.append(connection)
        growth = daemon.rss_bytes() - before
        assert growth < MEMORY_GROWTH_MAX, f"{growth / 2**20:.0f} MiB"
    finally:
        for connection in connections:
            connection.close()
