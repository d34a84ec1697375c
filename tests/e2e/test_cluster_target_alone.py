"""A volume that is coordinated on a node which stores nothing of it, as on the initiator's own host. Real daemons on loopback."""

import re

import pytest

import hammer
import mariner
from cluster import Cluster, Node

pytestmark = pytest.mark.slow

LEASE, LONG_LEASE = "3s", "15s"


@pytest.fixture
def lease():
    return LEASE


@pytest.fixture
def targets():
    return ["d", "a", "b"]


@pytest.fixture
def cluster(folder, lease, targets):
    with Cluster(folder, lease, more_nodes={"d": ["target"]}) as cluster:
        cluster.add_volume("db1", targets=targets)
        cluster.start()
        promote(cluster, "d")  # others may have begun before it
        yield cluster


def promote(cluster: Cluster, name: str):
    cluster.wait_caught_up("db1")
    mariner.wait_until(lambda: cluster[name].volume("db1").get("state") in ("standby", "serving"), 30, "it is alive")
    node = cluster[name]
    mariner.wait_until(lambda: any(each["name"] == name and each.get("alive") for each in node.status()["nodes"]), 30,
                       f"{name} is known to be alive")
    node.ask("node", "promote", "db1")
    assert cluster[name].serves("db1")


def read_from(coordinator: Node) -> str | None:
    """The storage node that its reads are served from."""
    found = re.search(r'mariner_replica_lag_seconds\{volume="db1",replica="(\w+)",role="master"\}', coordinator.http("/metrics")[1])
    return found and found.group(1)


def run_for(load: hammer.Load, seconds: float):
    def ended():
        assert load.running(), load.report()
        return False
    with pytest.raises(mariner.Failed):
        mariner.wait_until(ended, seconds, "the load goes on", 0.05)


def assert_same_in_the_end(cluster: Cluster):
    cluster.wait_healed("db1")
    for node in cluster.nodes.values():
        assert node.stop() == 0
    assert cluster.image("a").read_bytes() == cluster.image("b").read_bytes()


@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_it_writes_and_reads_what_others_store(cluster, folder):
    alone = cluster["d"]
    campaign = hammer.Campaign(folder / "hammer")
    report = campaign.run(alone.volume_url("db1"), "--seconds", 3, "--depth", 32, "--read-percent", 40)
    assert report["acknowledged"] > 0
    assert campaign.verify(alone.volume_url("db1"))["faults"] == []
    assert not (alone.state / "images" / "1.raw").exists()
    shown = alone.ask("volume", "show", "db1")
    assert shown["state"] == "serving" and not shown.get("image_path")
    roles = {(replica["node"], replica["role"]): replica for replica in alone.volume("db1")["replicas"]}
    assert set(roles) == {("c", "logger"), ("a", "storage"), ("b", "storage")}
    assert roles["a", "storage"]["caught_up"] and roles["b", "storage"]["caught_up"]
    assert "d coordinates it" in alone.cli("doctor", check=False).out
    assert alone.cli("config", "check", str(alone.config_file), check=False).code == 0
    assert_same_in_the_end(cluster)


@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_the_storage_node_that_is_read_from_is_killed_and_nobody_notices(cluster, folder):
    alone = cluster["d"]
    campaign = hammer.Campaign(folder / "hammer")
    victims = []
    for _ in range(2):
        cluster.wait_healed("db1")
        load = campaign.start(alone.volume_url("db1"), "--depth", 32, "--read-percent", 40)
        run_for(load, 1)
        victims.append(read_from(alone))
        cluster[victims[-1]].kill()
        run_for(load, 2)
        assert read_from(alone) not in (None, victims[-1])
        cluster[victims[-1]].start()
        run_for(load, 2)
        load.stop()
        assert load.code == hammer.DONE
        assert campaign.verify(alone.volume_url("db1"))["faults"] == []
    assert alone.serves("db1") and set(victims) <= {"a", "b"}
    assert_same_in_the_end(cluster)


