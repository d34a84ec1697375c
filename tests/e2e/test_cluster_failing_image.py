"""A storage node whose image's disk fails while its daemon lives: here the disk is full."""

import contextlib
import shutil
import subprocess

import pytest

import hammer
import mariner
from cluster import Cluster
from test_cluster_absent import LEASE, SMALL_LAG, SMALL_LOG, go_round

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def images_on_a_disk_of_their_own(node, file):
    """Of a node that stands still. The disk has less room than its images want while the path that this yields is there."""
    def run(*words):
        subprocess.run([str(word) for word in words], check=True, capture_output=True)

    images = node.state / "images"
    before = images.rename(images.with_name("images-before"))
    images.mkdir()
    run("truncate", "-s", "160M", file)
    run("mkfs.ext4", "-q", "-m", "0", file)
    run("mount", "-o", "loop", file, images)
    try:
        for image in before.iterdir():
            run("cp", "--sparse=always", image, images)
        shutil.rmtree(before)
        ballast = images / "ballast"
        run("fallocate", "-l", shutil.disk_usage(images).free - (16 << 20), ballast)
        yield ballast
    finally:
        node.close()
        run("umount", images)


def wait_degraded(cluster: Cluster):
    def degraded():
        shown = cluster.server_of("db1").volume("db1").get("degraded", "")
        return "No space" in shown
    mariner.wait_until(degraded, 40, "the volume is degraded, and says why\n" + cluster.tails())


def mend(cluster: Cluster, campaign: hammer.Campaign, failing, ballast):
    """And who does not want to wait for the next try restarts the node."""
    assert failing.stop() == 0
    ballast.unlink()
    failing.start()
    cluster.wait_healed("db1", 120)
    server = cluster.server_of("db1")
    assert not server.volume("db1").get("degraded"), server.volume("db1")
    assert campaign.verify(server.volume_url("db1"))["faults"] == []
    for name in "ab":
        assert cluster[name].stop() == 0


@contextlib.contextmanager
def cluster_with_a_small_disk(folder):
    """It, the node that serves, and the one with the disk, which is the mirror."""
    with Cluster(folder, LEASE, log=SMALL_LOG, storage=SMALL_LAG) as cluster:
        cluster.add_volume("db1", size="64M", window="1s")
        cluster.start()
        server = cluster.server_of("db1")
        failing = next(cluster[name] for name in "ab" if cluster[name] is not server)
        assert failing.stop() == 0
        with images_on_a_disk_of_their_own(failing, folder / "images.disk") as ballast:
            failing.start()
            cluster.wait_healed("db1")
            yield cluster, server, failing, ballast


def test_a_log_does_not_wait_for_an_image_whose_disk_is_full(folder):
    campaign = hammer.Campaign(folder / "hammer")
    with cluster_with_a_small_disk(folder) as (cluster, server, failing, ballast):
        go_round(server, campaign)  # more than the log holds
        wait_degraded(cluster)
        assert server.times_said("an image of a volume has failed, and is done without") == 1
        assert "mariner_replica_failed" in server.http("/metrics")[1]
        mend(cluster, campaign, failing, ballast)


def test_who_coordinates_with_an_image_whose_disk_is_full_hands_over(folder):
    campaign = hammer.Campaign(folder / "hammer")
    with cluster_with_a_small_disk(folder) as (cluster, other, failing, ballast):
        assert other.stop() == 0
        assert cluster.server_of("db1") is failing
        other.start()
        cluster.wait_healed("db1")
        assert cluster.server_of("db1") is failing
        campaign.run(failing.volume_url("db1"), "--writes", 500, "--depth", 32, "--seed", 1)
        mariner.wait_until(lambda: other.serves("db1"), 60, "the other node serves\n" + cluster.tails())
        go_round(other, campaign)
        wait_degraded(cluster)
        mend(cluster, campaign, failing, ballast)
