"""A stock tgtd that has loaded bs_mariner.so, with volumes of a marinerd as its disks."""

import itertools
import pathlib
import sys
import types

import libiscsi_client
import mariner

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import servers  # noqa: E402  (the path comes first)

MODULE = mariner.BUILD / "server" / "tgt" / "bs_mariner.so"
STORE = "mariner"
LUN = 1
# The folder is fixed in tgtd's program: it gets one of its own over the system's, in a namespace that ends with it.
WITH_MODULE = ("unshare", "-m", "sh", "-e", "-c", """
module=$1 scratch=$2; shift 2
mount --make-rprivate /
mkdir -p "$scratch"
mount -t tmpfs none "$scratch"
mkdir -p "$scratch/over/tgt/backing-store" "$scratch/work"
cp "$module" "$scratch/over/tgt/backing-store"
mount -t overlay overlay -o "lowerdir=/usr/lib,upperdir=$scratch/over,workdir=$scratch/work" /usr/lib
exec "$@"
""", "with-module")


class TgtFront(servers.Tgtd):
    """It may be killed and started again, with the same port, targets and units."""

    def __init__(self, folder: pathlib.Path, daemon: mariner.Daemon, module: pathlib.Path = MODULE,
                 more_addresses: tuple[str, ...] = ()):
        super().__init__(folder, more_addresses=more_addresses,
                         prefix=(*WITH_MODULE, str(module), str(folder / "scratch")))
        self.daemon = daemon
        self.log_file = folder / "tgtd.log"
        self._tids = itertools.count(1)

    def options(self, **more: str) -> str:
        values = {"portal": self.daemon.portal(), **{key.replace("_", "-"): value for key, value in more.items()}}
        return ";".join(f"{key}={value}" for key, value in values.items())

    def try_unit(self, tid: int, volume: str, options: str, *more) -> bool:
        return self.admin("--mode", "logicalunit", "--op", "new", "--tid", tid, "--lun", LUN, "--bstype", STORE,
                          "--backing-store", volume, "--bsopts", options, *more, check=False)

    def target(self, name: str, **parameters) -> tuple[int, str]:
        """Without units: its number and its name."""
        tid = next(self._tids)
        return tid, self.new_target(tid, name, {**servers.Tgt.TUNING, **parameters})

    def disk(self, volume: str, *more, thin: bool = False, options: str | None = None,
             parameters: tuple[str, ...] = ()) -> str:
        """The volume as a disk of tgtd's; its URL."""
        tid, iqn = self.target(volume)
        if not self.try_unit(tid, volume, options or self.options(), *more):
            raise mariner.Failed(f"tgtd has no unit of {volume}:\n{self.tail()}")
        for parameter in ("thin_provisioning=1",) * thin + parameters:
            self.admin("--mode", "logicalunit", "--op", "update", "--tid", tid, "--lun", LUN, "--params", parameter)
        return f"iscsi://{servers.HOST}:{self.port}/{iqn}/{LUN}"

    def tail(self, lines: int = 30) -> str:
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def said(self) -> str:
        return self.log_file.read_text(errors="replace")

    def descriptors(self) -> int:
        return len(list(pathlib.Path(f"/proc/{self.pid}/fd").iterdir()))

    def kill(self):
        """As a crash; it can be entered again."""
        self.__exit__()
        self._tids = itertools.count(1)


def session(front: TgtFront, url: str, initiator: str = "iqn.2026-11.org.mariner:host1") -> libiscsi_client.Session:
    """With one of the front's disks, past the unit attentions of a new one."""
    where = types.SimpleNamespace(address=servers.HOST, port=front.port)
    return libiscsi_client.Session(where, url.split("/")[-2], initiator, lun=LUN)
