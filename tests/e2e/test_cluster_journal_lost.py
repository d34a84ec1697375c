"""The logger is away, and then a storage node is lost with its image and its journal: the other one alone has what was acknowledged since."""

import shutil

import hammer
import mariner
import pytest
from cluster import Cluster
from mariner import lun_checksum
from test_cluster_away import logger, wait_away, wait_back

pytestmark = pytest.mark.slow

LEASE = "5s"


@pytest.mark.parametrize(
    "log_too, blank_first",
    [(False, False), (True, False), (False, True)],
    ids=["the-logger-returns", "the-log-is-lost-too", "the-replaced-node-is-elected-first"],
)
def test_what_one_journal_alone_has_is_read_and_brought_to_the_logger(folder, log_too, blank_first):
    with Cluster(folder, LEASE) as cluster:
        cluster.add_volume("db1", size="64M")
        cluster.start()
        campaign = hammer.Campaign(folder / "hammer")
        server = cluster.server_of("db1")
        campaign.run(server.volume_url("db1"), "--writes", 500, "--depth", 32, "--seed", 1)
        cluster.wait_healed("db1")
        cluster["c"].kill()
        wait_away(cluster)
        url = server.volume_url("db1")
        campaign.run(url, "--writes", 500, "--depth", 32, "--seed", 2)
        now = lun_checksum(url, folder / "copy")
        # Everybody who stored the volume dies, and one of them is replaced.
        other = next(cluster[name] for name in "ab" if cluster[name] is not server)
        other.kill()
        server.kill()
        shutil.rmtree(other.state)
        first, second = (other, server) if blank_first else (server, other)
        first.start()
        mariner.wait_until(lambda: first.volume("db1").get("coordinator"), 30, "the first one coordinates")
        second.start()
        mariner.wait_until(lambda: server.serves("db1"), 60, "the node that has everything serves")
        assert cluster.server_of("db1") is server
        assert lun_checksum(server.volume_url("db1"), folder / "copy") == now, "what was acknowledged is read"
        assert any("as if it had been set up anew" in line for line in server.log_lines())
        assert logger(cluster)["away"]
        if log_too:
            shutil.rmtree(cluster["c"].state)
        cluster["c"].start()
        wait_back(cluster)
        url = cluster.server_of("db1").volume_url("db1")
        assert lun_checksum(url, folder / "copy") == now
        assert campaign.verify(url)["faults"] == []
        campaign.run(url, "--writes", 500, "--depth", 32, "--seed", 3)
        cluster.wait_healed("db1")
        assert campaign.verify(url)["faults"] == []
        for name in "ab":
            assert cluster[name].stop() == 0
        assert cluster.image("a").read_bytes() == cluster.image("b").read_bytes()
