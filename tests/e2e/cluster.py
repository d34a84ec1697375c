"""A cluster of one's own: etcd and several marinerd with certificates that were enrolled."""

import collections
import json
import os
import pathlib
import signal
import subprocess

import mariner
from namespaces import Place


class EtcdMember:
    """One member of Debian's etcd, with its data in `folder`."""

    def __init__(self, folder: pathlib.Path, place: Place):
        self.folder = folder
        self.place = place
        self.port, self.peer_port = mariner.free_ports(2)
        self.process: subprocess.Popen | None = None

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def endpoint(self) -> str:
        return f"{self.place.peer}:{self.port}"

    @property
    def peer(self) -> str:
        return f"http://{self.place.peer}:{self.peer_port}"

    def start(self, members: "list[EtcdMember]"):
        self.folder.mkdir(parents=True, exist_ok=True)
        client = f"http://{self.endpoint}"
        with open(self.folder / "etcd.log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.place.prefix, "etcd", "--name", self.name, "--data-dir", str(self.folder / "data"),
                 "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", self.peer,
                 "--initial-advertise-peer-urls", self.peer,
                 "--initial-cluster", ",".join(f"{member.name}={member.peer}" for member in members), "--pre-vote",
                 "--log-level", "warn"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)

    def leads(self) -> bool:
        """As it says itself."""
        if self.process is None:
            return False
        code, text = mariner.fetch(f"http://{self.endpoint}/v3/maintenance/status", "{}", self.place.prefix)
        status = json.loads(text) if code == 200 else {}
        return "leader" in status and status["leader"] == status["header"]["member_id"]

    def kill(self):
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


class Etcd:
    """Debian's etcd, with a member at each of `places`."""

    def __init__(self, folder: pathlib.Path, places: list[Place]):
        self.members = [EtcdMember(folder / f"m{number}", place) for number, place in enumerate(places)]

    @property
    def endpoints(self) -> list[str]:
        return [member.endpoint for member in self.members]

    def leader(self) -> EtcdMember:
        return mariner.wait_until(lambda: next((member for member in self.members if member.leads()), None), 30,
                                  "etcd has a leader", 0.1)

    def start(self):
        """Those that do not run."""
        for member in self.members:
            if member.process is None:
                member.start(self.members)

    def kill(self):
        for member in self.members:
            member.kill()


