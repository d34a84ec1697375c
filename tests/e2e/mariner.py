"""A marinerd of one's own: started in a folder, driven through `mariner`, stopped whatever happens."""

import dataclasses
import hashlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MARINER_BUILD", ROOT / "build" / "release")).resolve()
MARINERD = BUILD / "server" / "node" / "marinerd"
MARINER = BUILD / "server" / "client" / "mariner"
UVFS = BUILD / "uvfs" / "program" / "uvfs"
IQN_BASE = "iqn.2026-11.org.mariner"
LUN = 0


class Failed(Exception):
    """A command that was to succeed did not."""


_ports_given: set[int] = set()
_ports_share = (1, 1)


def share_ports(number: int, count: int):
    """Of every `count` ports this process takes the one with `number`, from 1 on: who runs beside it takes the others."""
    global _ports_share
    _ports_share = (number, count)


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """None is given twice. Below those that the kernel gives to connections: one of these could take a port before who is to listen there."""
    ephemeral = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(10_000 + _ports_share[0], max(ephemeral, 20_000), _ports_share[1])
        with socket.socket() as s:
            try:
                s.bind((address, port))
            except OSError:
                continue
        if port not in _ports_given:
            _ports_given.add(port)
            ports.append(port)
    return ports


def wait_until(condition, timeout_s: float, what: str, interval_s: float = 0.02):
    """Returns the condition's first true value."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {timeout_s} s")
        time.sleep(interval_s)


def fetch(url: str, data: str | None = None, prefix: list[str] | None = None) -> tuple[int, str]:
    """Its status and text; status 0: nobody answers. `data` is posted; `prefix` runs this in a network namespace."""
    if prefix:
        run = subprocess.run([*prefix, sys.executable, "-B", __file__, json.dumps([url, data])], capture_output=True, text=True,
                             timeout=30)
        return tuple(json.loads(run.stdout)) if run.returncode == 0 else (0, run.stderr)
    try:
        with urllib.request.urlopen(url, data and data.encode(), timeout=5) as r:
            return r.status, r.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
        return 0, str(error)


class AdminConnection(http.client.HTTPConnection):
    """Over a daemon's admin socket."""

    def __init__(self, path: pathlib.Path):
        super().__init__("mariner")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(str(self.path))

    def ask(self, method: str, target: str, body: bytes = b"") -> tuple[int, bytes]:
        self.request(method, target, body)
        answer = self.getresponse()
        return answer.status, answer.read()


@dataclasses.dataclass
class Answer:
    code: int
    out: str
    err: str

    def json(self):
        """The answer; of several JSON lines (progress), the last."""
        try:
            return json.loads(self.out)
        except json.JSONDecodeError:
            return json.loads(self.out.strip().splitlines()[-1])


# Committed again and again, so that crashes meet commits and checkpoints.
BUSY_INDEX = {"memory": "64M", "replay_max": 100}


