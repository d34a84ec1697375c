"""A volume on three nodes: two with images, one with the log, and etcd between them. Real daemons on loopback."""

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
