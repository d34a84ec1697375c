"""The lab of the multicast transport's benchmark: deploy/lab's hosts and switch, and mariner-trm-load in it."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import servers  # noqa: F401  (first: it shows Python where the end-to-end drivers are)
import mariner

LAB = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "lab"
LOAD = mariner.BUILD / "tests" / "bench" / "mariner-trm-load"
FORGE = mariner.BUILD / "tests" / "bench" / "mariner-trm-forge"
SENDER, RECEIVERS, BYSTANDER = "a", ("b", "c", "d"), "x"
HOSTS = (SENDER, *RECEIVERS)
GROUP = "239.192.7.1:6003"
SKB_DEFER_MAX = pathlib.Path("/proc/sys/net/core/skb_defer_max")  # since Linux 6.0
# What a program may take beyond its own time before it counts as hanging.
PATIENCE_S = 60

MULTICAST, CONNECTIONS, PLAIN = "multicast", "connections", "plain"


def option(name: str) -> str:
    return "--" + name.replace("_", "-")


def arguments(options: dict) -> list[str]:
    """`write_bytes=8192, pin=True` as a program's."""
    words = []
    for name, value in options.items():
        if value is True:
            words.append(option(name))
        elif value is not False:
            words += [option(name), str(value)]
    return words


class Running:
    """A load under way. `lines` grows while it runs; result() waits for its end."""

    def __init__(self, command: list[str], seconds: float):
        self._limit_s = seconds + PATIENCE_S
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines: list[dict] = []
        self._complaints: list[str] = []
        self._readers = [threading.Thread(target=self._read, daemon=True), threading.Thread(target=self._listen, daemon=True)]
        for reader in self._readers:
            reader.start()

    def _read(self):
        for text in self._process.stdout:
            self.lines.append(json.loads(text))

    def _listen(self):
        for text in self._process.stderr:
            self._complaints.append(text.rstrip().removeprefix("mariner-trm-load: "))

    def wait_for(self, t: float) -> dict:
        """The first line of `t` seconds and more after it began to measure."""
        deadline = time.monotonic() + self._limit_s
        while time.monotonic() < deadline:
            for line in self.lines:
                if line.get("t", -1) >= t:
                    return line
            if self._process.poll() is not None:
                break
            time.sleep(0.005)
        raise RuntimeError(f"the load said nothing of second {t}: {self._complaints}")

    @property
    def pids(self) -> dict[str, int]:
        first = self.lines[0]
        return {SENDER: first["sender"]} | dict(zip(RECEIVERS, first["receivers"]))

    def result(self) -> dict:
        """What it measured, with `lines` and `said`; with `failure` if it could not."""
        try:
            code = self._process.wait(self._limit_s)
        except subprocess.TimeoutExpired:
            self.stop()
            return {"failure": "it hangs", "lines": self.lines}
        for reader in self._readers:
            reader.join()
        last = self.lines[-1] if self.lines else {}
        if code != 0 or "bytes_per_second" not in last:
            return {"failure": f"exit status {code}: {' '.join(self._complaints)}"}
        return last | {"failure": "", "lines": [each for each in self.lines if "t" in each], "said": self._complaints}

    def stop(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()


class TrmLab:
    """A switch with a sender, three receivers and a bystander."""

    def __init__(self, rate: str, mtu: int = 1500):
        self.name, self.rate, self.mtu = f"trm-{os.getpid()}-{mtu}", rate, mtu
        self._running: list[Running] = []

    def __enter__(self):
        self._lab("up", "--hosts", ",".join(HOSTS), "--bystander", BYSTANDER, "--rate", self.rate, "--mtu", str(self.mtu))
        return self

    def __exit__(self, *_):
        for running in self._running:
            running.stop()
        self._lab("down", "--force")

    def _lab(self, *words: str) -> str:
        done = subprocess.run([LAB, *words, "--name", self.name], capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"deploy/lab {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def control(self, *words: str):
        self._lab(*words)

    def set_rate(self, rate: str):
        self.rate = rate
        for host in (*HOSTS, BYSTANDER):
            self._lab("rate", host, rate, "--both")

    def room(self, host: str) -> str:
        return f"mariner-{self.name}-{host}"

    def address(self, host: str) -> str:
        return f"10.77.0.{(*HOSTS, BYSTANDER).index(host) + 1}"

    def inside(self, host: str, script: str):
        subprocess.run(["ip", "netns", "exec", self.room(host), "sh", "-c", script], check=True, timeout=30)

    def multicast_packets(self, host: str) -> int:
        """Datagrams of groups that have reached the host, ever."""
        return int(self._lab("counters", host).split("multicast_packets=")[1])

    @contextlib.contextmanager
    def steered(self):
        """What the sender's host has to do is done by the first processor, what the switch and the receivers' hosts have to, by the
        second one: packets that come are handled there (receive packet steering), and packets' buffers are freed there. Otherwise
        the kernel, one for all these hosts, has the sender's processor free what the receivers have read, and interrupts it for that
        (net.core.skb_defer_max; hosts of their own have nothing to free for another)."""
        for host in (*HOSTS, BYSTANDER):
            mask = "1" if host == SENDER else "2"
            self.inside(host, f"echo {mask} > /sys/class/net/eth0/queues/rx-0/rps_cpus")
        self.inside("switch", f"for port in {' '.join((*HOSTS, BYSTANDER))}; do echo 2 > /sys/class/net/$port/queues/rx-0/rps_cpus; done")
        before = SKB_DEFER_MAX.read_text() if SKB_DEFER_MAX.exists() else None
        try:
            if before is not None:
                SKB_DEFER_MAX.write_text("0")
            yield
        finally:
            if before is not None:
                SKB_DEFER_MAX.write_text(before)

    def start(self, way: str, seconds: float, receivers: tuple[str, ...] = RECEIVERS, **options) -> Running:
        command = [str(LOAD), "--way", way, "--group", GROUP, "--seconds", str(seconds)]
        for host in (SENDER, *receivers):
            command += ["--node", f"{host}={self.address(host)}@{self.room(host)}"]
        running = Running(command + arguments(options), seconds + options.get("warmup", 1))
        self._running.append(running)
        return running

    def run(self, way: str, seconds: float, receivers: tuple[str, ...] = RECEIVERS, **options) -> dict:
        return self.start(way, seconds, receivers, **options).result()

    def forge(self, **options) -> subprocess.Popen:
        command = ["ip", "netns", "exec", self.room(BYSTANDER), str(FORGE), "--interface", self.address(BYSTANDER), "--group", GROUP]
        return subprocess.Popen(command + arguments(options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def payload_rate(run: dict) -> float | None:
    """Bytes a second that the slowest of all receivers got."""
    return None if run.get("failure") else min(run["bytes_per_second"])


def wire_share(run: dict) -> float | None:
    """Bytes on the sender's link, what it sends, for a byte of payload that all receivers got."""
    rate = payload_rate(run)
    return None if not rate else run["wire"]["sent"] / (rate * run["seconds"])


def is_exact(run: dict) -> bool:
    """Every write that came was one that was sent, and none is missing."""
    return not run.get("failure") and run["bad"] == 0 and run["missed"] == 0
