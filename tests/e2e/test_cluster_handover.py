"""Who coordinates a volume is changed on purpose, by command and by a clean stop; and hosts without multipath are sent to who
serves. Real daemons on loopback."""

import struct
import threading
import time

import pytest

import hammer
import iscsi_pdu
import mariner
from cluster import Cluster, Node
from libiscsi_client import GOOD, Session

pytestmark = pytest.mark.slow

IQN = f"{mariner.IQN_BASE}:db1"
# Longer than a busy machine stalls: nobody is replaced here because of silence.
LEASE = "15s"
TRANSITION, STANDS_BY = "2/04/0A", "2/04/0B"
MOVED_TEMPORARILY, UNAVAILABLE = 0x0101, 0x0301


@pytest.fixture
def options():
    return {}


@pytest.fixture
def cluster(folder, options):
    with Cluster(folder, LEASE) as cluster:
        cluster.add_volume("db1", **options)
        yield cluster.start()


def other(cluster: Cluster, node: Node) -> Node:
    return cluster["b" if node.name == "a" else "a"]


def session(node: Node, ready: bool = False) -> Session:
    return Session(node, IQN, ready=ready)


def same_in_the_end(cluster: Cluster) -> bool:
    cluster.wait_healed("db1")
    for node in cluster.nodes.values():
        assert node.stop() == 0
    return cluster.image("a").read_bytes() == cluster.image("b").read_bytes()


def run_for(load: hammer.Load, seconds: float):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert load.running(), load.report()
        time.sleep(0.05)


def test_promoted_back_and_forth_under_load(cluster, folder):
    campaign = hammer.Campaign(folder / "hammer")
    epochs = []
    for turn in range(5):
        server = cluster.server_of("db1")
        successor = other(cluster, server)
        cluster.wait_healed("db1")  # it has caught up
        load = campaign.start(server.volume_url("db1"), "--depth", 32)
        run_for(load, 1)
        asked = cluster["abc"[turn % 3]]  # at any node
        answer = asked.ask("node", "promote", "db1", "--node", successor.name)
        assert (answer["volume"], answer["node"], answer["from"]) == ("db1", successor.name, server.name)
        assert successor.serves("db1"), "it has answered when that is so"
        epochs.append(int(answer["epoch"]))
        report = load.report()
        assert load.code in (hammer.REFUSED, hammer.LOST) and report["acknowledged"] > 0, report
        assert campaign.verify(successor.volume_url("db1"))["faults"] == []
        assert server.volume("db1")["state"] == "standby"
        assert server.volume("db1")["server"] == successor.name
    assert epochs == sorted(set(epochs))
    assert same_in_the_end(cluster)


def test_what_is_under_way_is_answered_and_the_sense_tells_what_goes_on(cluster):
    """A host that writes one after another at the coordinator: GOOD, then transition, then standby, and never nothing."""
    server = cluster.server_of("db1")
    cluster.wait_healed("db1")
    host = session(server)
    senses, stop = [], threading.Event()

    def write():
        while not stop.is_set():
            answer = host.command(struct.pack(">BBIBHB", 0x2A, 0, 0, 0, 8, 0), bytes(4096))
            if answer.sense.startswith("6/"):
                continue
            said = "good" if answer.status == GOOD else answer.sense
            if senses[-1:] != [said]:
                senses.append(said)
    writer = threading.Thread(target=write)
    writer.start()
    mariner.wait_until(lambda: "good" in senses, 20, "writes")
    server.cli("node", "promote", "db1", "--node", other(cluster, server).name)
    mariner.wait_until(lambda: senses[-1] == STANDS_BY, 20, f"standby, not {senses}")
    stop.set()
    writer.join(20)
    assert not writer.is_alive()
    assert [sense for sense in senses if sense != TRANSITION] == ["good", STANDS_BY], senses
    host.close()