class Daemon:
    """marinerd with its state in `state` and its files for people in `folder`.

    `prefix` is put before its command line, to run it in a network namespace."""

    def __init__(self, folder: pathlib.Path, state: pathlib.Path | None = None, *,
                 address: str = "127.0.0.1", more_addresses: tuple[str, ...] = (), prefix: list[str] | None = None,
                 log: dict | None = None, storage: dict | None = None, index: dict | None = None,
                 window: str = "3d", more_config: str = ""):
        self.folder = folder
        self.state = state or folder / "state"
        self.address = address
        self.more_addresses = more_addresses  # of portals beside it, with the same port
        self.port, self.http_port = free_ports(2)
        # A unix socket's path has at most 107 characters, which a test's folder may pass.
        self.socket = pathlib.Path("/tmp") / f"mariner-{os.getpid()}-{self.port}.sock"
        self.log_file = folder / "marinerd.log"
        self.config_file = folder / "marinerd.toml"
        self.prefix = prefix or []
        self.program = MARINERD
        self.process: subprocess.Popen | None = None
        self._log = {"disks": [str(self.state / "log0")], "max_size": "1G", "track_size": "16M",
                     **(log or {})}
        self._storage = storage or {}
        self._index = index or {}
        self._server: dict = {}
        self.window = window
        self.more_config = more_config  # TOML, behind the rest
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.address, *self.more_addresses)

    # -- its life ---------------------------------------------------------------------------------

    def write_config(self):
        sections = {
            "server": {"iqn_base": IQN_BASE, "portals": [f"{address}:{self.port}" for address in self.addresses],
                       "admin": str(self.socket), "http": f"127.0.0.1:{self.http_port}",
                       "state_dir": str(self.state), **self._server},
            "log": self._log,
            "storage": self._storage,
            "index": self._index,
        }
        lines = ["version = 1", 'roles = ["standalone"]']
        for name, values in sections.items():
            if values:
                lines.append(f"[{name}]")
                lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        self.config_file.write_text("\n".join(lines) + "\n" + self.more_config)

    def start(self, wait: bool = True, configure: bool = True) -> "Daemon":
        """With the configuration that the test asked for, or with that of the file as it is."""
        self.state.mkdir(parents=True, exist_ok=True)
        if configure:
            self.write_config()
        command = [*self.prefix, str(self.program), "--config", str(self.config_file)]
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            start_new_session=True)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, timeout_s: float = 60):
        wait_until(self.is_ready, timeout_s, f"marinerd becomes ready; its log:\n{self.tail()}")

    def is_ready(self) -> bool:
        if self.process.poll() is not None:
            raise Failed(f"marinerd ended with {self.process.returncode}:\n{self.tail()}")
        return self.http("/readyz")[0] == 200

    def configure_server(self, **keys):
        """Other keys of [server]; of a daemon that runs, when it has said so."""
        self._server |= keys
        self._configure_and_wait()

    def configure_log(self, **keys):
        """Likewise of [log]."""
        self._log = self._log | keys
        self._configure_and_wait()

    def _configure_and_wait(self):
        if self.process is None:
            self._configure()
            return
        said = self.times_said("configuration read again")
        self._configure()
        wait_until(lambda: self.times_said("configuration read again") > said, 10, "the configuration is read again")

    def _configure(self):
        self.write_config()
        if self.process is not None:
            self.process.send_signal(signal.SIGHUP)

    def times_said(self, words: str) -> int:
        """In how many lines of its log."""
        return sum(words in line for line in self.log_lines())

    def index_checkpoints(self) -> int:
        """How many checkpoints the index file has seen (index/FORMAT.md section 1)."""
        with open(self.state / "index", "rb") as file:
            copies = [file.read(4096) for _ in range(2)]
        return max(int.from_bytes(copy[56:64], "little") for copy in copies)

    def http(self, path: str) -> tuple[int, str]:
        return fetch(f"http://127.0.0.1:{self.http_port}{path}", prefix=self.prefix)

    def kill(self):
        """As a crash: no warning, no clean-up."""
        if self.process is None:
            return
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def stop(self, timeout_s: float = 20) -> int:
        """As a service manager: SIGTERM, and it has to end by itself."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"marinerd did not end within {timeout_s} s of SIGTERM:\n{self.tail()}")
        self.process = None
        return code

    def close(self):
        self.kill()
        self.socket.unlink(missing_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- what it shows ----------------------------------------------------------------------------

    def tail(self, lines: int = 30) -> str:
        if not self.log_file.exists():
            return "(no log)"
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def log_lines(self) -> list[str]:
        return self.log_file.read_text(errors="replace").splitlines()

    def rss_bytes(self) -> int:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    # -- how it is driven -------------------------------------------------------------------------

    def cli(self, *arguments: str, check: bool = True, input: str | None = None,
            timeout_s: float = 120) -> Answer:
        """Runs `mariner` and returns what it said."""
        run = subprocess.run([str(MARINER), "--socket", str(self.socket), *map(str, arguments)],
                             capture_output=True, text=True, input=input or "", timeout=timeout_s)
        answer = Answer(run.returncode, run.stdout, run.stderr)
        if check and answer.code != 0:
            raise Failed(f"mariner {' '.join(map(str, arguments))}: exit {answer.code}\n"
                         f"{answer.out}{answer.err}\n{self.tail()}")
        return answer

    def ask(self, *arguments: str, **options):
        """Runs `mariner --json` and returns the answer as a dictionary."""
        return self.cli("--json", "--yes", *arguments, **options).json()

    def create(self, name: str, size: str = "256M", *flags: str) -> dict:
        return self.ask("volume", "create", name, "--size", size, "--window", self.window, *flags)

    def portal(self, number: int = 0) -> str:
        return f"{self.addresses[number]}:{self.port}"

    def url(self, iqn: str, lun: int = LUN) -> str:
        return f"iscsi://{self.address}:{self.port}/{iqn}/{lun}"

    def volume_url(self, name: str) -> str:
        return self.url(self.ask("volume", "show", name)["iqn"])

    def history_file(self, name: str, path: pathlib.Path, writes_max: int = 1_000_000) -> pathlib.Path:
        """Every write of the volume, for the hammer."""
        path.write_text(self.cli("--json", "history", "show", name, "--writes", writes_max).out)
        return path

    def expose(self, name: str, moment: str, *flags: str) -> dict:
        return self.ask("view", "expose", f"{name}@{moment}", *flags)

    def rollback(self, name: str, moment: str, *flags: str) -> dict:
        return self.ask("rollback", f"{name}@{moment}", "--force", *flags)


def time_text(ns: int) -> str:
    """A moment as RFC 3339 in UTC with all its nanoseconds."""
    seconds, rest = divmod(ns, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:09d}Z"


def sequence_of(moment: dict) -> int:
    """A 64-bit number is text in JSON, and a zero is left out."""
    return int(moment.get("sequence", 0))


if __name__ == "__main__":  # fetch() in a namespace
    print(json.dumps(fetch(*json.loads(sys.argv[1]))))


def qemu_io(url: str, *commands: str, timeout_s: float = 120, read_only: bool = False) -> str:
    """Commands of qemu-io, each of which succeeds; what it said."""
    words = [word for command in commands for word in ("-c", command)] + ["-r"] * read_only
    result = subprocess.run(["qemu-io", "-f", "raw", "-t", "none", *words, url], capture_output=True, text=True,
                            timeout=timeout_s)
    out = result.stdout + result.stderr
    # Its exit code does not tell of a pattern that differs.
    assert result.returncode == 0 and "failed" not in out, out
    return out


def lun_checksum(url: str, path: pathlib.Path) -> str:
    """Of the whole LUN, by way of a copy in `path`."""
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "raw", url, str(path)], check=True, capture_output=True)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    path.unlink()
    return digest
