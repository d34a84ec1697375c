"""Three volumes on three nodes that share one logger, with cables that can be pulled, and etcd on each node.

Every volume is loaded with 32 writes at a time, and has a register that is read at both nodes all the time, whatever happens."""

import json
import random
import time

import pytest

import hammer
import mariner
from cluster import Cluster, Node
from namespaces import HOST, NODES, PEERS, PORTALS, ClusterNetwork
from register import Register

pytestmark = pytest.mark.slow

LEASE, LONG_LEASE = "3s", "15s"
VOLUMES = ("db1", "db2", "db3")
REGION_BYTES = 16 << 20
REGISTER_BLOCK = (128 << 20) // 512  # behind what the hammer writes
# Writes of one block: their number is what the faults meet, and the log holds them all.
LOAD = ("--depth", 32, "--cells", 8, "--unmap-percent", 2, "--same-percent", 2)


class Lab:
    """The cluster in its network, loads, registers, and what they have seen so far."""

    def __init__(self, folder, lease: str):
        self.folder = folder
        self.network = ClusterNetwork()
        places = {name: self.network.place(name) for name in NODES}
        self.cluster = Cluster(folder, lease, places=places, etcd=NODES, log={"max_size": "8G"})
        self.host = self.network.place(HOST).prefix
        self.campaigns = {name: hammer.Campaign(folder / f"hammer-{name}", REGION_BYTES, self.host) for name in VOLUMES}
        self.loads: dict[str, hammer.Load] = {}
        self.epochs: dict[str, int] = {}
        self.registers: dict[str, Register] = {}
        self.acknowledged = 0

    def start(self):
        for name in VOLUMES:
            self.cluster.add_volume(name)
        self.cluster.start()
        self.spread()
        for name in VOLUMES:
            portals = {node: (self.cluster[node].address, self.cluster[node].port) for node in "ab"}
            self.registers[name] = Register(portals, f"{mariner.IQN_BASE}:{name}", REGISTER_BLOCK, self.host)
            self.begin_load(name)

    def spread(self):
        """The last volume to another master than the first."""
        server = self.cluster.server_of(VOLUMES[-1])
        if server is not self.cluster.server_of(VOLUMES[0]):
            return
        other = self.cluster[mirror_of(server)]
        promote = ("node", "promote", VOLUMES[-1], "--node", other.name)
        mariner.wait_until(lambda: server.cli(*promote, check=False).code == 0, 60,
                           f"{other.name} is promoted\n{self.cluster.tails()}", 0.5)

    # -- loads ---------------------------------------------------------------------------------------

    def begin_load(self, name: str):
        server = self.cluster.server_of(name)
        self.epochs[name] = self.epoch(name)
        self.loads[name] = self.campaigns[name].start(server.volume_url(name), *LOAD)

    def epoch(self, name: str) -> int:
        return int(self.cluster.server_of(name).volume(name)["epoch"])

    def run_for(self, seconds: float):
        """With all loads. One that has ended because its node does not serve any more begins again at the other one."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for name, load in self.loads.items():
                if not load.running():
                    self.verify(name)
                    self.begin_load(name)
            time.sleep(0.05)

    def verify(self, name: str):
        """Ends the load; all that it had acknowledged is read at whoever serves then."""
        load = self.loads[name]
        try:
            report = load.stop() if load.running() else load.report()
            self.acknowledged += report["acknowledged"]
            assert report["fault"] == ""
            undisturbed, why = load.code == hammer.DONE, report
        except hammer.NotBegun as error:
            undisturbed, why = False, error
        verdict = mariner.wait_until(lambda: self._verified(name), 60, f"{name} is read\n{self.cluster.tails()}", 0.2)
        assert verdict["faults"] == []
        assert undisturbed or self.epoch(name) > self.epochs[name], f"nobody took {name} over, but its load ended: {why}"

    def _verified(self, name: str) -> dict | None:
        """None: who was to serve does not. (Without the lead of etcd, too, a short lease ends.)"""
        try:
            return self.campaigns[name].verify(self.cluster.server_of(name, 60).volume_url(name))
        except hammer.NotBegun:
            return None

    def verify_all(self):
        for name in VOLUMES:
            self.verify(name)
            self.begin_load(name)

    # -- the end -------------------------------------------------------------------------------------

    def end(self, histories: tuple[str, ...] = VOLUMES[:1]):
        """`histories`: of these volumes every write is compared."""
        for name in VOLUMES:
            self.verify(name)
            epoch = self.epoch(name)
            register = self.registers[name]
            register.stop()
            assert register.stale() == []
            assert register.reads and register.writes
            assert register.changes_of_server() <= epoch - 1
            self.cluster.wait_healed(name)
            if name in histories:
                self._check_history(name)
        print(f"{self.acknowledged} writes were acknowledged, {sum(len(r.reads) for r in self.registers.values())} numbers read, "
              f"{sum(len(r.writes) for r in self.registers.values())} written")
        for node in self.cluster.nodes.values():
            assert node.stop() == 0
        for number in range(1, len(VOLUMES) + 1):
            assert self.cluster.image("a", number).read_bytes() == self.cluster.image("b", number).read_bytes()

    def _check_history(self, name: str):
        """There is one, with everything that was acknowledged and nothing that was refused; half-way, it is exact at both nodes."""
        server = self.cluster.server_of(name)
        writes: list[dict] = []
        truncated = True
        while truncated:  # one answer has room for some ten thousands
            since = ("--since", f"#{writes[-1]['sequence']}") if writes else ()
            answer = server.ask("history", "show", name, "--writes", 1_000_000, *since)
            truncated = answer["truncated"]
            writes += answer["write_list"]
        # Without the register's.
        answer["write_list"] = [write for write in writes if int(write.get("first_block", 0)) < REGION_BYTES // 4096]
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(answer))
        middle = writes[len(writes) // 2]["sequence"]
        view = self.cluster.view_at(name, server, f"#{middle}")
        for node in (self.cluster["a"], self.cluster["b"]):
            report = self.campaigns[name].verify_moment(node.url(view["iqn"]), file, mariner.sequence_of(view["at"]))
            assert report["faults"] == []

    def close(self):
        for each in (*self.loads.values(), *self.registers.values()):
            each.kill()
        self.cluster.close()
        self.network.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@pytest.fixture
def lab(folder, lease):
    with Lab(folder, lease) as lab:
        lab.start()
        yield lab


def mirror_of(node: Node) -> str:
    return "b" if node.name == "a" else "a"


# What happens to a node, and how it ends. Who is cut off reaches no other node and no etcd but its own, and hosts still reach its
# portal; who is gone reaches nobody.
FAULTS = {
    "killed": (lambda lab, node: node.kill(), lambda lab, node: node.start()),
    "cut off": (lambda lab, node: lab.network.pull(node.name, PEERS), lambda lab, node: lab.network.plug(node.name, PEERS)),
    "gone": (lambda lab, node: lab.network.pull(node.name, PEERS, PORTALS),
             lambda lab, node: lab.network.plug(node.name, PEERS, PORTALS)),
    "paused": (lambda lab, node: node.pause(), lambda lab, node: node.resume()),
}
WHATEVER = [("killed", "mirror"), ("killed", "logger"), ("killed", "master"), ("cut off", "mirror"), ("cut off", "logger"),
            ("cut off", "master"), ("gone", "master"), ("paused", "master")]


def fault(lab: Lab, kind: str, victim: str):
    """`victim`: of the first volume, its master, mirror or logger."""
    begin, end = FAULTS[kind]
    master = lab.cluster.server_of(VOLUMES[0])
    node = {"master": master, "mirror": lab.cluster[mirror_of(master)], "logger": lab.cluster["c"]}[victim]
    coordinated = [name for name in VOLUMES if lab.cluster.server_of(name) is node]
    lab.run_for(0.5)
    began = time.monotonic()
    begin(lab, node)
    try:
        if victim == "logger":
            time.sleep(1)
        else:
            other = lab.cluster[mirror_of(node)]
            for name in coordinated:
                mariner.wait_until(lambda: other.serves(name), 60, f"{other.name} takes {name} over\n{lab.cluster.tails()}")
            # Newer writes: who was cut off or stood still must not answer without them.
            lab.run_for(1)
    finally:
        end(lab, node)
    lab.run_for(0.5)
    for name in VOLUMES:
        lab.cluster.wait_caught_up(name)
    lab.spread()
    lab.verify_all()
    print(f"{victim} {kind}: {node.name}, which coordinated {coordinated}; {time.monotonic() - began:.1f} s")


@pytest.mark.parametrize("lease", [LEASE])
def test_nothing_is_lost_whatever_happens_to_a_node(lab):
    for kind, victim in WHATEVER:
        fault(lab, kind, victim)
    lab.end()


@pytest.mark.long
@pytest.mark.parametrize("lease", [LEASE])
@pytest.mark.parametrize("turn", range(10))
def test_nothing_is_lost_in_any_order(lab, turn, seed):
    for kind, victim in random.Random(seed + turn).sample(WHATEVER, len(WHATEVER)):
        fault(lab, kind, victim)
    lab.end(VOLUMES)


@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_the_leader_of_etcd_is_killed_and_nothing_stops(lab):
    epochs = {name: lab.epoch(name) for name in VOLUMES}
    etcd = lab.cluster.etcd
    etcd.leader().kill()
    etcd.leader()
    lab.run_for(3)
    etcd.start()
    lab.run_for(1)
    assert {name: lab.epoch(name) for name in VOLUMES} == epochs
    lab.end()


@pytest.mark.long
@pytest.mark.parametrize("lease", [LONG_LEASE])
def test_all_of_etcd_is_away(lab):
    """For less than the lease nothing stops; for longer, nothing is served, and then again."""
    epochs = {name: lab.epoch(name) for name in VOLUMES}
    etcd = lab.cluster.etcd
    etcd.kill()
    lab.run_for(2)
    etcd.start()
    lab.run_for(5)
    assert {name: lab.epoch(name) for name in VOLUMES} == epochs
    for name in VOLUMES:
        lab.verify(name)
    etcd.kill()
    nodes = [lab.cluster[name] for name in "ab"]
    mariner.wait_until(lambda: not any(node.serves(name) for node in nodes for name in VOLUMES), 30, "nothing is served")
    time.sleep(1)
    etcd.start()
    for name in VOLUMES:
        lab.begin_load(name)
    lab.run_for(1)
    lab.end()
