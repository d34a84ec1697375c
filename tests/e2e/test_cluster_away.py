"""The logger goes: the storage nodes keep what is written until it is back, and nothing is missing from the history then."""

import pytest

import hammer
import mariner
from cluster import Cluster
from mariner import lun_checksum, sequence_of

pytestmark = pytest.mark.slow

LEASE = "5s"


@pytest.fixture
def cluster(folder):
    with Cluster(folder, LEASE, storage={"apply_delay": "200ms"}) as cluster:
        cluster.add_volume("db1", size="64M")
        yield cluster.start()


def logger(cluster: Cluster) -> dict:
    """What the node that serves says of the volume's logger."""
    return cluster.server_of("db1").volume("db1")["replicas"][0]


def wait(cluster: Cluster, condition, what: str):
    try:
        mariner.wait_until(condition, 60, what)
        cluster.server_of("db1")  # The record says it before hosts are served again.
    except mariner.Failed as error:
        raise mariner.Failed(f"{error}\n{cluster.tails()}") from None


def wait_away(cluster: Cluster):
    wait(cluster, lambda: logger(cluster).get("away"), "the logger is gone without")


def wait_back(cluster: Cluster):
    wait(cluster, lambda: not logger(cluster).get("away"), "the logger is back")
    cluster.wait_healed("db1")


def check_history(cluster: Cluster, campaign: hammer.Campaign, moment: str):
    """Both images are alike, and the moment at each node is what was acknowledged."""
    server = cluster.server_of("db1")
    assert campaign.verify(server.volume_url("db1"))["faults"] == []
    history = server.history_file("db1", cluster.folder / "history.json")
    view = cluster.view_at("db1", server, moment)
    for name in "ab":
        report = campaign.verify_moment(cluster[name].url(view["iqn"]), history, sequence_of(view["at"]))
        assert report["faults"] == [], (name, moment, view["at"], report["faults"])
    server.ask("view", "unexpose", view["name"])
    assert cluster.image("a").read_bytes() == cluster.image("b").read_bytes()


def test_writes_go_on_without_the_logger_and_are_in_its_history_afterwards(cluster, folder):
    campaign = hammer.Campaign(folder / "hammer")
    server = cluster.server_of("db1")
    url = server.volume_url("db1")
    campaign.run(url, "--writes", 500, "--depth", 32, "--seed", 1)
    cluster.wait_healed("db1")  # (An image of which nothing is durable yet cannot go on without the logger.)
    for round_ in range(2):
        # What is under way when it goes, or returns, is answered as in transition, which this host does not repeat.
        load = campaign.start(url, "--depth", 32, "--seed", 10 + round_)
        cluster["c"].kill()
        wait_away(cluster)
        load.report()
        assert campaign.verify(url)["faults"] == []
        campaign.run(url, "--writes", 500, "--depth", 32, "--seed", 20 + round_)
        refused = server.cli("mark", "add", "db1", "now", check=False)
        assert refused.code != 0 and "the volume's logger is away" in refused.err, refused
        load = campaign.start(url, "--depth", 32, "--seed", 30 + round_)
        before = int(server.volume("db1")["replicas"][0]["settled"])
        wait(cluster, lambda: int(server.volume("db1")["replicas"][0]["settled"]) > before + 1000, "writes go on")
        cluster["c"].start()
        wait_back(cluster)
        load.report()
        assert campaign.verify(url)["faults"] == []
        campaign.run(url, "--writes", 500, "--depth", 32, "--seed", 40 + round_)
        cluster.wait_healed("db1")
        newest = int(server.ask("history", "show", "db1")["to"]["sequence"])
        check_history(cluster, campaign, f"#{newest}")
        check_history(cluster, campaign, f"#{newest // 2}")


def test_storage_nodes_come_back_while_the_logger_is_away(cluster, folder):
    campaign = hammer.Campaign(folder / "hammer")
    url = cluster.server_of("db1").volume_url("db1")
    campaign.run(url, "--writes", 500, "--depth", 32, "--seed", 1)
    cluster.wait_healed("db1")  # (An image of which nothing is durable yet cannot go on without the logger.)
    cluster["c"].kill()
    wait_away(cluster)
    for round_, name in enumerate("abab"):
        server = cluster.server_of("db1", 60)
        campaign.run(server.volume_url("db1"), "--writes", 300, "--depth", 16, "--seed", 10 + round_)
        now = lun_checksum(server.volume_url("db1"), folder / "copy")
        cluster[name].kill()
        cluster[name].start()
        # (A new coordinator waits for both journals, a living one for the other's.)
        server = cluster.server_of("db1", 60)
        cluster.wait_caught_up("db1")
        assert lun_checksum(server.volume_url("db1"), folder / "copy") == now
    both = [cluster["a"], cluster["b"]]
    for node in both:
        node.kill()
    for node in both:
        node.start()
    server = cluster.server_of("db1", 60)
    assert lun_checksum(server.volume_url("db1"), folder / "copy") == now
    campaign.run(server.volume_url("db1"), "--writes", 300, "--depth", 16, "--seed", 30)
    cluster["c"].start()
    wait_back(cluster)
    newest = int(cluster.server_of("db1").ask("history", "show", "db1")["to"]["sequence"])
    check_history(cluster, campaign, f"#{newest}")


def test_without_a_journal_writes_wait(folder):
    with Cluster(folder, LEASE) as cluster:
        cluster.add_volume("db1", size="64M")
        for name in "ab":
            cluster[name].journal = False
        cluster.start()
        campaign = hammer.Campaign(folder / "hammer")
        server = cluster.server_of("db1")
        load = campaign.start(server.volume_url("db1"), "--depth", 8)
        cluster["c"].kill()
        before = server.volume("db1")["replicas"][0]["settled"]
        mariner.wait_until(lambda: server.volume("db1")["replicas"][0]["settled"] == before, 10, "what was sent is answered")
        assert not logger(cluster).get("away")
        cluster["c"].start()
        mariner.wait_until(lambda: int(server.volume("db1")["replicas"][0]["settled"]) > int(before) + 100, 60, "writes go on")
        load.stop()
