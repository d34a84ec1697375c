"""The machine that logs is lost and replaced: the history begins anew, and nothing that was acknowledged is missing."""

import shutil

import pytest

import hammer
import mariner
from cluster import Cluster
from mariner import lun_checksum, sequence_of
from test_cluster_away import wait_away, wait_back

pytestmark = pytest.mark.slow

LEASE = "5s"


def check_view(cluster: Cluster, moment: str, expected: str):
    """The moment reads like this at each node."""
    server = cluster.server_of("db1")
    view = cluster.view_at("db1", server, moment)
    for name in "ab":
        assert lun_checksum(cluster[name].url(view["iqn"]), cluster.folder / "copy") == expected, (name, moment)
    server.ask("view", "unexpose", view["name"])


def test_a_logger_without_its_log_begins_anew_and_writes_go_on(folder):
    with Cluster(folder, LEASE) as cluster:
        cluster.add_volume("db1", size="64M")
        cluster.start()
        campaign = hammer.Campaign(folder / "hammer")
        server = cluster.server_of("db1")
        url = server.volume_url("db1")
        campaign.run(url, "--writes", 500, "--depth", 32, "--seed", 1)
        cluster.wait_healed("db1")
        # What is pending when the logger goes is in no image, and only there when it has lost it.
        load = campaign.start(url, "--depth", 32, "--seed", 2)
        mariner.wait_until(lambda: int(server.volume("db1")["replicas"][0]["settled"]) > 1000, 30, "it is written to")
        cluster["c"].kill()
        wait_away(cluster)
        load.report()
        assert campaign.verify(url)["faults"] == []
        campaign.run(url, "--writes", 300, "--depth", 32, "--seed", 3)
        since = int(server.volume("db1")["replicas"][0]["away_since"])
        shutil.rmtree(cluster["c"].state)
        now = lun_checksum(url, folder / "copy")
        cluster["c"].start()
        wait_back(cluster)
        assert any("its history begins anew" in line for line in cluster["c"].log_lines())
        assert lun_checksum(url, folder / "copy") == now
        assert campaign.verify(url)["faults"] == []
        assert sequence_of(server.ask("history", "show", "db1")["from"]) == since
        refused = server.cli("view", "expose", f"db1@#{since - 1}", check=False)
        assert refused.code != 0 and "#" in refused.err, refused
        # What is overwritten from now on is kept for the moments before, as it stood in the images alone.
        server.ask("mark", "add", "db1", "after")
        campaign.run(url, "--writes", 800, "--depth", 32, "--seed", 4)
        cluster.wait_healed("db1")
        check_view(cluster, "mark:after", now)
        assert cluster.image("a").read_bytes() == cluster.image("b").read_bytes()
        # It is so after a restart, and an image that is lost is built from the other one.
        cluster["c"].kill()
        cluster["c"].start()
        mirror = next(cluster[name] for name in "ab" if cluster[name] is not server)
        assert mirror.stop() == 0
        for path in (mirror.state / "images").glob("*.raw"):
            path.unlink()
        mirror.start()
        campaign.run(url, "--writes", 200, "--depth", 32, "--seed", 5)
        cluster.wait_healed("db1")
        check_view(cluster, "mark:after", now)
        assert campaign.verify(url)["faults"] == []
        for name in "ab":
            assert cluster[name].stop() == 0
        assert cluster.image("a").read_bytes() == cluster.image("b").read_bytes()
