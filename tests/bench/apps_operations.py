"""One operation of a file system after the other, each durable when it returns: what an NFS server does for its clients."""

import dataclasses
import os
import pathlib
import time

WRITE = b"a file server's " * 256  # 4 KiB


@dataclasses.dataclass(frozen=True)
class Operations:
    """`count` of each."""
    id: str
    what: str
    count: int
    options = "sync,dirsync"

    NAMES = ("setattr", "write", "create", "remove", "rename", "link", "mkdir")

    def figures(self) -> dict[str, tuple[str, str, bool]]:
        return {name: (name, "ms", True) for name in self.NAMES}

    def run(self, root: pathlib.Path) -> dict:
        begun = time.monotonic()
        return measured(root, self.count) | {"seconds": time.monotonic() - begun}


def measured(root: pathlib.Path, count: int) -> dict[str, float]:
    """The mean of each operation in milliseconds."""
    files = [root / f"f{at}" for at in range(count)]

    def create(at: int):
        os.close(os.open(files[at], os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))

    def write(at: int):
        fd = os.open(files[at], os.O_WRONLY | os.O_APPEND)
        assert os.write(fd, WRITE) == len(WRITE)
        os.close(fd)

    def setattr_(at: int):
        # `sync` leaves an inode that has only changed itself for later; nfsd flushes it.
        fd = os.open(files[at], os.O_RDONLY)
        os.fchmod(fd, 0o600 + at % 2 * 0o44)
        os.fsync(fd)
        os.close(fd)

    steps = {
        "create": create,
        "write": write,
        "setattr": setattr_,
        "link": lambda at: os.link(files[at], root / f"l{at}"),
        "rename": lambda at: os.rename(root / f"l{at}", root / f"r{at}"),
        "mkdir": lambda at: os.mkdir(root / f"d{at}"),
        "remove": lambda at: os.unlink(root / f"r{at}"),
    }
    return {name: _mean_ms(step, count) for name, step in steps.items()}


def _mean_ms(step, count: int) -> float:
    begun = time.monotonic()
    for at in range(count):
        step(at)
    return (time.monotonic() - begun) * 1e3 / count
