"""The past of a cluster's volume: views, marks, rollback, and a log that gives history up, while nodes come and go."""


import pytest

import hammer
import mariner
from cluster import Cluster
from mariner import lun_checksum, sequence_of

pytestmark = pytest.mark.slow

# A takeover is waited for in these tests, and nobody is to be replaced who is only slow.
LEASE = "5s"
SMALL_LOG = {"max_size": "256M", "track_size": "8M"}
LOG_BYTES = 256 << 20


@pytest.fixture
def cluster(folder):
    with Cluster(folder, LEASE) as cluster:
        cluster.add_volume("db1", size="64M")
        yield cluster.start()


def check_moment(cluster: Cluster, server, campaign: hammer.Campaign, moment: str, names: str = "ab"):
    """What the moment shows, at each of these nodes, is what the journals say."""
    history = server.history_file("db1", cluster.folder / "history.json")
    view = cluster.view_at("db1", server, moment)
    for name in names:
        report = campaign.verify_moment(cluster[name].url(view["iqn"]), history, sequence_of(view["at"]))
        assert report["faults"] == [], (name, moment, view["at"], report["faults"])
    server.ask("view", "unexpose", view["name"])


def caught_up(cluster: Cluster, name: str) -> bool:
    storages = cluster.server_of("db1").volume("db1")["replicas"][1:]
    return any(each["node"] == name and each.get("caughtUp", each.get("caught_up")) for each in storages)


def newest(server) -> int:
    return int(server.ask("history", "show", "db1")["to"]["sequence"])


def test_a_moment_is_exported_by_who_serves(cluster, folder):
    server = cluster.server_of("db1")
    mariner.qemu_io(server.volume_url("db1"), "write -P 1 0 8M", "write -P 2 30M 1M")
    then = newest(server)
    mariner.qemu_io(server.volume_url("db1"), "write -P 3 0 2M", "discard 30M 1M")
    answer = server.ask("volume", "export", f"db1@#{then}", folder / "then.raw")
    assert answer["data_bytes"] == str(9 << 20)
    assert (folder / "then.raw").read_bytes() == (b"\1" * (8 << 20) + bytes(22 << 20) + b"\2" * (1 << 20) + bytes(33 << 20))
    refused = server.cli("volume", "clone", f"db1@#{then}", "db2", check=False)
    assert refused.code != 0 and "cloning a volume" in refused.err


def test_views_are_exact_at_every_node_whoever_coordinates(cluster, folder):
    campaign = hammer.Campaign(folder / "hammer")
    marks = []
    for round_ in range(3):
        server = cluster.server_of("db1")
        campaign.run(server.volume_url("db1"), "--writes", 800, "--depth", 32, "--seed", round_ + 1)
        server.ask("mark", "add", "db1", f"m{round_}")
        marks.append(f"mark:m{round_}")
        campaign.run(server.volume_url("db1"), "--writes", 400, "--depth", 32, "--seed", round_ + 11)
        check_moment(cluster, server, campaign, marks[-1])
        server.kill()
        successor = cluster.server_of("db1")
        assert successor is not server
        # What was exact before is, from the other image, without the one that is down.
        for moment in [*marks, f"#{newest(successor) // 2}"]:
            check_moment(cluster, successor, campaign, moment, names=successor.name)
        server.start()
        cluster.wait_healed("db1")


def test_a_rollback_outlives_who_did_it(cluster, folder):
    campaign = hammer.Campaign(folder / "hammer")
    server = cluster.server_of("db1")
    campaign.run(server.volume_url("db1"), "--writes", 800, "--depth", 32, "--seed", 1)
    then = lun_checksum(server.volume_url("db1"), folder / "copy")
    server.ask("mark", "add", "db1", "then")
    campaign.run(server.volume_url("db1"), "--writes", 800, "--depth", 32, "--seed", 2)
    late = lun_checksum(server.volume_url("db1"), folder / "copy")
    assert late != then
    answer = server.rollback("db1", "mark:then", "--force")
    assert lun_checksum(server.volume_url("db1"), folder / "copy") == then
    server.kill()
    successor = cluster.server_of("db1")
    assert lun_checksum(successor.volume_url("db1"), folder / "copy") == then
    assert answer["before_mark"] in [m["name"] for m in successor.ask("mark", "list", "db1")["marks"]]
    successor.ask("rollback", "undo", "db1", "--force")
    assert lun_checksum(successor.volume_url("db1"), folder / "copy") == late
    server.start()
    cluster.wait_healed("db1")
    for name in "ab":
        assert cluster[name].stop() == 0
    assert cluster.image("a").read_bytes() == cluster.image("b").read_bytes()


