"""A volume with the past of a load: moments as views, what they show, how fast they are read."""

import contextlib
import dataclasses
import json
import pathlib
import random
import subprocess
import time

import loads
import mariner
import uvfs_lab
from results import say

MIB, GIB = 1 << 20, 1 << 30
BLOCK = 4096
CACHES = pathlib.Path("/proc/sys/vm/drop_caches")
DEPTHS = (1, 8)


@dataclasses.dataclass(frozen=True)
class Sizes:
    volume_bytes: int
    log_bytes: int
    track_bytes: int
    moments: int
    read_moments: int  # of these
    random_reads: int  # of each of these, at each depth


FULL = Sizes(2 * GIB, 4 * GIB, 16 * MIB, 5, 3, 4000)
SHORT = Sizes(512 * MIB, 512 * MIB, 8 * MIB, 5, 1, 400)


@dataclasses.dataclass
class Moment:
    """What a step left. `blocks` are those that are allocated then, in an order by chance."""

    step: str
    sequence: int
    url: str = ""
    blocks: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Reading:
    """Seconds; of each depth, of one random read."""

    sequential_s: float = 0
    sequential_bytes: int = 0
    random_s: dict[int, float] = dataclasses.field(default_factory=dict)

    @property
    def measured_s(self) -> float:
        return self.sequential_s


class Past:
    def __init__(self, folder: pathlib.Path, load, sizes: Sizes):
        self.load, self.sizes, self.folder = load, sizes, folder
        log = {"max_size": str(sizes.log_bytes), "track_size": str(sizes.track_bytes)}
        self.daemon = mariner.Daemon(folder, log=log)
        self.moments: list[Moment] = []
        self.load_s = 0.0

    def __enter__(self):
        self.daemon.start()
        return self

    def __exit__(self, *_):
        self.daemon.close()

    def metric(self, name: str) -> float:
        """The sum over a metric's labels; 0: it is not there."""
        rows = self.daemon.http("/metrics")[1].splitlines()
        return sum(
            float(row.split()[-1]) for row in rows if row.split("{")[0].split(" ")[0] == name
        )

    @property
    def used_bytes(self) -> int:
        return int(self.metric("mariner_log_used_bytes"))

    # -- how it comes to be -----------------------------------------------------------------------

    def make(self):
        """Runs the load on a file system of the volume. Moments behind some of its steps become
        views."""
        begun = time.monotonic()
        steps = []
        with uvfs_lab.Disk(
            self.daemon,
            self.folder,
            self.load.name,
            "ext4",
            str(self.sizes.volume_bytes),
            "relatime",
        ) as disk, contextlib.closing(self.load.steps(disk.root)) as made:
            for step in made:
                disk.sync()
                steps.append(Moment(step, disk.newest()))
                at_s = time.monotonic() - begun
                say(f"   {at_s:6.1f} s: {step}; the log has {self.used_bytes / MIB:,.0f} MiB")
        self.load_s = time.monotonic() - begun
        mariner.wait_until(
            lambda: self.metric("mariner_commit_lag_seconds") == 0, 120, "the image catches up"
        )
        count = min(self.sizes.moments, len(steps))
        self.moments = [steps[(len(steps) - 1) * at // (count - 1)] for at in range(count)]
        for number, moment in enumerate(self.moments):
            view = self.daemon.expose(
                self.load.name,
                f"#{moment.sequence}",
                "--name",
                f"{self.load.name}{number}",
                "--ttl",
                "1d",
            )
            moment.url = self.daemon.url(view["iqn"])
            moment.blocks = allocated(moment.url)

    # -- what it shows ----------------------------------------------------------------------------

    def checksums(self) -> list[str]:
        return [mariner.lun_checksum(moment.url, self.folder / "copy") for moment in self.moments]

    def restart(self, crash: bool = False):
        if crash:
            self.daemon.kill()
        else:
            self.daemon.stop()
        self.daemon.start()

    def cold(self):
        """Nobody remembers anything of it."""
        self.restart()
        subprocess.run(["sync"], check=True)
        CACHES.write_text("3\n")

    # -- how fast ---------------------------------------------------------------------------------

    def read(self) -> Reading:
        """Some of the moments, each time cold: the whole of one, as a client copies it, and some of
        its blocks at random, none twice."""
        count = self.sizes.read_moments
        chosen = [
            self.moments[len(self.moments) * (2 * at + 1) // (2 * count)] for at in range(count)
        ]
        reading = Reading()
        for moment in chosen:
            self.cold()
            begun = time.monotonic()
            read_whole(moment.url, self.sizes.volume_bytes)
            reading.sequential_s += time.monotonic() - begun
            reading.sequential_bytes += len(moment.blocks) * BLOCK
        for depth in DEPTHS:
            seconds = operations = 0
            for moment in chosen:
                self.cold()
                run = self._read_blocks(moment, depth)
                seconds += run["seconds"]
                operations += run["operations"]
            reading.random_s[depth] = seconds / operations
        return reading

    def _read_blocks(self, moment: Moment, depth: int) -> dict:
        count = min(self.sizes.random_reads, len(moment.blocks))
        listed = self.folder / "blocks"
        listed.write_text("\n".join(map(str, moment.blocks[:count])))
        command = [
            str(loads.LOAD),
            moment.url,
            "--block",
            str(BLOCK),
            "--depth",
            str(depth),
            "--blocks-from",
            str(listed),
            "--warmup",
            "0",
            "--seconds",
            str(loads.PATIENCE_S),
            "--bytes-max",
            str(count * BLOCK),
        ]
        run = json.loads(
            subprocess.run(
                command, capture_output=True, text=True, check=True, timeout=2 * loads.PATIENCE_S
            ).stdout
        )
        if run["failure"] or not run["operations"]:
            raise mariner.Failed(f"reading at random: {run['failure']}\n{self.daemon.tail()}")
        return run


def allocated(url: str) -> list[int]:
    """The blocks that a LUN calls mapped, in an order by chance, the same one each time."""
    told = subprocess.run(
        ["qemu-img", "map", "-U", "-f", "raw", "--output=json", url],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    blocks = []
    for piece in json.loads(told.stdout):
        if piece["data"]:
            blocks += range(piece["start"] // BLOCK, (piece["start"] + piece["length"]) // BLOCK)
    random.Random(1).shuffle(blocks)
    return blocks


def read_whole(url: str, size: int):
    """All that is allocated, as a copy of the LUN is made; to nowhere."""
    nowhere = f"driver=null-co,size={size}"
    subprocess.run(
        ["qemu-img", "convert", "-n", "-f", "raw", url, "--target-image-opts", nowhere],
        capture_output=True,
        check=True,
        timeout=1800,
    )


@contextlib.contextmanager
def past_of(folder: pathlib.Path, load, sizes: Sizes):
    load.prepare()
    with Past(folder, load, sizes) as past:
        past.make()
        yield past
