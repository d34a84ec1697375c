"""Volumes with file systems, what a kernel does to them in a window, and what checks of the moment behind it cost.

Takes root: file systems are mounted (by loop), and the page cache is emptied."""

import contextlib
import dataclasses
import json
import os
import pathlib
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

from results import say

BUILD = pathlib.Path(os.environ["MARINER_BUILD"]) / "tests" / "bench"
PATIENCE_S = 900
FIRST = ("chrt", "-f", "1")  # what is measured gets a core when it asks for one, whoever else is at work
IN_MEMORY = "/dev/shm"  # where an image is mounted, so that nobody waits for it
FOLDERS, FILES = 100, 99  # of a tree, of a folder: 10,001 inodes, and 1 GiB
FORMATS = {
    "ext2": ["mkfs.ext2"],
    "ext4 without journal": ["mkfs.ext4", "-O", "^has_journal"],
    "ext3": ["mkfs.ext3"],
    "ext4": ["mkfs.ext4"],
}
MOUNTED_AS = {"ext2": "ext2", "ext3": "ext3"}


def run(*command, ok=(0,)) -> subprocess.CompletedProcess:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode not in ok:
        raise RuntimeError(f"{' '.join(str(c) for c in command)}: {done.stderr.strip() or done.returncode}")
    return done


def empty_page_cache():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


# -- volumes --------------------------------------------------------------------------------------

