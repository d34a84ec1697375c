"""deploy/lab for tests: a switch with IGMP snooping and a querier, and hosts in network namespaces of their own."""

import contextlib
import os
import subprocess

import mariner
from namespaces import Place

LAB = str(mariner.ROOT / "deploy" / "lab")
STATE = "/run/mariner-lab"


class Root:
    """Who may make namespaces: root, or else root of a user namespace with a /run of its own, which ends with this process."""

    def __init__(self):
        self.prefix: list[str] = []
        self._holder = None
        if os.geteuid() == 0:
            return
        self._holder = subprocess.Popen(["unshare", "-Urmn", "sh", "-c", "mount -t tmpfs none /run && echo here && exec cat"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if not self._holder.stdout.readline():
            raise mariner.Failed(f"this test needs root or user namespaces: {self._holder.stderr.read().decode().strip()}")
        self.prefix = ["nsenter", "-t", str(self._holder.pid), "-U", "-m", "-n", "--preserve-credentials"]

    def run(self, *command: str, **options) -> subprocess.CompletedProcess:
        return subprocess.run([*self.prefix, *command], capture_output=True, text=True, timeout=60, **options)

    def namespaces(self) -> set[str]:
        return {line.split()[0] for line in self.run("ip", "netns", "list").stdout.splitlines() if line.startswith("mariner-")}

    def labs(self) -> set[str]:
        return set(self.run("ls", STATE).stdout.split())

    def close(self):
        if self._holder:
            self._holder.kill()
            self._holder.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Datacentre:
    """One that is up, with `hosts` in this order. Called, it does what deploy/lab does with these words."""

    def __init__(self, root: Root, name: str, *words: str, hosts: tuple[str, ...] = ()):
        self.root, self.name = root, name
        self._addresses = {host: f"10.77.0.{number}" for number, host in enumerate(hosts, start=1)}
        self("up", *(("--hosts", ",".join(hosts)) if hosts else ()), *words)

    def command(self, *words: str) -> list[str]:
        return [*self.root.prefix, LAB, "--name", self.name, *words]

    def __call__(self, *words: str) -> str:
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise mariner.Failed(f"{words}: exit status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def place(self, host: str) -> Place:
        return Place(self.command("run", host), self._addresses[host], self._addresses[host])

    def wait_for_member(self, host: str, group: str):
        mariner.wait_until(lambda: host in self.members(group), 10, f"the switch knows {host} in {group}", 0.1)

    def members(self, group: str) -> list[str]:
        return next((line.split()[1:] for line in self("show").splitlines() if line.startswith(group + " ")), [])

    def remembered(self) -> str:
        return self.root.run("cat", f"{STATE}/{self.name}/state").stdout

    def counters(self) -> dict[str, dict[str, int]]:
        lines = [line.split() for line in self("counters").splitlines()]
        return {host: {key: int(value) for key, value in (field.split("=") for field in fields)} for host, *fields in lines}

    def multicast(self) -> dict[str, int]:
        return {host: counted["multicast_packets"] for host, counted in self.counters().items()}

    def down(self):
        with contextlib.suppress(mariner.Failed):  # it may be down
            self("down", "--force")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()