def test_the_log_goes_round_and_a_lost_image_comes_back(folder, long_run):
    with Cluster(folder, LEASE, log=SMALL_LOG) as cluster:
        cluster.add_volume("db1", size="64M", window="1s")
        cluster.start()
        campaign = hammer.Campaign(folder / "hammer")
        written, round_ = 0, 0
        while written < (10 if long_run else 2) * LOG_BYTES:
            server = cluster.server_of("db1")
            url = server.volume_url("db1")
            if round_ % 4 == 0:
                server.ask("mark", "add", "db1", "before")
                before = lun_checksum(url, folder / "copy")
            report = campaign.run(url, "--writes", 700, "--seed", round_ + 1, "--depth", 40)
            written += report["payload_bytes"]
            if round_ % 4 == 0:  # the mark has kept its moment while the log went on
                view = cluster.view_at("db1", server, "mark:before")
                for name in "ab":
                    assert lun_checksum(cluster[name].url(view["iqn"]), folder / "copy") == before
                server.ask("view", "unexpose", view["name"])
                server.ask("mark", "remove", "db1", "before")
            if round_ % 6 == 1:
                cluster["c"].kill()
                cluster["c"].start()
            if round_ % 6 == 4:
                server.kill()
                cluster.server_of("db1")
                server.start()
            assert campaign.verify(cluster.server_of("db1").volume_url("db1"))["faults"] == []
            round_ += 1
        assert sequence_of(cluster["c"].ask("volume", "show", "db1")["oldest"]) > 0
        # A node loses its image, whose beginning the log has given up.
        cluster.wait_healed("db1")
        lost = next(name for name in "ab" if cluster[name] is not cluster.server_of("db1"))
        assert cluster[lost].stop() == 0
        cluster.image(lost).unlink()
        cluster[lost].start()
        load = campaign.start(cluster.server_of("db1").volume_url("db1"), "--depth", 8)
        mariner.wait_until(lambda: caught_up(cluster, lost), 60, f"{lost} knows what it lacks")
        assert load.running(), load.report()
        load.stop()
        cluster.wait_healed("db1")
        server = cluster.server_of("db1")
        assert campaign.verify(server.volume_url("db1"))["faults"] == []
        for name in "ab":
            assert cluster[name].stop() == 0
        assert cluster.image("a").read_bytes() == cluster.image("b").read_bytes()


def test_a_discard_of_more_than_the_log_has_room_for(folder):
    """Images elsewhere keep nothing under zeros: what a discard takes away the log has to hold, as long as the window
    asks for it."""
    with Cluster(folder, LEASE, log=SMALL_LOG) as cluster:
        cluster.add_volume("db1", size="384M", window="1s")
        cluster.start()
        server = cluster.server_of("db1")
        url = server.volume_url("db1")
        for byte in range(1, 4):
            mariner.qemu_io(url, *(f"write -P {byte} {at}M 16M" for at in range(0, 384, 16)))
        cluster.wait_caught_up("db1")
        mariner.qemu_io(url, "discard 0 384M")
        mariner.qemu_io(url, "write -P 9 0 1M", "read -P 9 0 1M", "read -P 0 1M 383M")
        cluster.wait_healed("db1")
        for name in "ab":
            assert cluster[name].stop() == 0
        assert cluster.image("a").read_bytes() == cluster.image("b").read_bytes()
