"""A Linux host with multipath over the portals of two nodes of a cluster: one of them goes, and ext4 does not notice."""

import base64
import re

import pytest

import guest as linux
import mariner
from cluster import Cluster, Node
from namespaces import Place

pytestmark = [pytest.mark.long, pytest.mark.slow]

IQN = f"{mariner.IQN_BASE}:db1"
PORTALS = {"a": linux.HOST_ADDRESS, "b": linux.HOST_ADDRESS_2}
# What marinerd(8) advises for this lease.
LEASE = "2s"
MULTIPATH = linux.HERE / "guest" / "cluster_multipath.conf"
ISCSID = {"node.session.timeo.replacement_timeout": 3, "node.conn[0].timeo.noop_out_interval": 1,
          "node.conn[0].timeo.noop_out_timeout": 2}
COMPLAINTS = "I/O error.* dm-|EXT4-fs (error|warning)|Remounting|Aborting journal|Call Trace"
# What multipathd says of a path: of device-mapper, of its checker, and the priority that follows from ALUA.
SERVES, STANDS_BY = "active ready 50", "active ghost 1"


class Host:
    """The guest with ext4 on the cluster's volume, and what writes to it."""

    def __init__(self, guest: linux.Guest, cluster: Cluster):
        self.guest, self.cluster, self.run = guest, cluster, guest.run
        text = base64.b64encode(MULTIPATH.read_bytes()).decode()
        self.run(f"echo {text} | base64 -d > /etc/multipath.conf")
        for key, value in ISCSID.items():
            self.run(f"sed -i 's/^{re.escape(key)} .*/{key} = {value}/' /etc/iscsi/iscsid.conf")
        for node in PORTALS:
            self.run(f"iscsiadm -m discovery -t st -p {cluster[node].portal()} > /dev/null")
        self.run("modprobe -a dm-multipath dm-service-time scsi_dh_alua; start_udev; multipathd > /dev/null")
        self.run(f"iscsiadm -m node -T {IQN} -l > /dev/null")
        self.wait_for_paths(cluster.server_of("db1"))
        self.disk = "/dev/mapper/" + mariner.wait_until(lambda: self.run("ls /dev/mapper | grep -v control", check=False), 60,
                                                        "udev names the disk", 0.5)
        self.run(f"/sbin/mke2fs -q -F -t ext4 {self.disk} && mount {self.disk} /mnt")

    def paths(self) -> dict[str, str]:
        """By node."""
        said = self.run("multipathd show paths raw format '%d %t %T %p'", check=False).splitlines()
        by_disk = dict(line.split(" ", 1) for line in said if " " in line)
        return {node: by_disk.get(self.run(f"disk_at {address}"), "none") for node, address in PORTALS.items()}

    def wait_for_paths(self, serving: Node):
        wanted = {node: SERVES if node == serving.name else STANDS_BY for node in PORTALS}
        try:
            mariner.wait_until(lambda: self.paths() == wanted, 60, "the paths", 0.5)
        except mariner.Failed:
            raise mariner.Failed(f"the paths are {self.paths()}, not {wanted}\n{self.cluster.tails()}") from None

    def begin_load(self):
        self.run("rm -f /tmp/result /tmp/enough")
        self.guest.begin("(until [ -e /tmp/enough ]; do verified_writes /mnt/verified 16m || break; done; echo $? > /tmp/result)"
                         " > /tmp/verified 2>&1")
        self.guest.begin("heartbeat /mnt/beat")
        self.beat_for(5)

    def end_load(self):
        self.run("touch /tmp/enough /mnt/beat.stop")
        mariner.wait_until(lambda: self.run("cat /tmp/result /tmp/beats.end 2>/dev/null", check=False).count("\n"), 120,
                           "the load ends", 0.5)
        assert self.run("cat /tmp/result") == "0", self.run("cat /tmp/verified")
        assert self.run("cat /tmp/beats.end") == "0", self.run("cat /tmp/beats.error")

    def now(self) -> float:
        """By the guest's clock, in seconds."""
        return float(self.run("read -r now _ < /proc/uptime; echo $now"))

    def beats(self) -> list[float]:
        return [float(line) for line in self.run("cat /tmp/beats").split()]

    def beat_for(self, seconds: float):
        """Until a write ends that is so much later than now."""
        end = self.now() + seconds
        mariner.wait_until(lambda: float(self.run("tail -n 1 /tmp/beats 2>/dev/null", check=False) or 0) > end, seconds + 60,
                           f"writes end, as {self.cluster.tails()}", 0.5)

    def pause_since(self, start: float) -> float:
        """The longest time between two writes that ended, the second of them after `start`."""
        beats = self.beats()
        return max(second - first for first, second in zip(beats, beats[1:]) if second >= start)

    def failed_paths(self) -> int:
        return int(self.run("dmesg | grep -c 'Failing path'", check=False))

    def complaints(self) -> str:
        return self.run(f"dmesg | grep -E '{COMPLAINTS}'", check=False)


