"""A volume on three nodes: two with images, one with the log, and etcd between them. Real daemons on loopback."""

import struct
import time

import pytest

import hammer
import mariner
from cluster import Cluster
from libiscsi_client import CONFLICT, GOOD, Session


# How long it takes until a silent coordinator is replaced; and longer than a busy machine stalls, for tests in which
# nobody is to be replaced.
LEASE, LONG_LEASE = "3s", "15s"


@pytest.fixture
def lease():
    return LEASE


@pytest.fixture
def cluster(folder, lease):
    with Cluster(folder, lease) as cluster:
        cluster.add_volume("db1")
        yield cluster.start()


def same_images(cluster: Cluster, number: int = 1) -> bool:
    return cluster.image("a", number).read_bytes() == cluster.image("b", number).read_bytes()


@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_a_volume_is_served_and_both_images_hold_it(cluster, folder):
    server = cluster.server_of("db1")
    campaign = hammer.Campaign(folder / "hammer")
    campaign.run(server.volume_url("db1"), "--seconds", 3)
    assert campaign.verify(server.volume_url("db1"))["faults"] == []
    cluster.wait_healed("db1")
    for name in "ab":
        assert cluster[name].stop() == 0
    assert same_images(cluster)


def killed_while_loaded(cluster: Cluster, folder, victim: str, rounds: int):
    """Kills the coordinator, or another node, under load; verifies at whoever serves then; lets the victim return."""
    campaign = hammer.Campaign(folder / "hammer")
    for _ in range(rounds):
        server = cluster.server_of("db1")
        others = {"coordinator": server.name, "mirror": "b" if server.name == "a" else "a", "logger": "c"}
        node = cluster[others[victim]]
        load = campaign.start(server.volume_url("db1"), "--depth", 32)
        yield campaign, server, node, load
        cluster.wait_healed("db1")


@pytest.mark.slow
def test_the_coordinator_is_killed(cluster, folder):
    for campaign, server, node, load in killed_while_loaded(cluster, folder, "coordinator", 3):
        settle(load, 2)
        node.kill()
        report = load.report()
        assert report["acknowledged"] > 0 or load.code == hammer.LOST, report
        successor = cluster.server_of("db1")
        assert successor is not server
        assert campaign.verify(successor.volume_url("db1"))["faults"] == []
        node.start()
    assert_same_in_the_end(cluster)


@pytest.mark.slow
@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_the_mirror_is_killed_and_nobody_notices(cluster, folder):
    for campaign, server, node, load in killed_while_loaded(cluster, folder, "mirror", 2):
        settle(load, 1)
        node.kill()
        settle(load, 2)
        assert replica_lag_s(server, node) >= 1
        node.start()
        settle(load, 1)
        load.stop()
        assert load.code == hammer.DONE
        mariner.wait_until(lambda: replica_lag_s(server, node) == 0, 60, "the mirror has everything")
        assert campaign.verify(server.volume_url("db1"))["faults"] == []
    assert_same_in_the_end(cluster)


@pytest.mark.slow
@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_the_logger_is_killed_and_writes_wait_for_it(cluster, folder):
    for campaign, server, node, load in killed_while_loaded(cluster, folder, "logger", 2):
        settle(load, 1)
        node.kill()
        settle(load, 1)
        node.start()
        settle(load, 2)
        load.stop()
        assert load.code == hammer.DONE
        assert campaign.verify(server.volume_url("db1"))["faults"] == []
    assert_same_in_the_end(cluster)


@pytest.mark.slow
def test_a_coordinator_that_stood_still_serves_nothing_when_it_wakes_up(cluster, folder):
    for campaign, server, node, load in killed_while_loaded(cluster, folder, "coordinator", 1):
        settle(load, 1)
        node.pause()
        successor = cluster[("b" if node.name == "a" else "a")]
        mariner.wait_until(lambda: successor.serves("db1"), 30, "the other one serves")
        second = hammer.Campaign(folder / "second")
        second.run(successor.volume_url("db1"), "--seconds", 1, "--region-offset", hammer.REGION_BYTES)
        node.resume()
        load.stop()
        assert campaign.verify(successor.volume_url("db1"))["faults"] == []
        mariner.wait_until(lambda: node.volume("db1").get("state") == "standby", 30, "the old one stands by")
    assert_same_in_the_end(cluster)


@pytest.mark.slow
@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_etcd_may_be_away_for_less_than_the_lease(cluster, folder):
    server = cluster.server_of("db1")
    campaign = hammer.Campaign(folder / "hammer")
    load = campaign.start(server.volume_url("db1"), "--depth", 32)
    settle(load, 1)
    cluster.etcd.kill()
    cluster.etcd.start()
    settle(load, 4)
    load.stop()
    assert load.code == hammer.DONE
    assert server.volume("db1")["epoch"] == "1", "nobody took over"
    assert campaign.verify(server.volume_url("db1"))["faults"] == []
    assert_same_in_the_end(cluster)


