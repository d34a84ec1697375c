"""Portals: several groups, their target ports in SCSI, IPv6."""

import json
import os
import pathlib
import socket
import struct
import subprocess
import time

import pytest

import iscsi_pdu
import mariner

GOOD, CONFLICT = 0x00, 0x18


def portal_groups(*groups: tuple[int, list[str]]) -> str:
    return "".join(f"[[server.portal_group]]\ntag = {tag}\nportals = {json.dumps(portals)}\n"
                   for tag, portals in groups)


class Host:
    """A session of one initiator port through one portal."""

    def __init__(self, address, target, isid=b"\x80\0\0\0\0\x01"):
        self.connection = iscsi_pdu.log_in(address, target, initiator="iqn.2026-11.org.mariner:host", isid=isid)
        self.sn = 0
        while self.command(bytes(6))[0] != GOOD:  # unit attentions
            assert self.sn < 10

    def command(self, cdb, data=b"", expected=0):
        self.sn += 1
        return iscsi_pdu.command(self.connection, cdb, data, sn=self.sn, expected=expected)

    def page(self, page: int) -> bytes:
        status, data = self.command(struct.pack(">BBBHB", 0x12, 1, page, 1024, 0), expected=1024)
        assert status == GOOD
        return data

    def reserve_out(self, action, *, key=0, action_key=0, kind=0, flags=0) -> int:
        data = struct.pack(">QQIB3x", key, action_key, 0, flags)
        return self.command(struct.pack(">BBBHIB", 0x5F, action, kind, 0, len(data), 0), data)[0]

    def write(self) -> int:
        return self.command(struct.pack(">BBIBHB", 0x2A, 0, 0, 0, 1, 0), bytes(512))[0]


@pytest.fixture
def two_groups(tmp_path):
    daemon = mariner.Daemon(tmp_path)
    other, = mariner.free_ports(1)
    daemon.more_config = portal_groups((2, [f"127.0.0.1:{other}"]))
    with daemon as running:
        running.start()
        yield running, ("127.0.0.1", running.port), ("127.0.0.1", other)


def test_every_group_is_told_and_each_is_a_target_port(two_groups):
    daemon, first, second = two_groups
    target = daemon.create("db1", "16M")["iqn"]
    for address in (first, second):
        told = iscsi_pdu.send_targets(iscsi_pdu.log_in_discovery(address))
        assert told[0] == ("TargetName", target)
        assert sorted(told[1:]) == sorted([("TargetAddress", f"127.0.0.1:{first[1]},1"),
                                           ("TargetAddress", f"127.0.0.1:{second[1]},2")])
    assert iscsi_pdu.login_answer(first, target)[1]["TargetPortalGroupTag"] == "1"
    assert iscsi_pdu.login_answer(second, target)[1]["TargetPortalGroupTag"] == "2"
    # libiscsi reads the same.
    listed = subprocess.run(["iscsi-ls", f"iscsi://127.0.0.1:{second[1]}"], capture_output=True, text=True,
                            check=True, timeout=30).stdout
    assert f"127.0.0.1:{first[1]},1" in listed and f"127.0.0.1:{second[1]},2" in listed


def test_scsi_names_the_ports(two_groups):
    daemon, first, second = two_groups
    target = daemon.create("db1", "16M")["iqn"]
    for tag, address in ((1, first), (2, second)):
        host = Host(address, target)
        page = host.page(0x83)
        assert f"{target},t,0x{tag:04x}".encode() in page
        assert bytes([0x51, 0x94, 0, 4, 0, 0, 0, tag]) in page, "relative target port"
        assert bytes([0x51, 0x95, 0, 4, 0, 0, 0, 1]) in page, "target port group"
        ports = host.page(0x88)
        assert all(f"{target},t,0x{port:04x}".encode() in ports for port in (1, 2))
        status, groups = host.command(struct.pack(">BB4xIBB", 0xA3, 0x0A, 1024, 0, 0), expected=1024)
        assert status == GOOD
        assert groups == bytes.fromhex("00000010 0001000100000002 00000001 00000002")
        status, standard = host.command(struct.pack(">BBBHB", 0x12, 0, 0, 96, 0), expected=96)
        assert standard[5] & 0x30 == 0x10, "TPGS: implicit"


def test_the_same_isid_through_another_group_is_another_session(two_groups):
    daemon, first, second = two_groups
    target = daemon.create("db1", "16M")["iqn"]
    one, two = Host(first, target), Host(second, target)
    assert one.command(bytes(6))[0] == GOOD and two.command(bytes(6))[0] == GOOD
    assert len(daemon.ask("session", "list")["sessions"]) == 2
    again = Host(second, target)
    assert again.command(bytes(6))[0] == GOOD
    assert one.command(bytes(6))[0] == GOOD, "the session of the first group lives"
    assert len(daemon.ask("session", "list")["sessions"]) == 2
    with pytest.raises(ConnectionError):
        two.command(bytes(6))


def test_registrations_belong_to_the_port(two_groups):
    daemon, first, second = two_groups
    target = daemon.create("db1", "16M")["iqn"]
    one, two = Host(first, target), Host(second, target)
    assert one.reserve_out(0, action_key=0xA) == GOOD
    assert one.reserve_out(1, key=0xA, kind=5) == GOOD, "write exclusive, registrants only"
    assert two.write() == CONFLICT, "this port is not registered"
    assert two.reserve_out(6, action_key=0xB) == GOOD
    assert two.write() == GOOD
    # ALL_TG_PT registers through both.
    assert one.reserve_out(3, key=0xA) == GOOD, "cleared"
    assert two.command(bytes(6))[0] != GOOD, "reservations preempted"
    assert one.reserve_out(0, action_key=0xC, flags=0x04) == GOOD
    assert one.reserve_out(1, key=0xC, kind=5) == GOOD
    assert two.write() == GOOD
    status, full = one.command(struct.pack(">BB5xHx", 0x5E, 3, 1024), expected=1024)
    assert status == GOOD
    ports, at = [], 8
    while at < len(full):
        ports.append(struct.unpack(">H", full[at + 18:at + 20])[0])
        at += 24 + struct.unpack(">I", full[at + 20:at + 24])[0]
    assert ports == [1, 2]