def places(network: linux.Network) -> dict[str, Place]:
    return {name: Place(network.prefix, PORTALS.get(name, "127.0.0.1")) for name in ("a", "b", "c", "etcd")}


@pytest.fixture
def host(folder):
    with linux.Network(tuple(PORTALS.values())) as network, \
            Cluster(folder, LEASE, places=places(network)) as cluster, \
            linux.FullGuest(folder, network) as guest:
        cluster.add_volume("db1")
        cluster.start()
        guest.start()
        yield Host(guest, cluster)


def restarted(node: Node):
    node.start()


def promote_other(node: Node):
    node.cli("node", "promote", "db1", "--node", "b" if node.name == "a" else "a")


def stayed(_: Node):
    """It has not been away."""


# How the coordinator goes, how it comes back, and the longest pause in seconds. Of silence the host knows only after three.
WAYS = {"killed": (Node.kill, restarted, 5), "stopped": (Node.stop, restarted, 5), "silent": (Node.pause, Node.resume, 8),
        "replaced": (promote_other, stayed, 5)}


@pytest.mark.parametrize("way", WAYS)
def test_the_coordinator_goes_and_comes_back_under_load(host, way, capsys):
    go, come_back, pause_s_max = WAYS[way]
    host.begin_load()
    for _ in range(2):
        node = host.cluster.server_of("db1")
        successor = host.cluster["b" if node.name == "a" else "a"]
        start = host.now()
        go(node)
        host.beat_for(10)
        gone_s = host.pause_since(start)

        start = host.now()
        come_back(node)
        host.wait_for_paths(successor)
        settled = host.failed_paths()
        host.beat_for(6)
        back_s = host.pause_since(start)
        with capsys.disabled():
            print(f"\n{node.name} {way}: longest pause of writes {gone_s:.2f} s, when it is back {back_s:.2f} s")
        assert gone_s <= pause_s_max and back_s <= pause_s_max
        assert host.failed_paths() == settled, "the path in standby is left alone"
        assert host.complaints() == ""
    host.end_load()

    host.run(f"umount /mnt && e2fsck -fn {host.disk}")
    assert host.complaints() == ""
    host.cluster.wait_healed("db1")
    for name in "abc":
        assert host.cluster[name].stop() == 0
    assert host.cluster.image("a").read_bytes() == host.cluster.image("b").read_bytes()


def test_what_the_paths_say_of_themselves_and_of_each_other(host):
    standby = "Logical unit not accessible, target port in standby state"
    transition = "Logical unit not accessible, asymmetric access state transition"
    disks = {node: "/dev/" + host.run(f"disk_at {address}") for node, address in PORTALS.items()}

    def says(node: str) -> str:
        return host.run(f"sg_turs -v {disks[node]}", check=False)

    def groups(node: str) -> list[tuple[str, str]]:
        said = host.run(f"sg_rtpg -d {disks[node]}")
        return re.findall(r"target port group id : (\S+) .*\n.*asymmetric access state : \S+ \((.*)\)", said)

    serving = host.cluster.server_of("db1").name
    other = "b" if serving == "a" else "a"
    assert standby in says(other) and standby not in says(serving)
    numbers = {node: f"{host.cluster[node].number:#x}" for node in PORTALS}
    states = {numbers[serving]: "active/optimized", numbers[other]: "standby"}
    assert dict(groups("a")) == dict(groups("b")) == states
    pages = {host.run(f"sg_vpd --page=di_lu {disks[node]} | tail -n +2") for node in PORTALS}
    assert len(pages) == 1, "one LUN"

    host.begin_load()
    host.cluster.etcd.kill()
    mariner.wait_until(lambda: all(transition in says(node) for node in PORTALS), 30, "nobody coordinates", 0.5)
    host.cluster.etcd.start()
    host.beat_for(5)
    host.end_load()
    assert host.complaints() == ""
