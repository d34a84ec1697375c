"""A program that appends and flushes: how long that takes, and whether every flush reaches the target."""

import dataclasses
import os
import pathlib
import time

PIECE = b"appended, flushed" * 240 + b"4,096 bytes now "


@dataclasses.dataclass(frozen=True)
class Fsync:
    id: str
    what: str
    count: int
    options = "defaults"

    def figures(self) -> dict[str, tuple[str, str, bool]]:
        return {"mean": ("mean", "ms", True)}

    def run(self, root: pathlib.Path) -> dict:
        fd = os.open(root / "appended", os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o644)
        try:
            begun = time.monotonic()
            for _ in range(self.count):
                assert os.write(fd, PIECE) == len(PIECE)
                os.fsync(fd)
            seconds = time.monotonic() - begun
        finally:
            os.close(fd)
        return {"mean": seconds * 1e3 / self.count, "seconds": seconds}