def test_groups_need_a_restart(two_groups):
    daemon, _, second = two_groups
    daemon.more_config = ""
    daemon.write_config()
    daemon.process.send_signal(1)  # SIGHUP
    mariner.wait_until(lambda: any("take effect at the next start" in line for line in daemon.log_lines()), 10,
                       "the reload is logged")
    socket.create_connection(second, timeout=5).close()
    check = daemon.cli("config", "check", str(daemon.config_file))
    assert check.code == 0


def test_busy_polling_begins_and_ends_at_a_reload(tmp_path):
    with mariner.Daemon(tmp_path) as daemon:
        daemon.start()
        host = Host((daemon.address, daemon.port), daemon.create("db1", "16M")["iqn"])
        for busy_poll in ("1ms", "0s", "auto"):
            daemon.configure_server(busy_poll=busy_poll)
            daemon.configure_log(polling="off" if busy_poll == "0s" else "auto")
            for _ in range(200):
                assert host.command(bytes(6))[0] == GOOD
        assert daemon.times_said("take effect at the next start") == 0
        daemon.configure_server(busy_poll="1ms")
        # A server that idles looks for nothing.
        mariner.wait_until(lambda: cpu_seconds(daemon, during_s=0.5) < 0.1, 10, "the daemon sleeps")


def test_sockets_are_lent_to_threads_while_something_comes(tmp_path):
    with mariner.Daemon(tmp_path) as daemon:
        daemon.configure_server(socket_threads="2", socket_threads_load="0%")
        daemon.start()
        target = daemon.create("db1", "16M")["iqn"]
        hosts = [Host((daemon.address, daemon.port), target, isid=bytes([0x80, 0, 0, 0, 0, number])) for number in range(1, 5)]
        for number, host in enumerate(hosts):
            data = os.urandom(64 << 10)  # as much as one PDU takes along; another host reads it
            assert host.command(struct.pack(">BBIBHB", 0x2A, 0, number * 128, 0, 128, 0), data)[0] == GOOD
            assert hosts[number - 1].command(struct.pack(">BBIBHB", 0x28, 0, number * 128, 0, 128, 0), expected=64 << 10) == (GOOD, data)
        assert lent(daemon) == 4
        mariner.wait_until(lambda: lent(daemon) == 0, 10, "who is silent comes back")
        assert hosts[2].command(bytes(6))[0] == GOOD
        assert lent(daemon) == 1
        hosts[2].connection.close()
        mariner.wait_until(lambda: lent(daemon) == 0, 10, "who is gone is gone")


def lent(daemon: mariner.Daemon) -> int:
    """Connections whose sockets threads have."""
    return next(int(line.split()[1]) for line in daemon.http("/metrics")[1].splitlines() if line.startswith("mariner_iscsi_lent_connections "))


def cpu_seconds(daemon: mariner.Daemon, during_s: float) -> float:
    def used() -> int:
        fields = pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])  # of user and system, in ticks
    before = used()
    time.sleep(during_s)
    return (used() - before) / os.sysconf("SC_CLK_TCK")


def test_ipv6(tmp_path):
    daemon = mariner.Daemon(tmp_path)
    daemon.address = "[::1]"
    with daemon as running:
        running.start()
        target = running.create("db1", "16M")["iqn"]
        address = ("::1", running.port)
        assert iscsi_pdu.send_targets(iscsi_pdu.log_in_discovery(address)) == [
            ("TargetName", target), ("TargetAddress", f"[::1]:{running.port},1")]
        assert iscsi_pdu.command(iscsi_pdu.log_in(address, target), bytes(6), sn=1)[0] in (0, 2)
        url = running.url(target)
        assert subprocess.run(["iscsi-inq", url], capture_output=True, timeout=30).returncode == 0, url


def local_addresses() -> list[str]:
    """This machine's other IPv6 addresses, a link-local one with its zone."""
    found = []
    for line in pathlib.Path("/proc/net/if_inet6").read_text().splitlines():
        digits, _, _, scope, _, device = line.split()
        address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
        if scope == "20":
            found.append(f"{address}%{device}")
        elif scope == "00":
            found.append(address)
    return found


def test_wildcards_of_both_families_beside_each_other(tmp_path):
    daemon = mariner.Daemon(tmp_path)
    daemon.address = "0.0.0.0"
    daemon.more_config = portal_groups((2, [f"[::]:{daemon.port}"]))
    with daemon as running:
        running.start()
        target = running.create("db1", "16M")["iqn"]
        told = iscsi_pdu.send_targets(iscsi_pdu.log_in_discovery(("127.0.0.1", running.port)))
        assert told == [("TargetName", target), ("TargetAddress", f"127.0.0.1:{running.port},1")]
        for host in ["::1", *local_addresses()]:
            told = iscsi_pdu.send_targets(iscsi_pdu.log_in_discovery((host, running.port)))
            plain = host.split("%")[0]
            assert told == [("TargetName", target), ("TargetAddress", f"[{plain}]:{running.port},2")], \
                "in brackets, without a zone"
