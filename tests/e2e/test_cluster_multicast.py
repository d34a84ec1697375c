"""Three nodes in a datacentre whose switch filters multicast: writes go once, and whatever multicast loses, nothing is lost."""

import itertools
import os
import random
import re
import subprocess
import sys
import time

import pytest

import hammer
import mariner
from cluster import Cluster, Node
from datacentre import Datacentre, Root
from register import Register

pytestmark = pytest.mark.slow

GROUP, PORT = "239.192.7.1", 6003
BYSTANDER = "idle"
HOSTS = ("a", "b", "c", "etcd", "host", BYSTANDER)
VOLUME = "db1"
REGION_BYTES = 32 << 20
REGISTER_BLOCK = (48 << 20) // 512  # behind what the hammer writes
# Writes of 64 KiB: few packets but those of multicast.
LARGE = ("--cells", 128, "--unmap-percent", 0, "--same-percent", 0, "--read-percent", 0)
PAUSE_MAX_S = 1.0

# Sends datagrams to the group: bytes at random; then datagrams that it has heard there, some bits of which are others; as they are;
# and with places in the stream that nobody has given yet.
FORGER = r"""
import random, select, socket, struct, sys, time
group, port, own, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ear.bind((group, port))
ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton(own))
ear.setblocking(False)
mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(own))
mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
chance, sent, heard = random.Random(7), 0, 0
end = time.monotonic() + seconds
while time.monotonic() < end:
    forged = [chance.randbytes(chance.randrange(1, 1400)) for _ in range(3)]
    if select.select([ear], [], [], 0.005)[0]:
        for _ in range(8):
            try: datagram = ear.recv(65536)
            except BlockingIOError: break
            heard += 1
            other = bytearray(datagram)
            other[chance.randrange(len(other))] ^= 1 << chance.randrange(8)
            start, = struct.unpack_from("<Q", datagram, 8)
            ahead = bytearray(datagram)
            struct.pack_into("<Q", ahead, 8, start + chance.randrange(1 << 22))
            forged += [bytes(other), datagram, bytes(ahead)]
    for each in forged:
        mouth.sendto(each, (group, port))
        sent += 1
print(sent, heard)
"""


# More than a node that stands still has room for.
FLOODER = r"""
import socket, sys
group, port, own = sys.argv[1], int(sys.argv[2]), sys.argv[3]
mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(own))
for _ in range(30_000): mouth.sendto(bytes(1000), (group, port))
"""


