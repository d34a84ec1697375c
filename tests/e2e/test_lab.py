"""deploy/lab: a switch with IGMP snooping and hosts in network namespaces, and every fault that it can make."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time

import pytest

import mariner
from datacentre import LAB, Datacentre, Root

pytestmark = pytest.mark.slow

GROUP, OTHER_GROUP = "239.77.0.1", "239.77.0.2"
HOSTS = {"a": "10.77.0.1", "b": "10.77.0.2", "c": "10.77.0.3", "idle": "10.77.0.4"}
MTU, HEADERS = 1500, 14 + 20 + 8  # Ethernet, IPv4, UDP: what the switch's rate counts besides the payload
STREAM = 2000
# Of so many packets 20 % are lost, by 5.5 standard deviations (25 each): a false alarm in more than ten million runs.
LOSS_STREAM, LOST, LOST_MARGIN = 4000, 800, 140

# What runs at each host: hears datagrams and TCP streams all the time, sends and tells when it is asked to.
AGENT = r"""
import json, select, socket, sys, threading, time

class Heard:
    def __init__(self): self.count = self.bytes = 0; self.first = self.last = 0.0
    def add(self, size):
        self.last = time.monotonic(); self.first = self.first or self.last; self.count += 1; self.bytes += size

address, heard = sys.argv[1], {"datagrams": Heard(), "stream": Heard()}
ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
ear.bind(("", 5000))
server = socket.create_server(("", 5001))

def hear():
    while True:
        size = len(ear.recv(65536))
        heard["datagrams"].add(size)
def accept():
    while True:
        connection, _ = server.accept()
        while size := len(connection.recv(1 << 20)): heard["stream"].add(size)
        heard["stream"].ended = True
for each in (hear, accept): threading.Thread(target=each, daemon=True).start()

def join(group): ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton(address))
def send(to, count, size=100, bundle=0):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
        if bundle: mouth.setsockopt(socket.IPPROTO_UDP, 103, bundle)  # UDP_SEGMENT
        for number in range(count):
            if number % 50 == 49: time.sleep(0.004)  # no faster than a busy machine hears
            try: mouth.sendto(bytes(size), (to, 5000))
            except OSError: pass  # no way there
    return time.monotonic()
def blast(to, seconds, size):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
        end = time.monotonic() + seconds
        while time.monotonic() < end: mouth.sendto(bytes(size), (to, 5000))
def stream(to, seconds):
    with socket.socket() as mouth:
        mouth.connect((to, 5001))
        end = time.monotonic() + seconds
        while time.monotonic() < end: mouth.sendall(bytes(1 << 16))
def tell(what, wait_s=0.2):
    time.sleep(wait_s)  # what is on its way
    while what == "datagrams" and select.select([ear], [], [], 0)[0] or what == "stream" and not hasattr(heard[what], "ended"):
        time.sleep(0.01)
    time.sleep(0.02)  # what was received, but is not noted
    told, heard[what] = heard[what], Heard()
    return vars(told)

print("ready", flush=True)
for line in sys.stdin:
    what, *rest = json.loads(line)
    print(json.dumps(globals()[what](*rest)), flush=True)
