"""PostgreSQL and pgbench: TPC-B's transactions in a cluster of its own, in the file system that is measured.

The cluster has PostgreSQL's defaults, so a commit flushes the log; but its log takes less room, nothing is vacuumed
meanwhile, and nobody listens on the network."""

import contextlib
import dataclasses
import pathlib
import re
import shutil
import signal
import subprocess

import mariner

USER = "postgres"
PROGRAMS = pathlib.Path("/usr/lib/postgresql")
PORT = 5432  # the name of the socket in its folder; nobody listens on the network
SETTINGS = {"listen_addresses": "", "port": PORT, "max_wal_size": "256MB", "min_wal_size": "128MB", "autovacuum_naptime": "1h"}
CLIENTS = (1, 8)
PATIENCE_S = 600


def programs() -> pathlib.Path | None:
    """Of the newest version that is installed."""
    found = [path.parent for path in PROGRAMS.glob("*/bin/initdb") if (path.parent / "pgbench").exists() or shutil.which("pgbench")]
    return max(found, key=lambda path: float(path.parent.name), default=None)


def lacks() -> str:
    """Empty: it can be done here."""
    return "" if programs() else "PostgreSQL is missing: deploy/install-packages.sh --apps"


@dataclasses.dataclass(frozen=True)
class Pgbench:
    id: str
    what: str
    scale: int  # of 100,000 accounts each
    seconds: float  # with each number of clients
    options = "defaults"

    def figures(self) -> dict[str, tuple[str, str, bool]]:
        names = {}
        for clients in CLIENTS:
            who = f"{clients} client{'s' if clients > 1 else ''}"
            names[f"tps_{clients}"] = (f"{who}: transactions", "/s", False)
            names[f"latency_{clients}"] = (f"{who}: a transaction, mean", "ms", True)
        return names

    def run(self, root: pathlib.Path) -> dict:
        found = {"seconds": self.seconds * len(CLIENTS)}
        with Cluster(root) as cluster:
            cluster.bench("-i", "-q", "-s", self.scale)
            for clients in CLIENTS:
                cluster.sql("CHECKPOINT")
                told = cluster.bench("-n", "-c", clients, "-j", min(clients, 2), "-T", max(1, round(self.seconds)))
                found |= {f"{name}_{clients}": value for name, value in figures_of(told).items()}
        return found


class Cluster:
    """In `root`, which becomes the database's user's. It is ended by its process id, never by a name."""

    def __init__(self, root: pathlib.Path):
        self._programs = programs()
        self._data, self._sockets = root / "data", root / "sockets"
        self._log = root / "postgres.log"
        self._root = root
        self._server: subprocess.Popen | None = None

    def __enter__(self) -> "Cluster":
        shutil.chown(self._root, USER, USER)
        self._sockets.mkdir()
        shutil.chown(self._sockets, USER, USER)
        self._run("initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
        settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        with open(self._log, "wb") as log:
            self._server = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self._data), "-k", str(self._sockets), *settings],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/", **_as_user())
        try:
            mariner.wait_until(self._answers, 60, "PostgreSQL answers")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self._server is None:
            return
        for how, patience_s in ((signal.SIGINT, 30), (signal.SIGQUIT, 10), (signal.SIGKILL, 10)):
            self._server.send_signal(how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(patience_s)
                return

    def sql(self, statement: str) -> str:
        return self._run("psql", "-h", self._sockets, "-p", PORT, "-U", USER, "-qAt", "-c", statement, "postgres")

    def bench(self, *arguments) -> str:
        return self._run("pgbench", "-h", self._sockets, "-p", PORT, "-U", USER, *arguments, "postgres")

    def _answers(self) -> bool:
        if self._server.poll() is not None:
            raise mariner.Failed(f"PostgreSQL ended with {self._server.returncode}:\n{self._log.read_text(errors='replace')[-2000:]}")
        try:
            return self.sql("SELECT 1").strip() == "1"
        except mariner.Failed:
            return False

    def _run(self, program: str, *arguments) -> str:
        path = self._programs / program
        done = subprocess.run([str(path if path.exists() else program), *map(str, arguments)], capture_output=True, text=True,
                              timeout=PATIENCE_S, cwd="/", **_as_user())
        if done.returncode != 0:
            raise mariner.Failed(f"{program}: {done.stderr.strip()[-2000:]}")
        return done.stdout


def _as_user() -> dict:
    return {"user": USER, "group": USER, "extra_groups": [], "env": {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/"}}


def figures_of(told: str) -> dict:
    """What pgbench printed: transactions a second without connecting, and their mean latency in ms."""
    tps = re.search(r"^tps = ([\d.]+) \(without initial connection time\)", told, re.MULTILINE)
    latency = re.search(r"^latency average = ([\d.]+) ms", told, re.MULTILINE)
    failed = re.search(r"^number of failed transactions: (\d+)", told, re.MULTILINE)
    if not tps or not latency or (failed and int(failed[1])):
        raise mariner.Failed(f"pgbench said:\n{told}")
    return {"tps": float(tps[1]), "latency": float(latency[1])}