def test_it_is_killed_and_comes_back(cluster, folder):
    alone = cluster["d"]
    campaign = hammer.Campaign(folder / "hammer")
    load = campaign.start(alone.volume_url("db1"), "--depth", 32, "--read-percent", 20)
    run_for(load, 2)
    alone.kill()
    report = load.report()
    assert report["acknowledged"] > 0 or load.code == hammer.LOST, report
    successor = cluster.server_of("db1")
    assert successor.name in "ab"
    assert campaign.verify(successor.volume_url("db1"))["faults"] == []
    campaign.run(successor.volume_url("db1"), "--seconds", 1)
    alone.start()
    promote(cluster, "d")
    assert campaign.verify(alone.volume_url("db1"))["faults"] == []
    campaign.run(alone.volume_url("db1"), "--seconds", 1, "--read-percent", 40)
    assert campaign.verify(alone.volume_url("db1"))["faults"] == []
    assert_same_in_the_end(cluster)


@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_it_hands_over_when_it_is_stopped(cluster, folder):
    alone = cluster["d"]
    campaign = hammer.Campaign(folder / "hammer")
    campaign.run(alone.volume_url("db1"), "--seconds", 1)
    cluster.wait_healed("db1")
    assert alone.stop() == 0
    successor = cluster.server_of("db1", 10)  # within the lease
    assert successor.name in "ab"
    assert campaign.verify(successor.volume_url("db1"))["faults"] == []


@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_the_past_is_asked_there_and_seen_where_the_images_are(cluster, folder):
    alone = cluster["d"]
    campaign = hammer.Campaign(folder / "hammer")
    campaign.run(alone.volume_url("db1"), "--seconds", 1)
    alone.ask("mark", "add", "db1", "before")
    campaign.verify(alone.volume_url("db1"))
    view = alone.expose("db1", "mark:before")
    assert view["iqn"], view
    for name in "ab":
        mariner.wait_until(lambda: any(v["name"] == view["name"] for v in cluster[name].views()), 30, "the view is there")
    cluster.wait_healed("db1")
    second = hammer.Campaign(folder / "second")
    second.run(alone.volume_url("db1"), "--seconds", 1, "--region-offset", hammer.REGION_BYTES)
    alone.rollback("db1", "mark:before")
    assert campaign.verify(alone.volume_url("db1"))["faults"] == []
    campaign.run(alone.volume_url("db1"), "--seconds", 1, "--read-percent", 40)
    assert campaign.verify(alone.volume_url("db1"))["faults"] == []
    alone.ask("view", "unexpose", view["name"])
    assert_same_in_the_end(cluster)


@pytest.mark.parametrize("lease, targets", [(LONG_LEASE, ["d"])])
def test_who_is_no_target_does_not_serve(cluster):
    alone, other = cluster["d"], cluster["a"]
    assert not other.volume("db1").get("state")
    refused = other.cli("node", "promote", "db1", check=False)
    assert refused.code == 2 and "node a may not serve db1: expected d" in refused.err, refused
    refused = alone.cli("view", "expose", "db1@now", check=False)
    assert refused.code != 0 and "no node that may serve db1 stores it" in refused.err, refused


@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_while_the_logger_is_away_writes_wait_and_a_storage_node_goes_on_without(cluster, folder):
    alone = cluster["d"]
    campaign = hammer.Campaign(folder / "hammer")
    load = campaign.start(alone.volume_url("db1"), "--depth", 32, "--read-percent", 20)
    run_for(load, 1)
    cluster["c"].kill()
    run_for(load, 5)
    assert not alone.volume("db1")["replicas"][0].get("away"), "it has no journal to go on with"
    cluster["c"].start()
    run_for(load, 2)
    load.stop()
    assert load.code == hammer.DONE
    assert campaign.verify(alone.volume_url("db1"))["faults"] == []
    cluster.wait_healed("db1")  # what the images lack is in the log alone, which they cannot go on without
    promote(cluster, "a")
    cluster["c"].kill()
    mariner.wait_until(lambda: cluster["a"].volume("db1")["replicas"][0].get("away"), 30, "the journals take its place")
    refused = alone.cli("node", "promote", "db1", "--node", "d", check=False)
    assert refused.code == 1 and "whose logger is away" in refused.err, refused
    cluster["c"].start()
    mariner.wait_until(lambda: not cluster["a"].volume("db1")["replicas"][0].get("away"), 60, "the logger is back")
    promote(cluster, "d")
    assert_same_in_the_end(cluster)
