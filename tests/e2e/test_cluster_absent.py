"""A storage node that stays away for longer than the log waits for it."""

import pytest

import hammer
import mariner
from cluster import Cluster
from mariner import lun_checksum, sequence_of

pytestmark = pytest.mark.slow

LEASE = "5s"
LOG_BYTES = 256 << 20
SMALL_LOG = {"max_size": "256M", "track_size": "8M"}
# What waits for the image may all have to be logged again before it is overwritten: the reserve of so small a log has room for this.
SMALL_LAG = {"lag_max": "16M", "pending_memory": "16M"}


def caught_up(cluster: Cluster, name: str) -> bool:
    storages = cluster.server_of("db1").volume("db1")["replicas"][1:]
    return any(each["node"] == name and each.get("caught_up") for each in storages)


def starts_over(node) -> bool:
    return any("the image is made anew" in line for line in node.log_lines())


def begin(cluster: Cluster, campaign: hammer.Campaign) -> tuple:
    """The node that serves, and the mirror, which is killed."""
    cluster.add_volume("db1", size="64M", window="1s")
    cluster.start()
    server = cluster.server_of("db1")
    campaign.run(server.volume_url("db1"), "--writes", 400, "--depth", 32, "--seed", 1)
    cluster.wait_healed("db1")
    mirror = next(cluster[name] for name in "ab" if cluster[name] is not server)
    mirror.kill()
    return server, mirror


def go_round(server, campaign: hammer.Campaign):
    """Writes twice as much as the log holds."""
    written, seed = 0, 2
    while written < 2 * LOG_BYTES:
        report = campaign.run(server.volume_url("db1"), "--writes", 500, "--depth", 32, "--seed", seed)
        written += report["payload_bytes"]
        seed += 1


def test_a_log_that_needs_room_does_not_wait_for_a_mirror_that_is_away(folder):
    with Cluster(folder, LEASE, log=SMALL_LOG, storage=SMALL_LAG) as cluster:
        campaign = hammer.Campaign(folder / "hammer")
        server, mirror = begin(cluster, campaign)
        go_round(server, campaign)
        assert any("the log needs room" in line for line in server.log_lines())
        mirror.start()
        mariner.wait_until(lambda: starts_over(mirror), 60, f"{mirror.name} starts over")
        cluster.wait_healed("db1")
        assert campaign.verify(server.volume_url("db1"))["faults"] == []
        for name in "ab":
            assert cluster[name].stop() == 0
        assert cluster.image("a").read_bytes() == cluster.image("b").read_bytes()


def test_the_log_goes_on_without_a_mirror_which_is_built_anew_when_it_returns(folder):
    with Cluster(folder, LEASE, log=SMALL_LOG, storage=SMALL_LAG, more={"absent_max": "2s"}) as cluster:
        campaign = hammer.Campaign(folder / "hammer")
        server, mirror = begin(cluster, campaign)
        go_round(server, campaign)
        assert sequence_of(cluster["c"].ask("volume", "show", "db1")["oldest"]) > 0
        before = lun_checksum(server.volume_url("db1"), folder / "copy")
        mirror.start()
        mariner.wait_until(lambda: starts_over(mirror), 60, f"{mirror.name} starts over")
        assert lun_checksum(server.volume_url("db1"), folder / "copy") == before
        load = campaign.start(server.volume_url("db1"), "--depth", 8)
        mariner.wait_until(lambda: caught_up(cluster, mirror.name), 60, f"{mirror.name} knows what it lacks")
        assert load.running(), load.report()
        load.stop()
        cluster.wait_healed("db1")
        assert cluster.server_of("db1") is server, "nobody else had to serve"
        assert campaign.verify(server.volume_url("db1"))["faults"] == []
        # It can take over, with all that there is.
        server.kill()
        assert cluster.server_of("db1") is mirror
        assert campaign.verify(mirror.volume_url("db1"))["faults"] == []
        server.start()
        cluster.wait_healed("db1")
        for name in "ab":
            assert cluster[name].stop() == 0
        assert cluster.image("a").read_bytes() == cluster.image("b").read_bytes()