class Multicasting:
    """The cluster in its datacentre, and what it shows."""

    def __init__(self, folder, root: Root, name: str):
        self.folder = folder
        self.datacentre = Datacentre(root, name, "--bystander", BYSTANDER, "--rate", "1gbit", hosts=HOSTS[:-1])
        try:
            places = {host: self.datacentre.place(host) for host in HOSTS[:-1]}
            self.host = places["host"].prefix
            self.host_address = places["host"].peer
            self.cluster = Cluster(folder, places=places, replication={"mode": "multicast", "group": f"{GROUP}:{PORT}"})
            self.cluster.add_volume(VOLUME, "64M")
        except BaseException:
            self.datacentre.down()
            raise
        self.campaign = hammer.Campaign(folder / "hammer", REGION_BYTES, self.host)

    @property
    def server(self) -> Node:
        return self.cluster.server_of(VOLUME)

    @property
    def url(self) -> str:
        return self.server.volume_url(VOLUME)

    def ways(self) -> dict[str, str]:
        """How other nodes get the writes, as the server says."""
        return {each["node"]: each["payloads"] for each in self.server.volume(VOLUME)["replicas"] if each.get("payloads")}

    def receivers(self) -> list[str]:
        return [name for name in "abc" if name != self.server.name]

    def wait_for_multicast(self, timeout_s: float = 20):
        expected = {name: "multicast" for name in self.receivers()}
        mariner.wait_until(lambda: self.ways() == expected, timeout_s, f"{expected}; {self.ways()}\n{self.cluster.tails()}", 0.05)

    def metric(self, name: str, node: Node | None = None, **labels: str) -> float:
        """Of the server, if nobody else is named; the sum of those that have these labels."""
        status, text = (node or self.server).http("/metrics")
        assert status == 200, text
        lines = re.findall(rf"^mariner_multicast_{name}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        return sum(float(value) for has, value in lines if wanted <= set(has.split(",")))

    def sent_bytes(self, node: Node | None = None) -> float:
        return self.metric("payload_bytes_total", node, way="multicast")

    def write(self, count: int, *options):
        """That many large writes, and all of them read again."""
        self.campaign.run(self.url, "--writes", count, "--depth", 16, *LARGE, *options)
        assert self.campaign.verify(self.url)["faults"] == []

    def register(self) -> Register:
        portals = {self.server.name: (self.server.address, self.server.port)}
        return Register(portals, f"{mariner.IQN_BASE}:{VOLUME}", REGISTER_BLOCK, self.host)

    def findings(self, node: Node | None = None) -> list[str]:
        answer = (node or self.server).cli("--json", "doctor", check=False).json()
        return [f'{each["level"]}: {each["found"]}' for each in answer["findings"] if each["check"] == "multicast"]

    def said(self, text: str, node: Node) -> int:
        return sum(text in line for line in node.log_lines())

    def on_host(self, program: str, *arguments: str) -> subprocess.Popen:
        """A Python program, given the group and the host's own address."""
        return subprocess.Popen([*self.host, sys.executable, "-c", program, GROUP, str(PORT), self.host_address, *arguments],
                                stdout=subprocess.PIPE, text=True)

    def close(self):
        self.cluster.close()
        self.datacentre.down()


@pytest.fixture(scope="module")
def root():
    with Root() as one:
        yield one
        # (Others may have labs of theirs.)
        assert not {each for each in one.namespaces() | one.labs() if f"-{os.getpid()}" in each}


@pytest.fixture(scope="module")
def running(module_folder, root):
    nodes = Multicasting(module_folder, root, f"multicast-{os.getpid()}")
    try:
        nodes.cluster.start()
        nodes.wait_for_multicast()
        yield nodes
        nodes.cluster.wait_healed(VOLUME)
        for node in nodes.cluster.nodes.values():
            assert node.stop() == 0
        assert nodes.cluster.image("a").read_bytes() == nodes.cluster.image("b").read_bytes()
    finally:
        nodes.close()


@pytest.fixture
def nodes(running):
    """Everybody takes part, and the switch does nothing to it."""
    running.wait_for_multicast()
    yield running
    for words in ("loss a 0", "loss b 0", "loss c 0", "allow-multicast"):
        running.datacentre(*words.split())


def test_a_payload_is_on_the_coordinators_cable_once_and_the_bystander_hears_nothing(nodes):
    server = nodes.server.name
    assert set(nodes.datacentre.members(GROUP)) == set(nodes.receivers())
    before, sent = nodes.datacentre.counters(), nodes.sent_bytes()
    count, bytes_each = 400, 128 * 512
    nodes.campaign.run(nodes.url, "--writes", count, "--depth", 16, *LARGE)
    payload = nodes.sent_bytes() - sent
    nodes.cluster.wait_healed(VOLUME)
    after = nodes.datacentre.counters()
    on_cable = {host: {key: after[host][key] - before[host][key] for key in after[host]} for host in HOSTS}
    print(f"{payload:.0f} bytes of payload by multicast; sent by {server}: {on_cable[server]['tx_bytes']}")
    assert payload == count * bytes_each
    # Twice would be by unicast; headers, answers to the host and the cluster's store are the rest.
    assert payload < on_cable[server]["tx_bytes"] < payload * 1.3
    for name in nodes.receivers():
        assert on_cable[name]["multicast_packets"] > payload / 1500
        assert on_cable[name]["rx_bytes"] > payload
    for name in (BYSTANDER, "host", "etcd", server):
        assert after[name]["multicast_packets"] == 0
    assert nodes.campaign.verify(nodes.url)["faults"] == []
    assert nodes.findings() == ["ok: nobody who is connected has been without it for long"]
    text = nodes.server.cli("replica", "status").out
    assert text.count("writes come by multicast") == 2, text


def test_of_what_is_lost_on_the_way_nothing_is_missing(nodes):
    lossy = "b" if nodes.server.name == "a" else "a"
    nodes.datacentre("loss", lossy, "5", "--multicast-only")
    sent, repaired = nodes.sent_bytes(), nodes.metric("repaired_bytes_total", replica=lossy)
    nodes.write(600)
    sent, repaired = nodes.sent_bytes() - sent, nodes.metric("repaired_bytes_total", replica=lossy) - repaired
    print(f"{sent:.0f} bytes by multicast, of which {lossy} was sent {repaired:.0f} again ({repaired / sent:.1%})")
    assert nodes.metric("repairs_total", replica=lossy) > 0
    assert 0.02 < repaired / sent < 0.12
    # In everything that it gets.
    nodes.datacentre("loss", lossy, "5")
    nodes.write(100)


def test_multicast_that_is_blocked_holds_writes_up_for_less_than_a_second_and_is_used_again(nodes):
    server, blocked = nodes.server, "c"
    register = nodes.register()
    load = nodes.campaign.start(nodes.url, *LARGE, "--depth", 4)
    try:
        sent = nodes.sent_bytes()
        mariner.wait_until(lambda: nodes.sent_bytes() > sent + (4 << 20), 20, "writes go by multicast")
        before = time.monotonic()
        nodes.datacentre("block-multicast", blocked)
        mariner.wait_until(lambda: nodes.ways().get(blocked) == "connection", 10, "the server notices", 0.01)
        noticed = time.monotonic()
        assert nodes.metric("admitted", replica=blocked) == 0
        carried = nodes.metric("payload_bytes_total", way="connection")
        mariner.wait_until(lambda: nodes.metric("payload_bytes_total", way="connection") > carried + (4 << 20), 20, "writes go on")
        assert nodes.said(f"not by multicast node={blocked} ", server) == 1
        admissions = nodes.said(f"go by multicast node={blocked} ", server)
        nodes.datacentre("allow-multicast", blocked)
        allowed = time.monotonic()
        nodes.wait_for_multicast()
        back = time.monotonic()
        assert nodes.said(f"go by multicast node={blocked} ", server) == admissions + 1
        sent = nodes.sent_bytes()
        mariner.wait_until(lambda: nodes.sent_bytes() > sent + (4 << 20), 20, "writes go by multicast again")
        after = time.monotonic()
        report = load.stop()
    finally:
        load.kill()
        register.stop()
    assert report["fault"] == "" and load.code == hammer.DONE
    assert nodes.campaign.verify(nodes.url)["faults"] == []
    assert register.stale() == []
    answers = [seen.answered for seen in register.writes if before - 0.5 < seen.answered < after]
    pause = max(later - earlier for earlier, later in itertools.pairwise(answers))
    print(f"noticed after {noticed - before:.2f} s, used again {back - allowed:.2f} s after it was allowed; "
          f"the longest pause of writes was {pause:.3f} s")
    assert pause <= PAUSE_MAX_S
    assert sum(nodes.metric("dismissals_total", replica=blocked, reason=reason) for reason in ("deaf", "stuck", "slow")) > 0


def test_the_doctor_says_who_gets_no_multicast_and_what_to_do(nodes):
    nodes.datacentre("block-multicast", "c")
    nodes.campaign.run(nodes.url, "--writes", 200, "--depth", 16, *LARGE)
    mariner.wait_until(lambda: nodes.findings()[0].startswith("warning"), 20, "the doctor says so", 0.2)
    answer = nodes.server.cli("doctor", check=False).out
    assert f"node c has had no multicast of group {GROUP}:{PORT} for " in answer, answer
    for part in ("IGMP querier", "VLAN", "packet filter", "interface of node c"):
        assert part in answer


def test_forged_datagrams_change_nothing_but_a_counter(nodes):
    receivers = [nodes.cluster[name] for name in nodes.receivers()]
    before = {kind: sum(nodes.metric("strange_datagrams_total", node, kind=kind) for node in receivers)
              for kind in ("malformed", "unknown", "forged")}
    load = nodes.campaign.start(nodes.url, *LARGE, "--depth", 4)
    forger = nodes.on_host(FORGER, "3")
    try:
        sent, heard = map(int, forger.communicate(timeout=30)[0].split())
        assert load.stop()["fault"] == ""
        assert load.code == hammer.DONE
    finally:
        forger.kill()
        forger.communicate()
        load.kill()
    assert nodes.campaign.verify(nodes.url)["faults"] == []
    grown = {kind: sum(nodes.metric("strange_datagrams_total", node, kind=kind) for node in receivers) - count
             for kind, count in before.items()}
    print(f"{sent} datagrams were forged, after {heard} that were heard: {grown}")
    assert heard > 0 and all(count > 0 for count in grown.values())
    nodes.wait_for_multicast()
    for node in nodes.cluster.nodes.values():
        assert node.process.poll() is None


def test_what_the_kernel_had_no_room_for_is_counted_and_told(nodes):
    node = nodes.cluster["c"]
    before = nodes.metric("overflows_total", node)
    node.pause()
    try:
        assert nodes.on_host(FLOODER).wait(30) == 0
    finally:
        node.resume()
    nodes.wait_for_multicast()
    mariner.wait_until(lambda: nodes.metric("overflows_total", node) > before, 10, "it is counted", 0.1)
    warnings = [each for each in nodes.findings(node) if each.startswith("warning: the kernel had no room for ")]
    assert len(warnings) == 1, nodes.findings(node)
    nodes.write(50)


@pytest.mark.parametrize("victim", ["mirror", "logger"])
def test_a_receiver_that_is_killed_takes_part_again_when_it_is_back(nodes, victim):
    node = nodes.cluster["c"] if victim == "logger" else nodes.cluster["b" if nodes.server.name == "a" else "a"]
    load = nodes.campaign.start(nodes.url, *LARGE, "--depth", 4)
    try:
        sent = nodes.sent_bytes()
        mariner.wait_until(lambda: nodes.sent_bytes() > sent + (2 << 20), 20, "writes go by multicast")
        node.kill()
        mariner.wait_until(lambda: node.name not in nodes.ways(), 20, "it is missed", 0.05)
        node.start()
        nodes.wait_for_multicast()
        sent = nodes.sent_bytes()
        mariner.wait_until(lambda: nodes.sent_bytes() > sent + (2 << 20), 20, "writes go by multicast again")
        report = load.stop()
    finally:
        load.kill()
    assert report["fault"] == "" and load.code == hammer.DONE
    assert nodes.campaign.verify(nodes.url)["faults"] == []
    nodes.cluster.wait_caught_up(VOLUME)


def test_another_coordinator_multicasts_in_its_turn(nodes):
    first = nodes.server
    second = nodes.cluster["b" if first.name == "a" else "a"]
    nodes.write(50)
    nodes.cluster.wait_caught_up(VOLUME)
    first.cli("node", "promote", VOLUME, "--node", second.name)
    mariner.wait_until(lambda: second.serves(VOLUME), 30, f"{second.name} serves\n{nodes.cluster.tails()}")
    nodes.wait_for_multicast()
    mariner.wait_until(lambda: set(nodes.datacentre.members(GROUP)) == {first.name, "c"}, 20, "who sends does not listen", 0.1)
    assert first.volume(VOLUME)["state"] == "standby"
    before = nodes.sent_bytes(first)
    nodes.write(200)
    assert nodes.sent_bytes(second) >= 200 * 128 * 512
    assert nodes.sent_bytes(first) == before
    assert nodes.metric("admitted", first) == 0


@pytest.mark.long
def test_an_interface_that_comes_up_later_is_used(folder, root):
    nodes = Multicasting(folder, root, f"later-{os.getpid()}")
    try:
        late = "10.78.0.3"
        nodes.cluster["c"].replication = {"interface": late}
        nodes.cluster.start()
        mariner.wait_until(lambda: nodes.ways().get("c") == "connection", 20, "it cannot listen")
        nodes.write(50)
        assert nodes.sent_bytes() == 0
        assert nodes.said(f"no interface of this node has address {late}", nodes.server) == 1
        nodes.datacentre("run", "c", "ip", "addr", "add", f"{late}/24", "dev", "eth0")
        nodes.wait_for_multicast(70)
        nodes.write(50)
        assert nodes.sent_bytes() > 0
    finally:
        nodes.close()


@pytest.mark.long
def test_loss_blocks_and_kills_in_turn(nodes, seed):
    """Half a minute of everything, one after the other, under load. Of two nodes that go shortly after one another the writes would wait:
    only the mirror is killed."""
    chance = random.Random(seed)
    load = nodes.campaign.start(nodes.url, "--depth", 16)
    end = time.monotonic() + 30
    try:
        while time.monotonic() < end:
            fault = chance.choice(["loss", "block", "kill"])
            victim = chance.choice([name for name in nodes.receivers() if fault != "kill" or name != "c"])
            if fault == "loss":
                nodes.datacentre("loss", victim, str(chance.choice([1, 5, 20])), "--multicast-only")
            elif fault == "block":
                nodes.datacentre("block-multicast", victim)
            else:
                nodes.cluster[victim].kill()
            sent = nodes.metric("payload_bytes_total")
            mariner.wait_until(lambda: nodes.metric("payload_bytes_total") > sent + (4 << 20), 30, f"writes go on: {fault} {victim}")
            nodes.datacentre("loss", victim, "0")
            nodes.datacentre("allow-multicast")
            if fault == "kill":
                nodes.cluster[victim].start()
            nodes.wait_for_multicast(70)
        report = load.stop()
    finally:
        load.kill()
    assert report["fault"] == "" and load.code == hammer.DONE
    assert nodes.campaign.verify(nodes.url)["faults"] == []
