"""The servers under measurement, each in a process of its own on loopback, ended whatever happens."""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import mariner  # noqa: E402

HOST = "127.0.0.1"
GIB = 1 << 30
WRITE_PIECE = 1 << 20


def write_once(path: pathlib.Path, size: int):
    """A file whose every block was written, so that later writes change no file-system metadata."""
    piece = os.urandom(WRITE_PIECE)
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        for _ in range(size // WRITE_PIECE):
            file.write(piece)
        os.fsync(file.fileno())


def written_bytes(pid: int) -> int:
    """By the process, since it began."""
    io = pathlib.Path(f"/proc/{pid}/io").read_text().split()
    return int(io[io.index("write_bytes:") + 1])


def wait_initialised(pid: int, log_bytes: int, timeout_s: float) -> bool:
    """Until the log's space has been written once, which the daemon does in the background; but for what is reserved and the
    track that has been begun."""
    whole = log_bytes * 0.99 - (16 << 20)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if written_bytes(pid) > whole:
            return True
        time.sleep(0.1)
    return False


class Mariner:
    """A standalone marinerd with volumes (one, mostly) and its log on a preallocated file."""

    def __init__(self, folder: pathlib.Path, volume_bytes: int, log_bytes: int, storage: dict,
                 index: dict | None = None, volumes: int = 1, window: str = "3d"):
        self._daemon = mariner.Daemon(folder, log={"max_size": str(log_bytes)}, storage=storage, index=index, window=window)
        self._volume_bytes = volume_bytes
        self._log_bytes = log_bytes
        self._volumes = volumes
        self.urls: list[str] = []
        self.url = ""  # of the first

    @property
    def pid(self) -> int:
        return self._daemon.process.pid

    @property
    def daemon(self) -> mariner.Daemon:
        return self._daemon

    def __enter__(self):
        self._daemon.start()
        for name in ["bench", *(f"bench{number}" for number in range(2, self._volumes + 1))]:
            self._daemon.create(name, str(self._volume_bytes))
            self.urls.append(self._daemon.volume_url(name))
        self.url = self.urls[0]
        return self

    def __exit__(self, *_):
        self._daemon.close()

    def wait_initialised(self, timeout_s: float) -> bool:
        """Until the log's space has been written once, which it does in the background."""
        return wait_initialised(self.pid, self._log_bytes, timeout_s)

    def written_bytes(self) -> int:
        """By the daemon, since it began."""
        return written_bytes(self.pid)

    def metric(self, name: str) -> float:
        """The sum over a metric's labels."""
        lines = self._daemon.http("/metrics")[1].splitlines()
        return sum(float(line.split()[-1]) for line in lines
                   if line.split("{")[0].split(" ")[0] == name)

    def wait_applied(self, timeout_s: float):
        """Until the image holds every write."""
        mariner.wait_until(lambda: self.metric("mariner_commit_lag_seconds") == 0, timeout_s,
                           "the image catches up", interval_s=0.1)


class Tgtd:
    """A tgtd of one's own, without targets. It listens on `address` and, on the same port, on `more_addresses`.

    `prefix` is put before its command line, and ends in its place (exec)."""

    def __init__(self, folder: pathlib.Path, address: str = HOST, more_addresses: tuple[str, ...] = (),
                 prefix: tuple[str, ...] = ()):
        self.port = mariner.free_ports(1)[0]
        self._folder = folder
        self._address = address
        self._more_addresses = more_addresses
        self._prefix = prefix
        # A unix socket's path has at most 107 characters.
        self._socket = pathlib.Path("/tmp") / f"mariner-bench-tgt-{os.getpid()}-{self.port}"
        # Of whatever is to talk to it.
        self.environment = {**os.environ, "TGT_IPC_SOCKET": str(self._socket)}
        self._process: subprocess.Popen | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def __enter__(self):
        self._folder.mkdir(parents=True, exist_ok=True)
        with open(self._folder / "tgtd.log", "wb") as log:
            self._process = subprocess.Popen(
                [*self._prefix, "tgtd", "-f", "--iscsi", f"portal={self._address}:{self.port}"],
                env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            mariner.wait_until(lambda: self.admin("--mode", "target", "--op", "show", check=False),
                               10, "tgtd answers")
            for address in self._more_addresses:
                self.admin("--mode", "portal", "--op", "new", "--param", f"portal={address}:{self.port}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self._process.kill()  # it ignores SIGTERM while it has targets
            self._process.wait()
        for path in self._socket.parent.glob(self._socket.name + "*"):
            path.unlink()

    def admin(self, *arguments, check: bool = True) -> bool:
        if self._process.poll() is not None:
            raise mariner.Failed(f"tgtd ended with {self._process.returncode}")
        run = subprocess.run(["tgtadm", "--lld", "iscsi", *map(str, arguments)], text=True,
                             env=self.environment, capture_output=True, timeout=30)
        if check and run.returncode != 0:
            raise mariner.Failed(f"tgtadm {' '.join(map(str, arguments))}: {run.stderr}")
        return run.returncode == 0

    def new_target(self, tid: int, name: str, parameters: dict) -> str:
        """A target that any initiator may use, without units; its iSCSI name."""
        iqn = f"iqn.2026-11.org.mariner.rival:{name}"
        target = ("--mode", "target", "--tid", tid)
        self.admin(*target, "--op", "new", "--targetname", iqn)
        for key, value in parameters.items():
            self.admin(*target, "--op", "update", "--name", key, "--value", value)
        self.admin(*target, "--op", "bind", "--initiator-address", "ALL")
        return iqn


class Tgt:
    """A tgtd with three targets: `plain` (rdwr), `sync` (rdwr, bsoflags=sync) and `null`.

    The first two share one backing file. Tuned for large transfers: its defaults halve them."""

    TUNING = {"MaxRecvDataSegmentLength": 262144, "MaxXmitDataSegmentLength": 262144,
              "FirstBurstLength": 262144, "MaxBurstLength": 1048576, "InitialR2T": "No",
              "ImmediateData": "Yes"}

    def __init__(self, folder: pathlib.Path, size: int):
        self._folder = folder
        self._size = size
        self._file = folder / "tgt.img"
        self._tgtd = Tgtd(folder)
        self.urls: dict[str, str] = {}

    @property
    def pid(self) -> int:
        return self._tgtd.pid

    def __enter__(self):
        self._folder.mkdir(parents=True, exist_ok=True)
        write_once(self._file, self._size)
        self._tgtd.__enter__()
        try:
            self._add(1, "plain", "--backing-store", self._file, "--bstype", "rdwr")
            self._add(2, "sync", "--backing-store", self._file, "--bstype", "rdwr",
                      "--bsoflags", "sync")
            self._add(3, "null", "--backing-store", "/dev/null", "--bstype", "null")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._tgtd.__exit__()
        self._file.unlink(missing_ok=True)

    def _add(self, tid: int, name: str, *store):
        iqn = self._tgtd.new_target(tid, name, self.TUNING)
        self._tgtd.admin("--mode", "logicalunit", "--op", "new", "--tid", tid, "--lun", 1, *store)
        self.urls[name] = f"iscsi://{HOST}:{self._tgtd.port}/{iqn}/1"
