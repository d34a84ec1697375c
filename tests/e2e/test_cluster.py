"""A volume on three nodes: two with images, one with the log, and etcd between them. Real daemons on loopback."""

import time

import pytest

import hammer
import mariner
from cluster import Cluster


@pytest.fixture
def cluster(folder):
    with Cluster(folder) as cluster:
        cluster.add_volume("db1")
        yield cluster.start()


def same_images(cluster: Cluster, number: int = 1) -> bool:
    return cluster.image("a", number).read_bytes() == cluster.image("b", number).read_bytes()


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


def test_the_mirror_is_killed_and_nobody_notices(cluster, folder):
    for campaign, server, node, load in killed_while_loaded(cluster, folder, "mirror", 2):
        settle(load, 1)
        node.kill()
        settle(load, 2)
        node.start()
        settle(load, 1)
        load.stop()
        assert load.code == hammer.DONE
        assert campaign.verify(server.volume_url("db1"))["faults"] == []
    assert_same_in_the_end(cluster)


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