def test_a_promotion_that_is_not_possible_says_why(cluster):
    server = cluster.server_of("db1")
    successor = other(cluster, server)
    again = server.cli("node", "promote", "db1")
    assert f"Node {server.name} coordinates db1 already" in again.out
    refusals = [(["db2"], 1, "no volume db2"), (["db1", "--node", "z"], 1, "no node z"),
                (["db1", "--node", "c"], 2, "node c may not serve db1: expected a or b")]
    for words, code, text in refusals:
        answer = server.cli("node", "promote", *words, check=False)
        assert (answer.code, text in answer.err) == (code, True), answer
    cluster.wait_healed("db1")
    would = successor.cli("--dry-run", "node", "promote", "db1")
    assert f"Node {successor.name} would coordinate db1" in would.out and server.serves("db1")
    successor.stop()
    answer = server.cli("node", "promote", "db1", "--node", successor.name, check=False)
    assert answer.code == 1 and f"node {successor.name} is not alive" in answer.err, answer
    assert server.volume("db1")["epoch"] == "1" and server.serves("db1")


def test_who_is_behind_is_not_promoted(cluster, folder):
    server = cluster.server_of("db1")
    successor = other(cluster, server)
    campaign = hammer.Campaign(folder / "hammer")
    load = campaign.start(server.volume_url("db1"), "--depth", 32)
    run_for(load, 1)
    successor.kill()  # its lease goes on for a while

    def behind():
        storages = server.volume("db1")["replicas"][1:]
        return any(each["node"] == successor.name and not each.get("caughtUp", each.get("caught_up")) for each in storages)
    mariner.wait_until(behind, 10, "it is behind")
    answer = cluster["c"].cli("node", "promote", "db1", "--node", successor.name, check=False)
    assert answer.code == 1 and "has not caught up" in answer.err, answer
    run_for(load, 1)
    assert server.serves("db1")
    load.stop()
    assert load.code == hammer.DONE, "nobody has noticed"
    successor.start()
    cluster.wait_healed("db1")
    cluster["c"].cli("node", "promote", "db1", "--node", successor.name)
    assert campaign.verify(successor.volume_url("db1"))["faults"] == []


@pytest.mark.parametrize("options", [{"promote": "manual"}])
def test_of_a_dead_coordinator_somebody_takes_over_who_is_told_to(cluster, folder):
    server = cluster.server_of("db1")
    successor = other(cluster, server)
    campaign = hammer.Campaign(folder / "hammer")
    load = campaign.start(server.volume_url("db1"), "--depth", 32)
    run_for(load, 1)
    server.kill()
    load.report()
    mariner.wait_until(lambda: not any(n.get("alive") for n in successor.status()["nodes"] if n["name"] == server.name), 60,
                       "its lease ends")
    time.sleep(1)
    assert successor.volume("db1")["state"] == "transitioning", "nobody takes over by himself"
    begun = time.monotonic()
    successor.cli("node", "promote", "db1")
    assert successor.serves("db1") and time.monotonic() - begun < 20
    assert campaign.verify(successor.volume_url("db1"))["faults"] == []
    server.start()
    cluster.wait_healed("db1")
    assert successor.serves("db1"), "who comes back takes nothing back"
    assert same_in_the_end(cluster)


def test_a_clean_stop_hands_over_while_hosts_are_still_there(cluster, folder):
    campaign = hammer.Campaign(folder / "hammer")
    for _ in range(2):
        server = cluster.server_of("db1")
        successor = other(cluster, server)
        load = campaign.start(server.volume_url("db1"), "--depth", 32)
        run_for(load, 1)
        host = session(server)
        server.process.terminate()
        said = watch(host)
        load.report()
        assert load.code in (hammer.REFUSED, hammer.LOST)
        assert said[-1] == STANDS_BY and set(said) <= {"good", TRANSITION, STANDS_BY}, said
        mariner.wait_until(lambda: server.process.poll() is not None, 20, "it stops")
        assert server.process.returncode == 0
        assert successor.serves("db1")
        assert campaign.verify(successor.volume_url("db1"))["faults"] == []
        server.start()
        cluster.wait_healed("db1")
    assert same_in_the_end(cluster)


@pytest.mark.parametrize("options", [{"promote": "manual"}])
def test_who_hands_over_to_nobody_stops_at_once(cluster):
    server = cluster.server_of("db1")
    host = session(server)
    begun = time.monotonic()
    server.process.terminate()
    said = watch(host)
    assert set(said) <= {"good", TRANSITION}, said
    mariner.wait_until(lambda: server.process.poll() is not None, 20, "it stops")
    assert time.monotonic() - begun < 10
    assert not other(cluster, server).serves("db1")