class Node(mariner.Daemon):
    """A node of the cluster, which others reach at `peer_port`."""

    def __init__(self, cluster: "Cluster", name: str, number: int, roles: list[str]):
        place = cluster.places[name]
        super().__init__(cluster.folder / name, address=place.portal, prefix=place.prefix, log=cluster.log, storage=cluster.storage)
        self.cluster = cluster
        self.peer_address = place.peer
        self.name, self.number, self.roles = name, number, roles
        self.peer_port, self.enrol_port = mariner.free_ports(2)
        self.pki = self.folder / "pki"
        self.journal = True  # of a storage node
        self.replication = cluster.replication

    def write_config(self):
        sections = {
            "server": {"iqn_base": mariner.IQN_BASE, "portals": [self.portal()], "admin": str(self.socket),
                       "http": f"127.0.0.1:{self.http_port}", "state_dir": str(self.state)},
            "cluster": {"pki": str(self.pki), "enrol": f"{self.peer_address}:{self.enrol_port}",
                        "listen": [f"{self.peer_address}:{self.peer_port}"], "etcd": self.cluster.etcd.endpoints,
                        "lease": self.cluster.lease, **self.cluster.more},
        }
        if self.replication:
            sections["replication"] = self.replication
        if "logger" in self.roles:
            sections["log"] = self._log
        if "storage" in self.roles:
            sections["storage"] = self._storage
        if "storage" in self.roles and self.journal:
            sections.setdefault("log", {"disks": [str(self.state / "journal")], "max_size": "512M", "track_size": "16M"})
        lines = ["version = 1", f"roles = {json.dumps(self.roles)}"]
        for section, values in sections.items():
            lines.append(f"[{section}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        for node in self.cluster.nodes.values():
            lines += ["[[cluster.node]]", f"id = {node.number}", f'name = "{node.name}"',
                      f'addresses = ["{node.peer_address}:{node.peer_port}"]']
        if "target" in self.roles:
            for volume in self.cluster.volumes:
                lines += ["[[volume]]", *(f"{key} = {json.dumps(value)}" for key, value in volume.items())]
        self.config_file.write_text("\n".join(lines) + "\n" + self.more_config)

    def status(self) -> dict:
        return self.ask("node", "list")

    def volume(self, name: str) -> dict:
        """What this node knows of the volume's replicas; empty: nothing yet."""
        for volume in self.status().get("volumes", []):
            if volume["name"] == name:
                return volume
        return {}

    def views(self) -> list[dict]:
        return self.ask("view", "list").get("views", [])

    def serves(self, name: str) -> bool:
        return self.volume(name).get("state") == "serving"

    def volume_url(self, name: str) -> str:
        return self.url(f"{mariner.IQN_BASE}:{name}")

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def pause(self):
        os.killpg(self.process.pid, signal.SIGSTOP)

    def resume(self):
        os.killpg(self.process.pid, signal.SIGCONT)


class Cluster:
    """Nodes a and b with target and storage, c with the log.

    `more_nodes`: the roles of others, by name. `more`: other keys of [cluster]. `replication`: [replication]. `places`: where each of them runs, and the members of etcd, whose names are in `etcd`; by default on loopback."""

    def __init__(self, folder: pathlib.Path, lease: str = "2s", *, places: dict[str, Place] | None = None,
                 etcd: tuple[str, ...] = ("etcd",), log: dict | None = None, storage: dict | None = None,
                 more: dict | None = None, replication: dict | None = None, more_nodes: dict[str, list[str]] | None = None):
        self.folder = folder
        self.lease = lease
        self.places = collections.defaultdict(Place, places or {})
        self.log = {"max_size": "3G", **(log or {})}
        self.storage = storage or {}
        self.more = more or {}
        self.replication = replication or {}
        self.etcd = Etcd(folder / "etcd", [self.places[name] for name in etcd])
        self.volumes: list[dict] = []
        self.nodes: dict[str, Node] = {}
        for number, (name, roles) in enumerate({"a": ["target", "storage"], "b": ["target", "storage"],
                                                "c": ["logger"], **(more_nodes or {})}.items(), start=1):
            self.nodes[name] = Node(self, name, number, roles)

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    def add_volume(self, name: str, size: str = "256M", storage: tuple[str, ...] = ("a", "b"), **more):
        """`more`: other keys of its [[volume]]."""
        self.volumes.append({"name": name, "size": size, "logger": "c", "storage": list(storage), **more})

    def start(self) -> "Cluster":
        self.etcd.start()
        first = self["a"]
        self._command("node", "init", "--cluster", "north", "--node", first.name, "--pki", first.pki)
        first.start(wait=False)
        mariner.wait_until(lambda: first.cli("node", "list", check=False).code == 0, 30, f"node a answers\n{first.tail()}")
        for name, node in self.nodes.items():
            if node is first:
                continue
            token = first.ask("node", "invite", name)["token"]
            self._command("node", "enrol", token, "--pki", node.pki, prefix=node.prefix)
            node.start(wait=False)
        for node in self.nodes.values():
            node.wait_ready()
        return self

    def _command(self, *arguments, prefix: list[str] | None = None):
        run = subprocess.run([*(prefix or []), mariner.MARINER, *map(str, arguments)], capture_output=True, text=True,
                             timeout=60)
        if run.returncode != 0:
            raise mariner.Failed(f"mariner {arguments}: {run.stdout}{run.stderr}")

    def server_of(self, volume: str, timeout_s: float = 30) -> Node:
        """The node that serves the volume, as soon as one does."""
        def serving():
            for node in self.nodes.values():
                if node.process is not None and "target" in node.roles and node.serves(volume):
                    return node
            return None
        return mariner.wait_until(serving, timeout_s, f"{volume} is served\n" + self.tails())

    def tails(self) -> str:
        return "\n".join(f"-- {node.name}\n{node.tail(12)}" for node in self.nodes.values())

    def wait_healed(self, volume: str, timeout_s: float = 60):
        """Until both images hold all that was acknowledged; without an end while writes come."""
        def healed(logger, storages):
            settled = int(logger.get("settled", 0))
            return all(s["caught_up"] and int(s.get("durable", 0)) >= settled for s in storages)
        self._wait_for_replicas(volume, healed, timeout_s, "heals")

    def wait_caught_up(self, volume: str, timeout_s: float = 60):
        """Until both storage nodes have all that was acknowledged, or know where it is."""
        self._wait_for_replicas(volume, lambda _, storages: all(s["caught_up"] for s in storages), timeout_s, "catches up")

    def _wait_for_replicas(self, volume: str, done, timeout_s: float, what: str):
        def status():
            return self.server_of(volume).volume(volume)

        def reached():
            logger, *storages = status()["replicas"]
            return done(logger, storages)
        try:
            mariner.wait_until(reached, timeout_s, f"{volume} {what}", 0.1)
        except mariner.Failed as error:
            raise mariner.Failed(f"{error}: {status()}\n{self.tails()}") from None

    def view_at(self, volume: str, server: Node, moment: str) -> dict:
        """A view that every node with an image serves by now."""
        view = server.expose(volume, moment)
        for node in self.nodes.values():
            if node.process is not None and "target" in node.roles:
                mariner.wait_until(lambda: any(v["name"] == view["name"] and v.get("iqn") for v in node.views()), 30,
                                   f"{node.name} serves the view")
        return view

    def image(self, node: str, number: int = 1) -> pathlib.Path:
        return self[node].state / "images" / f"{number}.raw"

    def close(self):
        for node in self.nodes.values():
            node.close()
        self.etcd.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