"""


class Agent:
    def __init__(self, command: list[str], address: str):
        self._process = subprocess.Popen([*command, sys.executable, "-c", AGENT, address],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout.readline() == "ready\n"

    def __getattr__(self, what):
        def ask(*rest):
            self._process.stdin.write(json.dumps([what, *rest]) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())
        return ask

    def heard(self, wait_s: float = 0.2) -> int:
        return self.tell("datagrams", wait_s)["count"]

    def end(self) -> int:
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(timeout=10)


class Lab(Datacentre):
    """One that is up, with an agent at each host: `lab[host]`."""

    def __init__(self, root: Root, name: str, *words: str):
        self._agents: dict[str, Agent] = {}
        super().__init__(root, name, *words)

    def __getitem__(self, host: str) -> Agent:
        if host not in self._agents:
            self._agents[host] = Agent(self.command("run", host), HOSTS[host])
        return self._agents[host]

    def join(self, host: str, group: str):
        self[host].join(group)
        self.wait_for_member(host, group)

    def heard(self, to: str = GROUP, count: int = 200, sender: str = "a") -> dict[str, int]:
        """Who heard how many of so many datagrams that were sent to a group or address."""
        self[sender].send(to, count)
        time.sleep(0.2)
        return {host: self[host].heard(0) for host in HOSTS if host != sender}

    def wait_for_way(self, sender: str, host: str):
        """Until unicast passes; what waited for an address then came with it, and is not counted later."""
        mariner.wait_until(lambda: self.heard(HOSTS[host], 1, sender)[host], 10, f"{host} hears {sender}")
        self[host].heard()

    def end_agents(self):
        for agent in self._agents.values():
            assert agent.end() == 0
        self._agents = {}


@pytest.fixture(scope="module")
def root():
    one = Root()
    before = one.namespaces(), one.labs()
    yield one
    assert (one.namespaces(), one.labs()) == before
    one.close()


@pytest.fixture(scope="module")
def shared_lab(root):
    one = Lab(root, f"test-{os.getpid()}", "--hosts", "a,b,c", "--bystander", "idle", "--rate", "100mbit")
    try:
        one.join("b", GROUP)
        one.join("c", GROUP)
        one["idle"].send(GROUP, 0)  # it is there and listens, but joined nothing
        yield one
        one.end_agents()
        one("down")
    finally:
        one.down()


@pytest.fixture
def lab(shared_lab, request):
    failed_before = request.session.testsfailed
    yield shared_lab
    if request.session.testsfailed != failed_before:  # the next test is not to meet what this one left
        for words in ("loss b 0", "allow-multicast", "plug b", "heal", "querier on", "rate b 100mbit", "rate a 100mbit --both"):
            shared_lab(*words.split())
        for host in HOSTS:
            shared_lab[host].tell("datagrams")


@pytest.fixture
def other_name(root):
    """The name of another lab, which is not there when the test ends."""
    name = f"other-{os.getpid()}"
    yield name
    root.run(LAB, "down", "--force", "--name", name)


def test_members_get_a_stream_once_and_the_bystander_nothing(lab):
    before = lab.counters()
    assert lab.heard(GROUP, STREAM) == {"b": STREAM, "c": STREAM, "idle": 0}
    after = lab.counters()
    arrived = {host: after[host]["multicast_packets"] - before[host]["multicast_packets"] for host in HOSTS}
    assert arrived == {"a": 0, "b": STREAM, "c": STREAM, "idle": 0}
    sent = {key: after["a"][key] - before["a"][key] for key in before["a"]}
    assert STREAM <= sent["tx_packets"] < STREAM + 10
    assert sent["tx_bytes"] >= STREAM * (100 + HEADERS)
    assert lab.members(GROUP) == ["b", "c"]
    assert after["idle"]["multicast_packets"] == 0


def test_a_port_that_joined_nothing_hears_no_reserved_group(lab):
    assert lab.heard("224.0.0.77", 50) == {"b": 0, "c": 0, "idle": 0}


def test_a_bundle_of_64_kib_is_cut_into_frames_and_a_datagram_in_fragments_counts_once(lab):
    before = lab.multicast()["b"]
    lab["a"].send(GROUP, 2, 44 * 1450, 1450)
    assert [lab["b"].heard(), lab["c"].heard()] == [88, 88]
    assert lab.multicast()["b"] == before + 88
    lab["a"].send(GROUP, 3, 9000)
    assert lab["b"].heard() == 3
    assert lab.multicast()["b"] == before + 88 + 3
    assert lab["c"].heard() == 3


def test_loss(lab):
    lab("loss", "b", "20", "--multicast-only")
    heard = lab.heard(GROUP, LOSS_STREAM)
    assert abs(LOSS_STREAM - heard["b"] - LOST) < LOST_MARGIN
    assert heard["c"] == LOSS_STREAM
    assert lab.heard(HOSTS["b"])["b"] == 200  # unicast
    assert "loses 20 % of multicast" in lab("show")

    lab("loss", "b", "20")
    assert abs(LOSS_STREAM - lab.heard(HOSTS["b"], LOSS_STREAM)["b"] - LOST) < LOST_MARGIN

    lab("loss", "b", "0")
    assert lab.heard()["b"] == 200
    for percent, of_100000 in (("0.1", "100"), ("0.001", "1"), ("12.34", "12340")):
        lab("loss", "b", percent, "--from-all")
        assert f"mod 100000 < {of_100000} drop" in lab("run", "switch", "nft", "list", "table", "bridge", "lab")
    lab("loss", "b", "100")
    assert lab.heard() == {"b": 0, "c": 200, "idle": 0}
    lab("loss", "b", "0")
    assert "numgen" not in lab("run", "switch", "nft", "list", "table", "bridge", "lab")


def test_blocked_multicast(lab):
    lab("block-multicast", "b")
    assert lab.heard() == {"b": 0, "c": 200, "idle": 0}
    assert lab.heard(HOSTS["b"])["b"] == 200
    lab.join("b", OTHER_GROUP)  # IGMP goes on
    lab("block-multicast")
    assert lab.heard() == {"b": 0, "c": 0, "idle": 0}
    lab("allow-multicast", "b")
    assert lab.heard() == {"b": 200, "c": 0, "idle": 0}
    lab("allow-multicast")
    assert lab.heard() == {"b": 200, "c": 200, "idle": 0}


def mbit_s(told: dict, headers_of_each: int = 0) -> float:
    return (told["bytes"] + told["count"] * headers_of_each) * 8 / (told["last"] - told["first"]) / 1e6


def check_rates(measure, expected: dict[str, float]):
    """Never faster. Slower up to twice: a machine that is busy with other things holds up whoever sends."""
    for _ in range(3):
        got = measure()
        assert all(got[host] < expected[host] * 1.15 for host in expected), got
        if got == pytest.approx(expected, rel=0.15):
            return
    assert got == pytest.approx(expected, rel=0.15)


def test_rates(lab):
    def multicast() -> dict[str, float]:
        lab["a"].blast(GROUP, 0.7, MTU - 28)
        return {host: mbit_s(lab[host].tell("datagrams"), HEADERS) for host in ("b", "c")}

    def stream() -> dict[str, float]:
        lab["a"].stream(HOSTS["b"], 0.7)
        return {"b": mbit_s(lab["b"].tell("stream")) * MTU / (MTU - 52)}

    check_rates(multicast, {"b": 100, "c": 100})
    check_rates(stream, {"b": 100})
    lab("rate", "b", "20mbit")
    check_rates(multicast, {"b": 20, "c": 100})  # who is slow holds nobody up
    check_rates(stream, {"b": 20})
    lab("rate", "b", "100mbit")
    lab("rate", "a", "40mbit", "--both")
    check_rates(multicast, {"b": 40, "c": 40})
    lab("rate", "a", "none", "--both")
    assert " none" in lab("show")
    lab("rate", "a", "100mbit", "--both")
    check_rates(stream, {"b": 100})


def test_a_pulled_cable(lab):
    lab("pull", "b")
    assert lab.heard() == {"b": 0, "c": 200, "idle": 0}
    assert lab.heard(HOSTS["b"])["b"] == 0
    assert lab.heard(sender="b")["c"] == 0
    assert lab("run", "b", "cat", "/sys/class/net/eth0/carrier") == "1\n"  # neither end is told
    lab("plug", "b")
    lab.wait_for_way("a", "b")
    assert lab.heard() == {"b": 200, "c": 200, "idle": 0}
    assert lab.heard(HOSTS["c"], sender="b")["c"] == 200


def test_a_partition(lab):
    lab("partition", "a,b", "/", "c")
    assert lab.heard() == {"b": 200, "c": 0, "idle": 0}
    assert lab.heard(HOSTS["c"])["c"] == 0
    assert lab.heard(HOSTS["a"], sender="c")["a"] == 0
    for sender in ("a", "c"):  # who is in no part hears, and is heard by, all
        assert lab.heard(HOSTS["idle"], sender=sender)["idle"] == 200
        assert lab.heard(HOSTS[sender], sender="idle")[sender] == 200
    lab("partition", "a/b/c,idle")  # another one instead
    assert lab.heard()["b"] == 0
    lab("heal")
    lab.wait_for_way("a", "c")
    assert lab.heard() == {"b": 200, "c": 200, "idle": 0}
    assert lab.heard(HOSTS["c"])["c"] == 200


def test_without_a_querier_the_switch_floods(lab):
    lab("querier", "off")
    before = lab.multicast()
    assert lab.heard() == {"b": 200, "c": 200, "idle": 0}  # it joined nothing: its kernel does not give it to the program
    assert lab.multicast()["idle"] - before["idle"] == 200
    lab("querier", "on")
    before = lab.multicast()
    assert lab.heard() == {"b": 200, "c": 200, "idle": 0}
    assert lab.multicast()["idle"] == before["idle"]


def test_delay_or_a_plain_no(lab):
    done = lab.root.run(LAB, "--name", lab.name, "delay", "b", "50")
    if done.returncode == 3:
        assert "netem" in done.stderr
        assert "delayed" not in lab("show")
        return
    assert done.returncode == 0, done.stderr
    sent = lab["a"].send(GROUP, 1)
    told = {host: lab[host].tell("datagrams")["last"] - sent for host in ("b", "c")}
    assert told["b"] > 0.045 and told["c"] < 0.045
    lab("delay", "b", "0")
    assert lab.heard()["b"] == 200


def test_run_passes_on_what_it_is_given(lab):
    command = lab.command("run", "a", "sh", "-c", "cat; echo $1 >&2; exit 7", "sh", "--force")
    done = subprocess.run(command, input="in", capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (7, "in", "--force\n")


def test_two_labs_at_once(lab, root, other_name):
    other = Lab(root, other_name, "--hosts", "a,b", "--rate", "none", "--mtu", "9000", "--no-querier")
    other["b"].join(GROUP)
    other["a"].send(GROUP, 100, 8000)
    assert other["b"].heard() == 100
    assert [lab["b"].heard(), lab["c"].heard()] == [0, 0]
    assert lab.heard()["b"] == 200
    assert other["b"].heard() == 0
    assert other.multicast()["b"] == 100  # no fragments: 9000 bytes fit
    again = root.run(LAB, "up", "--name", other_name)
    assert again.returncode == 2 and f"'{other_name}' is up already" in again.stderr
    other.end_agents()
    other("down")
    assert lab.heard()["c"] == 200


def test_down_leaves_nothing_and_ends_others_only_when_told(root, other_name):
    before = root.namespaces(), root.labs()
    other = Lab(root, other_name, "--hosts", "a,b")
    assert root.labs() == before[1] | {other_name}
    assert root.namespaces() == before[0] | {f"mariner-{other_name}-{host}" for host in ("a", "b", "switch")}
    sleeper = subprocess.Popen(other.command("run", "a", "sleep", "600"))
    stubborn = subprocess.Popen(other.command("run", "b", "sh", "-c", "trap '' TERM; echo here; while :; do sleep 600; done"),
                                stdout=subprocess.PIPE, text=True)
    assert stubborn.stdout.readline() == "here\n"
    refused = root.run(*other.command("down")[len(root.prefix):])
    assert refused.returncode == 1
    assert str(sleeper.pid) in refused.stderr and "sleep 600" in refused.stderr and "--force" in refused.stderr
    assert sleeper.poll() is None
    assert other.members(GROUP) == []  # still up
    other("down", "--force")
    assert [sleeper.wait(5), stubborn.wait(5)] == [-15, -9]
    stubborn.stdout.close()
    assert (root.namespaces(), root.labs()) == before


def test_an_up_that_fails_or_is_ended_leaves_nothing(root, other_name, folder):
    before = root.namespaces(), root.labs()
    (folder / "tc").write_text("#!/bin/sh\necho this tc fails >&2\nexit 1\n")
    (folder / "tc").chmod(0o755)
    failed = root.run("env", f"PATH={folder}:{os.environ['PATH']}", LAB, "up", "--name", other_name)
    assert failed.returncode != 0 and "this tc fails" in failed.stderr and "not built" in failed.stderr
    assert (root.namespaces(), root.labs()) == before

    ended = subprocess.Popen([*root.prefix, LAB, "up", "--name", other_name], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    mariner.wait_until(lambda: len(root.namespaces()) >= len(before[0]) + 3, 10, "some namespaces are there")
    ended.terminate()
    _, said = ended.communicate(timeout=20)
    assert ended.returncode != 0 and b"not built" in said
    assert (root.namespaces(), root.labs()) == before

    foreign = f"mariner-{other_name}-b"
    root.run("ip", "netns", "add", foreign)
    refused = root.run(LAB, "up", "--name", other_name)
    assert refused.returncode == 2 and foreign in refused.stderr
    assert root.namespaces() == before[0] | {foreign}
    root.run("ip", "netns", "del", foreign)


WRONG = {
    "no such verb": ("fly", "'fly'", "-h"),
    "option of another verb": ("show --rate 1gbit", "--rate", "deploy/lab show"),
    "option without value": ("up --mtu", "--mtu", "found nothing"),
    "too few words": ("loss b", "HOST PERCENT", "found: b"),
    "too many words": ("pull b c", "deploy/lab pull HOST", "found: b c"),
    "no such lab": ("show --name nowhere", "'nowhere'", "{name}"),
    "bad name": ("up --name A/b", "'A/b'", "small letters"),
    "rate without unit": ("rate b 100", "'100'", "mbit"),
    "rate too small": ("up --name x --rate 1kbit", "'1kbit'", "100kbit"),
    "mtu": ("up --name x --mtu big", "'big'", "576 to 9216"),
    "one host": ("up --name x --hosts a", "2 to 250", "found 1"),
    "empty name": ("up --name x --hosts a,,b", "host ''", "a,,b"),
    "host twice": ("up --name x --hosts a,b --bystander a", "host 'a'", "twice"),
    "long host": ("up --name x --hosts a,abcdefghijklmnop", "'abcdefghijklmnop'", "up to 14"),
    "reserved host": ("up --name x --hosts a,switch", "'switch'", "taken"),
    "unknown host": ("pull d", "'d'", "a b c idle"),
    "empty host": ("block-multicast ''", "host ''", "a b c idle"),
    "unknown host in a partition": ("partition a,b / d", "'d'", "a b c idle"),
    "host in two parts": ("partition a,b / b", "'b' twice", "each host once"),
    "one part": ("partition a,b", "'a,b'", "'/'"),
    "empty part": ("partition a,b /", "found none", "'/'"),
    "loss below 0": ("loss b -5", "'-5'", "0 to 100"),
    "loss above 100": ("loss b 100.1", "'100.1'", "0 to 100"),
    "part of an option": ("loss b 5 --multicast", "no option --multicast;", "--multicast-only"),
    "loss of what": ("loss b 5 --from-all --multicast-only", "--from-all", "both"),
    "delay": ("delay b soon", "'soon'", "milliseconds"),
    "querier": ("querier maybe", "'maybe'", "on or off"),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_is_named_and_changes_nothing(lab, root, case):
    words, *expected = WRONG[case]
    before = root.namespaces(), root.labs(), lab.remembered()
    name = [] if "--name" in words else ["--name", lab.name]
    done = root.run(LAB, *name, *shlex.split(words))
    assert done.returncode == 2
    for part in expected:
        assert part.format(name=lab.name) in done.stderr
    assert (root.namespaces(), root.labs(), lab.remembered()) == before


def test_a_missing_tool_is_named_with_its_package(root, folder):
    tools = {"tc": "iproute2", "bridge": "iproute2", "nft": "nftables", "ethtool": "ethtool"}
    for tool, package in tools.items():
        without = folder / tool
        without.mkdir()
        for other in tools.keys() - {tool}:
            shutil.copy(f"/usr/sbin/{other}", without)
        done = root.run("unshare", "-m", "sh", "-c", f"mount --bind {without} /usr/sbin && exec {LAB} show")
        assert done.returncode == 2 and f"program {tool} is missing" in done.stderr and f"package {package}" in done.stderr


def test_without_root_it_says_what_to_do(root):
    done = root.run("unshare", "-U", LAB, "show")
    assert done.returncode == 2 and "need root" in done.stderr and "sudo" in done.stderr
    assert root.run("unshare", "-U", LAB, "-h").returncode == 0
