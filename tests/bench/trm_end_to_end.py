"""Writes of an initiator to a volume on three nodes, real daemons with logging on: by multicast, by connections, and beside a
single node, over links that are shaped."""

import dataclasses
import pathlib
import statistics

import servers  # noqa: F401  (first: it shows Python where the end-to-end drivers are)
import mariner
from cluster import Cluster
from datacentre import Datacentre, Root
from loads import Limits, Load, Target, run_iscsi
from results import Row, get, say
from trm_lab import CONNECTIONS, GROUP, MULTICAST

KIB, MIB = 1 << 10, 1 << 20
VOLUME, COORDINATOR, SINGLE = "bench", "d", "single"
HOSTS = (COORDINATOR, "a", "b", "c", SINGLE, "etcd")
LEASE = "15s"  # nobody is to take over on a machine that is held up
STORAGE = {"pending_memory": "256M", "lag_max": "512M", "apply_delay": "200ms"}
RATES = ("100mbit", "1gbit")
QD32 = Load("qd32", "4 KiB random writes, depth 32", True, True, 4 * KIB, 32)
LOADS = (QD32, Load("8k", "8 KiB random writes, depth 64", True, True, 8 * KIB, 64),
         Load("256k", "256 KiB sequential writes, depth 16", True, False, 256 * KIB, 16))
SINGLE_MIN = 0.9
MODES = {MULTICAST: {"mode": "multicast", "group": GROUP}, CONNECTIONS: {"mode": "unicast"}}

NOTES = """\
- End to end: the initiator runs on the coordinator's host, a node that stores nothing; log, image and image are on hosts of their own behind the
  switch, so each write leaves the coordinator for three nodes, and is answered when the log has it on stable storage. *A single
  node* is a standalone daemon, which the same initiator reaches over the same link. Random writes of 256 MiB; images are written in the background."""


@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    rounds: int
    warmup_s: float
    seconds: float
    region_bytes: int


class EndToEnd:
    def __init__(self, scale: Scale, folder: pathlib.Path):
        self.scale, self.folder = scale, folder
        self.runs: dict[str, list[dict]] = {}

    def measure(self):
        with Root() as root, Datacentre(root, "trm-end-to-end", "--rate", RATES[0], hosts=HOSTS) as datacentre:
            place = datacentre.place(SINGLE)
            with mariner.Daemon(self.folder / SINGLE, address=place.portal, prefix=place.prefix, log={"max_size": "4G"}, storage=STORAGE) as single:
                single.start()
                single.create(VOLUME, str(self.scale.region_bytes))
                for way in (MULTICAST, CONNECTIONS):
                    self._measure(datacentre, way, single)

    def _measure(self, datacentre: Datacentre, way: str, single: mariner.Daemon):
        places = {host: datacentre.place(host) for host in HOSTS}
        say(f"end to end, {way} ...")
        with Cluster(self.folder / way, LEASE, places=places, log={"max_size": "4G"}, storage=STORAGE, replication=MODES[way],
                     more_nodes={COORDINATOR: ["target"]}) as cluster:
            cluster.add_volume(VOLUME, str(self.scale.region_bytes), targets=[COORDINATOR])
            cluster.start()
            node = cluster.server_of(VOLUME)
            for rate in RATES:
                for host in HOSTS:
                    datacentre("rate", host, rate, "--both")
                if way == MULTICAST:
                    self._wait_for_multicast(node)
                for load in LOADS:
                    for _ in range(self.scale.rounds):
                        self._run(f"{rate}.{load.id}.{way}", load, node.volume_url(VOLUME), places[COORDINATOR].prefix)
                        if load is QD32 and way == MULTICAST:
                            self._run(f"{rate}.{load.id}.{SINGLE}", load, single.volume_url(VOLUME), places[COORDINATOR].prefix)

    @staticmethod
    def _wait_for_multicast(node):
        def all_take_part():
            ways = [each["payloads"] for each in node.volume(VOLUME)["replicas"] if each.get("payloads")]
            return len(ways) == 3 and set(ways) == {"multicast"}
        mariner.wait_until(all_take_part, 30, "all nodes get payloads by multicast", 0.1)

    def _run(self, key: str, load: Load, url: str, prefix: list[str]):
        run = run_iscsi(load, Target(url, 0, prefix=tuple(prefix)), Limits(self.scale.warmup_s, self.scale.seconds, self.scale.region_bytes))
        if run["failure"]:
            say(f"end to end, {key}: {run['failure']}")
        self.runs.setdefault(key, []).append(run)

    def _rates(self, key: str) -> list[float]:
        rates = [get(run, "rate") for run in self.runs.get(key, []) if not run["failure"]]
        return rates if len(rates) == self.scale.rounds else []

    def _row(self, key: str, what: str, rival: str, name: str, **more) -> Row:
        ours, theirs = self._rates(f"{key}.{MULTICAST}"), self._rates(f"{key}.{rival}")
        return Row(f"end_to_end.{key}.{rival}", what, "IO/s", statistics.median(ours) if ours else None, statistics.median(theirs) if theirs else None, name,
                   self.scale.seconds * self.scale.rounds, self.scale.name, paired=statistics.median(a / b for a, b in zip(ours, theirs)) if ours and theirs else None,
                   **more)

    def rows(self) -> list[Row]:
        rows = [self._row(f"{rate}.{load.id}", f"end to end, {load.what}, {rate}", CONNECTIONS, "the same by connections") for rate in RATES for load in LOADS]
        rows += [self._row(f"{rate}.{QD32.id}", f"end to end, {QD32.what}, {rate}", SINGLE, "a single node over the same link",
                           **({"goal": SINGLE_MIN, "needs_s": 5} if rate == RATES[0] else {})) for rate in RATES]
        return rows
