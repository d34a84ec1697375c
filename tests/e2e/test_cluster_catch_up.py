"""A storage node that fetches what it missed: no faster than it may, with progress, and nobody waits for it."""

import time

import pytest

import hammer
import mariner
from cluster import Cluster

pytestmark = pytest.mark.slow

LEASE = "5s"
MAX_BYTES_PER_SECOND = 8 << 20
CHUNK_BYTES = 8 << 20  # What is fetched at once, and may run ahead.


def replica(cluster: Cluster, name: str) -> dict:
    return next(each for each in cluster.server_of("db1").volume("db1")["replicas"][1:] if each["node"] == name)


def left(cluster: Cluster, name: str) -> int:
    return int(replica(cluster, name).get("missed_left_bytes", 0))


def findings(node, check: str) -> list[str]:
    answer = node.cli("--json", "doctor", check=False).json()
    return [f'{each["level"]}: {each["found"]}' for each in answer["findings"] if each["check"] == check]


def test_what_was_missed_is_fetched_no_faster_than_it_may_be_and_it_shows(folder):
    with Cluster(folder, LEASE, more={"catch_up_max": "8M"}) as cluster:
        cluster.add_volume("db1", size="64M")
        cluster.start()
        campaign = hammer.Campaign(folder / "hammer")
        server = cluster.server_of("db1")
        url = server.volume_url("db1")
        campaign.run(url, "--writes", 200, "--depth", 32, "--seed", 1)
        cluster.wait_healed("db1")
        assert findings(server, "volume") == [f"ok: db1: {server.name} coordinates it"]
        mirror = next(cluster[name] for name in "ab" if cluster[name] is not server)
        mirror.kill()
        campaign.run(url, "--writes", 1500, "--depth", 32, "--seed", 2)
        assert findings(server, "volume") == [f"warning: db1: {mirror.name} does not have all of it"]
        mirror.start()
        mariner.wait_until(lambda: left(cluster, mirror.name) > 0, 30, "it is seen to fetch")
        began, at_first = time.monotonic(), left(cluster, mirror.name)
        assert at_first > 3 * CHUNK_BYTES, "or there is nothing to see"
        text = server.cli("replica", "status").out
        assert "fetching what it missed: " in text and " MiB" in text, text
        own = int(next(each for each in mirror.volume("db1")["replicas"][1:] if each["node"] == mirror.name)["missed_left_bytes"])
        assert 0 < own <= at_first
        samples = []
        mariner.wait_until(lambda: samples.append(left(cluster, mirror.name)) or samples[-1] == 0, 120, "it has all")
        took = time.monotonic() - began
        assert len(set(samples)) > 3 and samples == sorted(samples, reverse=True), samples
        assert took >= (at_first - CHUNK_BYTES) / MAX_BYTES_PER_SECOND, (took, at_first)
        cluster.wait_healed("db1")
        # Under load, which does not wait for it.
        mirror.kill()
        campaign.run(url, "--writes", 1500, "--depth", 32, "--seed", 3)
        load = campaign.start(url, "--depth", 8, "--seed", 4)
        mirror.start()
        mariner.wait_until(lambda: left(cluster, mirror.name) > 0, 30, "it is seen to fetch")
        before = int(server.volume("db1")["replicas"][0]["settled"])
        mariner.wait_until(lambda: int(server.volume("db1")["replicas"][0]["settled"]) > before + 20, 10, "writes go on")
        assert left(cluster, mirror.name) > 0, "it was over before that was seen"
        assert load.running(), load.report()
        load.stop()
        cluster.wait_healed("db1")
        assert campaign.verify(url)["faults"] == []
        for name in "ab":
            assert cluster[name].stop() == 0
        assert cluster.image("a").read_bytes() == cluster.image("b").read_bytes()
