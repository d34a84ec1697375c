"""The disk that loses power (tests/powerdisk), mounted."""

import pathlib
import subprocess

import mariner

POWERDISK = mariner.BUILD / "tests" / "powerdisk" / "mariner-powerdisk"


class PowerDisk:
    """`backing` holds what is on the medium; `mount` is what a program sees."""

    def __init__(self, folder: pathlib.Path, flush_delay_us: int = 0):
        self.backing = folder / "medium"
        self.mount = folder / "disk"
        self._flush_delay_us = flush_delay_us
        self._process: subprocess.Popen | None = None
        self.backing.mkdir(parents=True, exist_ok=True)
        self.mount.mkdir(parents=True, exist_ok=True)

    @property
    def _control(self) -> pathlib.Path:
        return self.mount / ".power"

    def power_on(self):
        self._process = subprocess.Popen(
            [str(POWERDISK), "--flush-delay-us", str(self._flush_delay_us), str(self.backing),
             str(self.mount)], stdin=subprocess.DEVNULL)
        mariner.wait_until(self._mounted, 10, "the disk is mounted")

    def _mounted(self) -> bool:
        if self._process.poll() is not None:
            raise mariner.Failed(f"mariner-powerdisk ended with {self._process.returncode}")
        try:
            return self._control.exists()
        except OSError:
            return False

    def _tell(self, line: str):
        with open(self._control, "r+b", buffering=0) as control:
            control.write(line.encode())

    def cut(self, seed: int):
        """The power goes. Everything fails from here until power_on()."""
        self._tell(f"cut {seed}")

    def cut_keeping_nothing(self):
        """The power goes, and every write that no flush made durable is lost."""
        self._tell("cut nothing-kept")

    def lie_about(self, name: str):
        """Flushes of files whose name contains `name` do nothing from now on."""
        self._tell(f"lie {name}")

    def statistics(self) -> dict:
        # In one read: what a second one returned would belong to later, longer numbers.
        with open(self._control, "rb", buffering=0) as control:
            return dict(line.split(" ", 1) for line in control.read(65536).decode().splitlines())

    def unmount(self):
        """Nobody may have a file open on it."""
        if self._process is None:
            return
        subprocess.run(["fusermount3", "-u", "-z", str(self.mount)], check=False,
                       capture_output=True)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def __enter__(self):
        self.power_on()
        return self

    def __exit__(self, *_):
        self.unmount()
