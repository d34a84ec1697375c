"""A cluster of one's own: etcd and several marinerd on loopback, with certificates that were enrolled."""

import json
import os
import pathlib
import signal
import subprocess

import mariner


class Etcd:
    """One member of Debian's etcd, with its data in `folder`."""

    def __init__(self, folder: pathlib.Path, prefix: list[str] | None = None):
        self.folder = folder
        self._prefix = prefix or []
        self.port, self.peer_port = mariner.free_ports(2)
        self.process: subprocess.Popen | None = None

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> "Etcd":
        self.folder.mkdir(parents=True, exist_ok=True)
        peer = f"http://127.0.0.1:{self.peer_port}"
        client = f"http://{self.endpoint}"
        with open(self.folder / "etcd.log", "ab") as log:
            self.process = subprocess.Popen(
                [*self._prefix, "etcd", "--name", "m", "--data-dir", str(self.folder / "data"), "--listen-client-urls", client,
                 "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"m={peer}", "--log-level", "warn"],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        return self

    def kill(self):
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


class Node(mariner.Daemon):
    """A node of the cluster, which others reach at `peer_port`."""

    def __init__(self, cluster: "Cluster", name: str, number: int, roles: list[str]):
        super().__init__(cluster.folder / name, address=cluster.addresses.get(name, "127.0.0.1"), prefix=cluster.prefix,
                         log={"max_size": "3G"})
        self.cluster = cluster
        self.name, self.number, self.roles = name, number, roles
        self.peer_port, self.enrol_port = mariner.free_ports(2)
        self.pki = self.folder / "pki"

    def write_config(self):
        sections = {
            "server": {"iqn_base": mariner.IQN_BASE, "portals": [self.portal()], "admin": str(self.socket),
                       "http": f"127.0.0.1:{self.http_port}", "state_dir": str(self.state)},
            "cluster": {"pki": str(self.pki), "enrol": f"127.0.0.1:{self.enrol_port}",
                        "listen": [f"127.0.0.1:{self.peer_port}"], "etcd": [self.cluster.etcd.endpoint],
                        "lease": self.cluster.lease},
        }
        if "logger" in self.roles:
            sections["log"] = self._log
        if "storage" in self.roles:
            sections["storage"] = self._storage
        lines = ["version = 1", f"roles = {json.dumps(self.roles)}"]
        for section, values in sections.items():
            lines.append(f"[{section}]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        for node in self.cluster.nodes.values():
            lines += ["[[cluster.node]]", f"id = {node.number}", f'name = "{node.name}"',
                      f'addresses = ["127.0.0.1:{node.peer_port}"]']
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

    def serves(self, name: str) -> bool:
        return self.volume(name).get("state") == "serving"

    def volume_url(self, name: str) -> str:
        return self.url(f"{mariner.IQN_BASE}:{name}")

    def pause(self):
        os.killpg(self.process.pid, signal.SIGSTOP)

    def resume(self):
        os.killpg(self.process.pid, signal.SIGCONT)


class Cluster:
    """Nodes a and b with target and storage, c with the log.

    `prefix` runs all of it in a network namespace; `addresses` are those of the nodes' portals, if not loopback's."""

    def __init__(self, folder: pathlib.Path, lease: str = "2s", *, prefix: list[str] | None = None,
                 addresses: dict[str, str] | None = None):
        self.folder = folder
        self.lease = lease
        self.prefix = prefix or []
        self.addresses = addresses or {}
        self.etcd = Etcd(folder / "etcd", self.prefix)
        self.volumes: list[dict] = []
        self.nodes: dict[str, Node] = {}
        for number, (name, roles) in enumerate({"a": ["target", "storage"], "b": ["target", "storage"],
                                                "c": ["logger"]}.items(), start=1):
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
            self._command("node", "enrol", token, "--pki", node.pki)
            node.start(wait=False)
        for node in self.nodes.values():
            node.wait_ready()
        return self

    def _command(self, *arguments):
        run = subprocess.run([*self.prefix, mariner.MARINER, *map(str, arguments)], capture_output=True, text=True,
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
        """Until both images hold all that was acknowledged."""
        server = self.server_of(volume)

        def healed():
            status = server.volume(volume)
            logger, *storages = status["replicas"]
            settled = int(logger.get("settled", 0))
            return all(s.get("caughtUp", s.get("caught_up")) and int(s.get("durable", 0)) >= settled for s in storages)
        try:
            mariner.wait_until(healed, timeout_s, f"{volume} heals", 0.1)
        except mariner.Failed as error:
            raise mariner.Failed(f"{error}: {server.volume(volume)}\n{self.tails()}") from None

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