@dataclasses.dataclass
class Volume:
    """A file system in a sparse image: `trees` of a gibibyte and 10,001 inodes each."""
    kind: str
    trees: int
    image: pathlib.Path
    inodes: int = 0
    full: dict | None = None  # what checking it in full took

    @classmethod
    def make(cls, kind: str, trees: int, folder: pathlib.Path) -> "Volume":
        image = folder / f"{kind.replace(' ', '-')}-{trees}"
        with open(image, "wb") as file:
            file.truncate(trees * 1100 * 2**20 + 2**26 * (kind in ("ext3", "ext4")))
        inodes = trees * (1 + FOLDERS * (FILES + 1))
        run(*FORMATS[kind], "-q", "-F", "-N", inodes * 112 // 100, "-E", "lazy_itable_init=0", image)
        run(BUILD / "mariner-ifsck-volume", image, "--trees", trees, "--folders", FOLDERS, "--files", FILES)
        return cls(kind, trees, image, inodes)

    def __enter__(self) -> "Volume":
        return self

    def __exit__(self, *_):
        self.image.unlink()
        shutil.rmtree(self.states, ignore_errors=True)

    @property
    def states(self) -> pathlib.Path:
        return self.image.with_name(self.image.name + "-states")


# -- what happens in a window ---------------------------------------------------------------------

class Load:
    """Small files made, deleted, written to and renamed, as PostMark and a mail server do."""

    def __init__(self, root: pathlib.Path, folders: list[str], seed: int):
        self._root = root
        self._folders = folders
        self._random = random.Random(seed)
        self._made = 0
        self._gone: set[str] = set()
        self._new: list[str] = []

    def step(self, durable: bool):
        chance = self._random.random()
        if chance < 0.3:
            self._write(self._fresh(), "wb", self._random.randint(512, 10_000), durable)
        elif chance < 0.5 and (name := self._old()):
            (self._root / name).unlink()
            self._gone.add(name)
        elif chance < 0.75 and (name := self._old()):
            self._write(name, "ab", self._random.randint(512, 10_000), durable)
        elif chance < 0.9 and (name := self._old()):
            self._write(name, "r+b", 4096 * self._random.randint(1, 4), durable)
        elif name := self._old():
            (self._root / name).rename(self._root / self._fresh())
            self._gone.add(name)

    def _fresh(self) -> str:
        self._made += 1
        self._new.append(f"{self._random.choice(self._folders)}/new-{self._made}")
        return self._new[-1]

    def _old(self) -> str | None:
        name = f"{self._random.choice(self._folders)}/{self._random.randrange(FILES)}"
        if self._new and self._random.random() < 0.3:
            name = self._random.choice(self._new)
        return None if name in self._gone else name

    def _write(self, name: str, mode: str, count: int, durable: bool):
        with open(self._root / name, mode) as file:
            file.write(self._random.randbytes(count))
            file.flush()
            if durable and self._random.random() < 0.5:
                os.fsync(file.fileno())


@dataclasses.dataclass
class Window:
    """From a volume's image to `moment`, a raw image: `blocks` are different, and in `trace`."""
    volume: Volume
    moment: pathlib.Path
    trace: pathlib.Path
    blocks: int = 0
    steps: tuple[int, int] = (0, 0)  # of the load: before the last sync, and behind it

    def __enter__(self) -> "Window":
        return self

    def __exit__(self, *_):
        self.moment.unlink(missing_ok=True)
        self.trace.unlink(missing_ok=True)


def folders_of(volume: Volume, spread: bool, how_many: int = 100) -> list[str]:
    """Those of one tree in the middle, or as many that are anywhere."""
    if not spread:
        return [f"t{volume.trees // 2}/f{i}" for i in range(FOLDERS)]
    everywhere = [f"t{tree}/f{i}" for tree in range(volume.trees) for i in range(FOLDERS)]
    return random.Random(1).sample(everywhere, min(how_many, len(everywhere)))


@contextlib.contextmanager
def mounted(volume: Volume, image: pathlib.Path):
    where = image.with_suffix(".mnt")
    where.mkdir()
    options = "loop" if MOUNTED_AS.get(volume.kind) else "loop,noinit_itable"
    run("mount", "-t", MOUNTED_AS.get(volume.kind, "ext4"), "-o", options, image, where)
    try:
        yield where
    finally:
        run("umount", where)
        where.rmdir()


def make_window(volume: Volume, folders: list[str], blocks: int = 0, durable: float = 0, seed: int = 1,
                steps: tuple[int, int] | None = None) -> Window:
    """What a load has changed when it has changed so many blocks, or when it has done what it did for another
    window. `durable`: the share of it behind the last sync, of which only those files are on the disk that were
    synced by themselves (and what a journal promises)."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="ifsck-", dir=IN_MEMORY)) / "work"
    window = Window(volume, volume.image.with_name(f"{volume.image.name}-moment"), volume.image.with_name(f"{volume.image.name}-trace"))
    run("cp", "--sparse=always", volume.image, work)
    try:
        with mounted(volume, work) as root:
            load = Load(root, folders, seed)

            def changed() -> int:
                return json.loads(run(BUILD / "mariner-ifsck-check", "diff", volume.image, work, window.trace).stdout)["blocks"]

            def do(many: int, durable: bool):
                for _ in range(many):
                    load.step(durable)
                if not durable:
                    run("sync", "-f", root)

            if steps:
                do(steps[0], False)
                do(steps[1], True)
                window.blocks = changed()
            else:
                at_rest = _advance(do, changed, blocks * (1 - durable), False)
                behind = _advance(do, changed, blocks, True) if durable else 0
                steps = (at_rest, behind)
                window.blocks = changed()
            window.steps = steps
            run("cp", "--sparse=always", work, window.moment)
    finally:
        shutil.rmtree(work.parent)
    return window


def _advance(do, changed, target: float, durable: bool) -> int:
    """How many steps it took until so many blocks were changed."""
    all_steps, count, a_step = 0, changed(), 3.0
    while count < target * 0.98:
        steps = max(1, int((target - count) / a_step * (0.9 if count else 0.5)))
        do(steps, durable)
        all_steps += steps
        before, count = count, changed()
        a_step = max((count - before) / steps, 0.2)
    return all_steps


# -- checks ---------------------------------------------------------------------------------------

def _check(window: Window, rounds: int, *options) -> dict:
    return json.loads(run(*FIRST, BUILD / "mariner-ifsck-check", "check", window.volume.image, window.trace, "--states", window.volume.states,
                          "--rounds", rounds, *options).stdout)


def know(window: Window):
    """The moment before the window is checked in full, unless it is known."""
    full_check = _check(window, 0)["full"]
    if full_check:
        window.volume.full = full_check


def ours(window: Window, cold: bool, level: int = 1, path: str = "", mends: bool = True) -> dict:
    # (A process has its own pages by the third; what is warm takes so little that one of them says nothing.)
    rounds = _check(window, 3 if cold else 9, "--level", level, *(["--cold"] if cold else []), *(["--path", path] if path else []),
                    *([] if mends else ["--no-mend"]))["rounds"][2:]
    return sorted(rounds, key=lambda each: each["all_ms"])[len(rounds) // 2]


def e2fsck(window: Window, cold: bool, *options) -> dict:
    """Of the moment as it is, which stays so with -n; else of a copy."""
    image = window.moment
    if "-n" not in options:
        image = window.moment.with_name("copy")
        run("cp", "--sparse=always", window.moment, image)
        os.sync()
    if cold:
        empty_page_cache()
    run(*FIRST, "e2fsck", "-V")  # the programs are in memory
    try:
        return _timed(*FIRST, "e2fsck", *options, image)
    finally:
        if image != window.moment:
            image.unlink()


def medians(runs: list[dict]) -> dict:
    return {key: statistics.median(each[key] for each in runs) if isinstance(value, (int, float)) else value for key, value in runs[0].items()} | {"rounds": runs}


def e2fsck_start_ms() -> float:
    """What its process takes before it looks at anything."""
    return statistics.median(_timed(*FIRST, "e2fsck", "-V")["ms"] for _ in range(9))


def _timed(*command) -> dict:
    began = time.monotonic()
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        took = time.monotonic() - began
        io = dict(line.split(": ") for line in pathlib.Path(f"/proc/{process.pid}/io").read_text().splitlines())
    if process.returncode >= (8 if "-n" in command else 4):
        say(f"{' '.join(str(c) for c in command)}: ended with {process.returncode}")
    return {"ms": took * 1e3, "blocks_read": int(io["rchar"]) // 4096, "disk_bytes": int(io["read_bytes"]), "status": process.returncode}


def may_measure() -> str:
    """Empty, or what is missing."""
    if os.geteuid() != 0:
        return "the page cache can be emptied, and file systems mounted, by root alone"
    if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
        return "files may not be as large as volumes are"
    return ""
