"""A daemon with two portals and the full Linux guest, booted once and lent to test after test."""

import json
import pathlib
import shutil
import subprocess
import tempfile

import guest as linux
import mariner

# Who may log in to the volumes that ask for a secret: the name, then what each side must know.
USER, SECRET = "host1", "what.host1.knows"
TARGET_USER, TARGET_SECRET = "mariner", "what.mariner.knows"
CONFIG = """
[auth.{user}]
user = "{user}"
secret_file = "{folder}/secret"
mutual_user = "{target_user}"
mutual_secret_file = "{folder}/mutual_secret"
[[volume]]
name = "secret"
size = "64M"
auth = ["{user}"]
"""
# What a kernel says when something is wrong with a disk or a file system.
COMPLAINTS = ("I/O error|critical .* error|EXT4-fs (error|warning)|XFS .*(orruption|rror)|BTRFS.* (error|warning)|"
              "ntfs3.*(rror|orrupt)|Remounting|Aborting journal|Call Trace")


class Lab:
    def __init__(self, log_size: str):
        base = mariner.BUILD / "e2e"
        base.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lab-", dir=base))
        for name, secret in (("secret", SECRET), ("mutual_secret", TARGET_SECRET)):
            file = self.folder / name
            file.write_text(secret + "\n")
            file.chmod(0o600)
        config = CONFIG.format(user=USER, target_user=TARGET_USER, folder=self.folder)
        self.network = linux.Network((linux.HOST_ADDRESS, linux.HOST_ADDRESS_2))
        self.daemon = mariner.Daemon(self.folder, address=linux.HOST_ADDRESS, more_addresses=(linux.HOST_ADDRESS_2,),
                                     prefix=self.network.prefix, log={"max_size": log_size}, more_config=config)
        self.guest = linux.FullGuest(self.folder, self.network)
        self._volumes: list[str] = []
        try:
            self.daemon.start()
            self.guest.start()
        except BaseException:
            self.close()
            raise

    def close(self):
        self.guest.close()
        self.daemon.close()
        self.network.close()

    # -- what a test does ----------------------------------------------------------------------------

    def volume(self, size: str = "256M", *flags: str, window: str = "3d") -> tuple[str, str]:
        """A new volume, gone after the test: its name and its target's."""
        name = f"disk{len(self._volumes)}"
        self.daemon.window = window
        iqn = self.daemon.create(name, size, *flags)["iqn"]
        self._volumes.append(name)
        return name, iqn

    def disk(self, size: str = "256M", *flags: str) -> str:
        """A new volume as the guest sees it: its device."""
        return self.guest.login(self.volume(size, *flags)[1], self.daemon.portal())

    def on_host(self, *command: str, timeout_s: float = 120) -> str:
        """Runs a command of the host in the daemon's network."""
        run = subprocess.run([*self.network.prefix, *command], capture_output=True, text=True, timeout=timeout_s)
        assert run.returncode == 0, f"{command}: exit {run.returncode}\n{run.stdout}{run.stderr}"
        return run.stdout

    def mapped_mb(self, iqn: str) -> float:
        """How much of LUN 0 GET LBA STATUS calls mapped."""
        pieces = json.loads(self.on_host("qemu-img", "map", "-U", "-f", "raw", "--output=json", self.daemon.url(iqn)))
        return sum(p["length"] for p in pieces if p["data"]) / 2**20

    def complaints(self) -> str:
        """What the guest's kernel has complained of since the last call."""
        return self.guest.run(f"dmesg -c | grep -E '{COMPLAINTS}'", check=False)

    def damage(self) -> str:
        """What the daemon itself finds wrong with what it stores."""
        findings = self.daemon.cli("--json", "doctor", check=False).json()["findings"]
        return "\n".join(f"{f['check']}: {f['found']}" for f in findings if f["level"] == "error")

    # -- between tests -------------------------------------------------------------------------------

    def is_well(self) -> bool:
        return self.daemon.process is not None and self.daemon.process.poll() is None

    def clean_up(self):
        """As it was: nobody is logged in, no volume, nothing said in the kernel's log."""
        self.network.run("ip link set tap1 up")
        self.guest.run("clean_up")
        for name in self._volumes:
            self.daemon.ask("volume", "delete", name)
        self._volumes.clear()


class Shelf:
    """Where the lab stands while no test has it."""

    def __init__(self, log_size: str = "2G"):
        self._log_size = log_size
        self._lab: Lab | None = None

    def take(self) -> Lab:
        if self._lab and not self._lab.is_well():
            self.throw_away()
        self._lab = self._lab or Lab(self._log_size)
        return self._lab

    def give_back(self):
        try:
            self._lab.clean_up()
        except BaseException:
            self.throw_away()
            raise

    def throw_away(self) -> pathlib.Path:
        """Ends it and keeps its folder for who looks for the cause."""
        lab, self._lab = self._lab, None
        lab.close()
        return lab.folder

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._lab:
            shutil.rmtree(self.throw_away(), ignore_errors=True)