@pytest.mark.slow
def test_while_etcd_is_away_for_longer_nothing_is_served(cluster, folder):
    server = cluster.server_of("db1")
    campaign = hammer.Campaign(folder / "hammer")
    campaign.run(server.volume_url("db1"), "--seconds", 1)
    cluster.etcd.kill()
    for node in "ab":  # their leases do not end together
        mariner.wait_until(lambda: cluster[node].http("/readyz")[0] == 503, 20, "the node says that it is not ready")
        assert "store" in cluster[node].http("/readyz")[1]
    for node in "ab":
        assert not cluster[node].serves("db1")
        assert sense_of(cluster[node]) == TRANSITION
    cluster.etcd.start()
    successor = cluster.server_of("db1")
    assert campaign.verify(successor.volume_url("db1"))["faults"] == []
    assert_same_in_the_end(cluster)


def test_hosts_are_told_which_way_is_the_right_one(cluster):
    server = cluster.server_of("db1")
    mirror = cluster["b" if server.name == "a" else "a"]
    states = {server.number: ACTIVE, mirror.number: STANDBY}
    assert port_groups(server) == states and port_groups(mirror) == states
    assert sense_of(mirror) == STANDS_BY
    assert session(server).command(bytes([0x12, 1, 0x83, 0, 255, 0]), expected=255).data[8:24] == \
        session(mirror).command(bytes([0x12, 1, 0x83, 0, 255, 0]), expected=255).data[8:24], "one identity"
    server.stop()
    mariner.wait_until(lambda: mirror.serves("db1"), 30, "the mirror serves")
    assert port_groups(mirror)[mirror.number] == ACTIVE
    assert sense_of(mirror) == ""


def test_reservations_follow_the_volume(cluster):
    """Registered and reserved at one node; enforced and known at the other, whether they persist or not."""
    server = cluster.server_of("db1")
    holder = session(server, "holder", ready=True)
    register = struct.pack(">QQ8x", 0, 0xABCD)
    assert told(holder, struct.pack(">BBBHIB", 0x5F, 0, 0, 0, len(register), 0), register).status == GOOD
    reserve = struct.pack(">Q16x", 0xABCD)
    assert told(holder, struct.pack(">BBBHIB", 0x5F, 1, 1, 0, len(reserve), 0), reserve).status == GOOD
    server.kill()
    successor = cluster.server_of("db1")
    assert successor is not server
    other = session(successor, "other", ready=True)
    keys = told(other, struct.pack(">BB5xHx", 0x5E, 0, 1024), expected=1024).good()
    assert keys[8:16] == register[8:16]
    write = struct.pack(">BBIBHB", 0x2A, 0, 0, 0, 1, 0)
    assert told(other, write, bytes(512)).status == CONFLICT


ACTIVE, STANDBY = 0, 2
TRANSITION, STANDS_BY = "2/04/0A", "2/04/0B"


def session(node, initiator: str = "libiscsi", ready: bool = False) -> Session:
    """A node that has just begun may not have heard of the volume: it says that there is no such target."""
    def logged_in() -> Session | None:
        try:
            return Session(node, f"{mariner.IQN_BASE}:db1", f"iqn.2026-11.org.mariner:{initiator}", ready=ready)
        except ConnectionError as error:
            if "Target not found" in str(error):
                return None
            raise
    return mariner.wait_until(logged_in, 30, f"{node.name} knows the target")


def told(host: Session, command: bytes, data: bytes = b"", **more):
    """The answer to a command, behind the unit attentions: that the ways have changed may come a moment after a login."""
    for _ in range(8):
        answer = host.command(command, data, **more)
        if not answer.sense.startswith("6/"):
            return answer
    raise mariner.Failed("unit attentions without end")


def sense_of(node) -> str:
    """What TEST UNIT READY says, behind the unit attentions; empty: it is ready."""
    return told(session(node), bytes(6)).sense


def port_groups(node) -> dict[int, int]:
    """Their states, as REPORT TARGET PORT GROUPS tells them."""
    host = session(node)
    data = b""
    while not data:
        data = host.command(struct.pack(">BB4xIBB", 0xA3, 0x0A, 1024, 0, 0), expected=1024).data
    groups, at = {}, 4
    while at < len(data):
        state, _, group, _, _, _, ports = struct.unpack_from(">BBHBBBB", data, at)
        groups[group] = state & 0x0F
        at += 8 + 4 * ports
    return groups


def replica_lag_s(coordinator, replica) -> float:
    wanted = f'mariner_replica_lag_seconds{{volume="db1",replica="{replica.name}",role="mirror"}} '
    line = next(line for line in coordinator.http("/metrics")[1].splitlines() if line.startswith(wanted))
    return float(line.removeprefix(wanted))


def settle(load: hammer.Load, seconds: float):
    """Lets the load run."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert load.running(), load.report()
        time.sleep(0.05)


def assert_same_in_the_end(cluster: Cluster):
    cluster.wait_healed("db1")
    for name in "abc":
        assert cluster[name].stop() == 0
    assert same_images(cluster)
