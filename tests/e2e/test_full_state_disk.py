"""A state directory without any room: what is asked is refused with its reason, and goes on once there is room."""

import contextlib
import json
import os
import pathlib
import subprocess

import mariner
from mariner import Daemon


@contextlib.contextmanager
def small_disk(size: str):
    """The root of a file system of its own, which is gone afterwards."""
    names = "-m" if os.geteuid() == 0 else "-Urm"
    script = f"mount -t tmpfs -o size={size} none /run && echo here && exec cat"
    with subprocess.Popen(["unshare", names, "--propagation", "private", "sh", "-c", script],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "here\n"
        yield pathlib.Path(f"/proc/{holder.pid}/root/run")


def fill(disk: pathlib.Path):
    with contextlib.suppress(OSError), open(disk / "rest", "wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    assert os.statvfs(disk).f_bavail == 0


class Marks:
    """What is said to one who makes marks, and that what was made is kept."""

    def __init__(self, daemon: Daemon):
        self._daemon = daemon
        self._made: list[str] = []
        self._asked = 0

    def make(self) -> str:
        """One, or why there is none. Its name is long, so that a store is filled with few."""
        self._asked += 1
        name = f"{self._asked}-".ljust(63, "n")
        connection = mariner.AdminConnection(self._daemon.socket)
        status, answer = connection.ask("POST", "/v1/volumes/db1/marks", json.dumps({"name": name}).encode())
        connection.close()
        if status == 200:
            self._made.append(name)
            return ""
        return answer.decode()

    def make_until_refused(self) -> str:
        """Up to what the store has allocated in advance, some are still made."""
        for _ in range(20_000):
            if refused := self.make():
                return refused
        raise mariner.Failed("marks are made without any room")

    def are_kept(self):
        listed = {mark["name"] for mark in self._daemon.ask("mark", "list", "db1")["marks"]}
        assert listed >= set(self._made), set(self._made) - listed


def test_a_state_directory_without_room(folder, long_run):
    log = {"disks": [str(folder / "log0")], "max_size": "256M"}
    with small_disk("32M") as disk, Daemon(folder, disk / "state", log=log, index={"file": str(folder / "index")}) as daemon:
        daemon.start()
        daemon.create("db1", "8M")
        marks = Marks(daemon)
        for _ in range(2 if long_run else 1):
            assert marks.make() == ""
            fill(disk)
            refused = marks.make_until_refused()
            assert "no-space" in refused, refused
            refused = marks.make()
            assert f"no room in {disk / 'state'}" in refused and "make room there" in refused, refused
            assert daemon.is_ready()
            marks.are_kept()
            (disk / "rest").unlink()
        assert marks.make() == ""
        marks.are_kept()

        # Started without room, it says so and ends.
        fill(disk)
        assert daemon.stop() == 0
        fill(disk)
        daemon.start(wait=False)
        assert daemon.process.wait(20) == 1
        daemon.process = None
        assert "cannot start" in daemon.log_lines()[-1] and "no-space" in daemon.log_lines()[-1], daemon.tail()
        (disk / "rest").unlink()
        daemon.start()
        marks.are_kept()
        assert marks.make() == ""