def watch(host: Session) -> list[str]:
    """What TEST UNIT READY says until the connection goes or standby is seen; each once in a row."""
    said = []
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and said[-1:] != [STANDS_BY]:
        try:
            answer = host.command(bytes(6))
        except ConnectionError:
            break
        if answer.sense.startswith("6/"):
            continue
        word = "good" if answer.status == GOOD else answer.sense or f"status {answer.status:#x}"
        if word.startswith("status"):
            break
        if said[-1:] != [word]:
            said.append(word)
    return said


@pytest.mark.parametrize("options", [{"redirect": True}])
def test_logins_are_sent_to_who_serves(cluster):
    server = cluster.server_of("db1")
    standby = other(cluster, server)
    mariner.wait_until(lambda: standby.volume("db1").get("server") == server.name, 20, "the other one knows")
    status, keys, connection = iscsi_pdu.login_answer((standby.address, standby.port), IQN)
    connection.close()
    assert status == MOVED_TEMPORARILY and keys["TargetAddress"] == server.portal(), keys

    # A real initiator follows, and follows again when another one serves.
    host = session(standby, ready=True)
    assert [s["target"] for s in server.ask("session", "list")["sessions"]] == [IQN]
    assert write_until_good(host, b"a") == GOOD
    cluster.wait_healed("db1")
    server.cli("node", "promote", "db1", "--node", standby.name)
    assert write_until_good(host, b"b") == GOOD
    mariner.wait_until(lambda: not server.ask("session", "list").get("sessions"), 20, "it has gone there")
    assert [s["target"] for s in standby.ask("session", "list")["sessions"]] == [IQN]
    assert host.command(struct.pack(">BBIBHB", 0x28, 0, 0, 0, 1, 0), expected=512).good() == b"b" * 512
    assert "mariner_login_redirections_total 0" not in standby.http("/metrics")[1]
    host.close()


@pytest.mark.parametrize("options", [{"redirect": True}])
def test_who_stops_sends_its_hosts_on_before_it_goes(cluster):
    """Its portal is the only one that the host knows."""
    server = cluster.server_of("db1")
    successor = other(cluster, server)
    cluster.wait_healed("db1")
    host = session(server, ready=True)
    assert write_until_good(host, b"a") == GOOD
    server.process.terminate()
    assert write_until_good(host, b"b") == GOOD
    assert [s["target"] for s in successor.ask("session", "list")["sessions"]] == [IQN]
    mariner.wait_until(lambda: server.process.poll() is not None, 20, "it stops")
    assert host.command(struct.pack(">BBIBHB", 0x28, 0, 0, 0, 1, 0), expected=512).good() == b"b" * 512
    host.close()


@pytest.mark.parametrize("options", [{"redirect": True, "promote": "manual"}])
def test_while_nobody_serves_a_login_is_asked_to_come_again(cluster):
    server = cluster.server_of("db1")
    standby = other(cluster, server)
    server.stop()
    mariner.wait_until(lambda: standby.volume("db1")["state"] == "transitioning", 20, "nobody serves")
    status, _, connection = iscsi_pdu.login_answer((standby.address, standby.port), IQN)
    connection.close()
    assert status == UNAVAILABLE
    standby.cli("node", "promote", "db1")
    status, _, connection = iscsi_pdu.login_answer((standby.address, standby.port), IQN)
    connection.close()
    assert status == 0


def write_until_good(host: Session, letter: bytes) -> int:
    """As a host does: what is in transition it asks again, also on the way to another node."""
    deadline = time.monotonic() + 30
    answer = None
    while time.monotonic() < deadline:
        answer = host.command(struct.pack(">BBIBHB", 0x2A, 0, 0, 0, 1, 0), letter * 512)
        if answer.status == GOOD:
            break
        assert answer.sense.startswith("6/") or answer.sense == TRANSITION, answer
        time.sleep(0.02)
    return answer.status
