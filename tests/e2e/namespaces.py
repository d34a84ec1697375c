"""Network namespaces: single ones, and those of a cluster's nodes, each with a cable to two switches."""

import dataclasses
import os
import subprocess

import mariner


class Namespace:
    """A network namespace. `prefix` runs a command in it.

    Without root it is in a user namespace, where one may do the same; `beside` names the one to share that of. It ends with
    this process."""

    def __init__(self, beside: "Namespace | None" = None):
        own_user = os.geteuid() != 0
        enter = ["nsenter", "-t", str(beside.pid), "-U", "--preserve-credentials"] if own_user and beside else []
        new_user = ["-Ur"] if own_user and not beside else []
        self._holder = subprocess.Popen([*enter, "unshare", *new_user, "-n", "sh", "-c", "echo here; exec cat"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if not self._holder.stdout.readline():
            why = self._holder.stderr.read().decode().strip()
            self.close()
            raise mariner.Failed(f"this test needs network namespaces (root, or user namespaces): {why}")
        user = ["-U", "--preserve-credentials"] if own_user else []
        self.prefix = ["nsenter", "-t", str(self.pid), *user, "-n"]
        self.run("ip link set lo up")

    @property
    def pid(self) -> int:
        return self._holder.pid

    def run(self, command: str):
        done = subprocess.run([*self.prefix, *command.split()], capture_output=True, text=True, timeout=20)
        if done.returncode != 0:
            raise mariner.Failed(f"{command}: {done.stderr.strip()}")

    def close(self):
        """What runs in it keeps it; nobody else reaches it."""
        self._holder.kill()
        self._holder.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a process runs: what is put before its command, and its addresses for hosts and for other nodes."""
    prefix: list[str] = dataclasses.field(default_factory=list)
    portal: str = "127.0.0.1"
    peer: str = "127.0.0.1"


# The switches: between hosts and nodes, and among nodes.
PORTALS, PEERS = "portals", "peers"
NODES, ETCD, HOST = ("a", "b", "c"), "etcd", "host"


class ClusterNetwork:
    """A namespace for each node, for etcd and for the host. The host is on one switch with the nodes' portals, etcd on another
    one with the nodes; cables can be pulled. `rate` (as tc has it) is that of each end of a cable; none: as fast as it goes."""

    def __init__(self, rate: str = ""):
        self._rooms: dict[str, Namespace] = {}
        self._cables: dict[tuple[str, str], str] = {}
        try:
            self._switches = self._add("switches")
            for switch in (PORTALS, PEERS):
                self._switches.run(f"ip link add {switch} type bridge")
                self._switches.run(f"ip link set {switch} up")
            for number, place in enumerate((*NODES, ETCD, HOST), start=1):
                self._add(place)
                for subnet, switch in enumerate((PORTALS, PEERS), start=1):
                    if place == (HOST if switch == PEERS else ETCD):
                        continue
                    self._connect(place, switch, f"10.99.{subnet}.{number}/24", rate)
        except BaseException:
            self.close()
            raise

    def _add(self, name: str) -> Namespace:
        self._rooms[name] = Namespace(beside=next(iter(self._rooms.values()), None))
        return self._rooms[name]

    def _connect(self, place: str, switch: str, address: str, rate: str):
        room, port = self._rooms[place], f"{place}-{switch}"
        self._switches.run(f"ip link add {port} type veth peer name {switch} netns {room.pid}")
        self._switches.run(f"ip link set {port} master {switch} up")
        room.run(f"ip addr add {address} dev {switch}")
        room.run(f"ip link set {switch} up")
        if rate:
            for end, device in ((room, switch), (self._switches, port)):
                end.run(f"tc qdisc add dev {device} root tbf rate {rate} burst 64kb latency 50ms")
        self._cables[place, switch] = address.split("/")[0]

    def place(self, name: str) -> Place:
        return Place(self._rooms[name].prefix, self._cables.get((name, PORTALS), ""), self._cables.get((name, PEERS), ""))

    def pull(self, place: str, *switches: str):
        """Nothing passes any more; neither end is told."""
        for switch in switches:
            self._switches.run(f"ip link set {place}-{switch} nomaster")

    def plug(self, place: str, *switches: str):
        for switch in switches:
            self._switches.run(f"ip link set {place}-{switch} master {switch}")

    def close(self):
        for room in self._rooms.values():
            room.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
