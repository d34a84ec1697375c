"""Going back: how soon the past is there, how fast it is in the image, and what hosts notice of it.

Volumes of which 1, 4 and 10 GiB have changed in random pieces of 64 KiB, and one that has changed in 4 KiB."""

import dataclasses
import hashlib
import json
import mmap
import os
import pathlib
import random
import shutil
import subprocess
import threading
import time

import servers  # first: it shows Python where the end-to-end drivers are
import loads
from history import Measured, Scale
from results import Row, header, line, number, say
from servers import GIB, mariner

import libiscsi

MIB = 1 << 20
VOLUME = "bench"
PIECE, SMALL_PIECE = 64 << 10, 4096
PAST, PRESENT = 1, 2  # seeds of what is written before the mark and behind it
FIRST_READ_MS_MAX, RESTORE_MIN, FOREGROUND_MIN = 200, 0.8, 0.5
RESTORE_S_MAX = 600
KILLS = 10
COPY_PIECE = 4 << 20
COPY_BYTES_MAX = 4 * GIB
SMALL = "0.5-small"
VOLUME_BYTES = {"full": 16 * GIB, "short": GIB}
COPY_THREADS = 4
FOREGROUND_DEPTH = 8  # of reads and of writes each

NOTES = """\
- Each volume has {volume} GiB, of which so much was written in pieces of 64 KiB (4 KiB where it says so) in random order,
  and written over, each piece once, in another random order. Then it is rolled back to the moment between the two.
- *First read*: from starting `mariner rollback --yes --force` until a session that was logged in all the time reads the past.
- *Restoring*: bytes that changed by the time from the command's end until the image durably holds everything. The device's
  copying is reading as much from the log's file (at most {copy} GiB) and writing it to another one that was written before, in
  pieces of 4 MiB, O_DIRECT, four at a time on both sides, durable at the end.
- *In LBN order*: the same copying as it is when one walks the volume's blocks: in the order of the places that changed, each read from
  where the log has it, which is anywhere; pieces as they were written, 16 at a time.
- *The whole volume*: how long it takes at the rate of that copying to copy all of its bytes.
- *Foreground*: 4 KiB reads at depth {depth} and writes at depth {depth}, at the same time, anywhere in the volume; once while it is
  being restored and once when it is and the page cache has nothing of the image. The sum of both rates is compared: what is not
  restored yet is read from the log, so from the disk. Beside what the same reads are when the page cache has everything.
- *Killed*: kill -9 {kills} times while one rollback is restored; the image is compared with what it was by SHA-256."""


@dataclasses.dataclass(frozen=True)
class Piece:
    """Where a piece is read, and where it is written."""
    source: int
    copy: int


def copying(source: pathlib.Path, copy: pathlib.Path, size: int, pieces: list[Piece]) -> float:
    """The device's rate, in bytes a second: from one file to another in the pieces' order, O_DIRECT, several at a time, durable at the end."""
    turn = iter(pieces)
    lock = threading.Lock()
    reading, writing = os.open(source, os.O_RDONLY | os.O_DIRECT), os.open(copy, os.O_WRONLY | os.O_DIRECT)

    def copy_pieces():
        with mmap.mmap(-1, size) as memory:  # aligned
            while True:
                with lock:
                    piece = next(turn, None)
                if piece is None:
                    return
                assert os.preadv(reading, [memory], piece.source) == size and os.pwritev(writing, [memory], piece.copy) == size

    try:
        threads = [threading.Thread(target=copy_pieces) for _ in range(COPY_THREADS if size >= MIB else 4 * COPY_THREADS)]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.fsync(writing)
        return size * len(pieces) / (time.monotonic() - begun)
    finally:
        os.close(reading)
        os.close(writing)


def pieces_in_log_order(size: int, piece: int) -> list[Piece]:
    """One piece after the other, from one file to the other."""
    return [Piece(at * piece, at * piece) for at in range(size // piece)]


def pieces_in_block_order(size: int, piece: int, places: int) -> list[Piece]:
    """As who walks a volume's blocks restores it: each piece at its place in the volume, in the order of those, read from where the log has it,
    which is anywhere."""
    chosen = random.Random(1)
    count = size // piece
    sources = list(range(count))
    chosen.shuffle(sources)
    return [Piece(source * piece, place * piece) for source, place in zip(sources, sorted(chosen.sample(range(places // piece), count)))]


class Volume:
    """A daemon with one volume, a session with it, and what it costs to go back."""

    def __init__(self, folder: pathlib.Path, size: int, changed: int, piece: int, rate: str = "0"):
        self.changed, self.piece, self.size = changed, piece, size
        # Twice what is written, headers, and room for the load in the foreground.
        log = (2 * changed * (PIECE + SMALL_PIECE) // PIECE if piece == PIECE else 3 * changed) + changed // 4 + GIB
        self.log_bytes = log // (64 * MIB) * 64 * MIB
        self.daemon = mariner.Daemon(folder, log={"max_size": str(self.log_bytes), "track_size": "64M"},
                                     more_config=f'[rollback]\nrate_max = "{rate}"\n')
        self.folder = folder

    def __enter__(self):
        self.daemon.start()
        self.made = self.daemon.create(VOLUME, str(self.size))
        self.url = self.daemon.url(self.made["iqn"])
        self.image = pathlib.Path(self.made["image_path"])
        return self

    def __exit__(self, *_):
        self.daemon.close()

    def metric(self, name: str) -> float | None:
        lines = self.daemon.http("/metrics")[1].splitlines()
        values = [float(text.split()[-1]) for text in lines if text.split("{")[0].split(" ")[0] == name]
        return sum(values) if values else None

    def wait_applied(self) -> float:
        """Until the image holds every write; when it did."""
        mariner.wait_until(lambda: self.metric("mariner_commit_lag_seconds") == 0, RESTORE_S_MAX, "the image catches up",
                           interval_s=0.02)
        return time.monotonic()

    def write(self, seed: int):
        load = [str(loads.LOAD), self.url, "--write", "--random", "--distinct", "--stamp", "--block", str(self.piece),
                "--bytes-max", str(self.changed), "--depth", "32", "--warmup", "0", "--seconds", "3600", "--seed", str(seed)]
        done = json.loads(subprocess.run(load, capture_output=True, text=True, check=True).stdout)
        assert not done["failure"], done["failure"]

    def session(self) -> libiscsi.Session:
        return libiscsi.Session(self.daemon.portal(), self.made["iqn"], "iqn.2026-11.org.mariner:bench-reader", 1)

    def fill(self):
        """The past, a mark, the present; all of it in the image."""
        self.write(PAST)
        self.wait_applied()
        self.daemon.ask("mark", "add", VOLUME, "past")
        self.write(PRESENT)
        self.wait_applied()
        with self.session() as session:
            self.probe = self.find_changed(session)

    def find_changed(self, session: libiscsi.Session) -> int:
        """The place of a piece that changed."""
        places = random.Random(1)
        for _ in range(100_000):
            at = places.randrange(self.size // self.piece) * self.piece
            if self.read(session, at) == (at, PRESENT):
                return at
        raise mariner.Failed("nothing that was written is found")

    @staticmethod
    def read(session: libiscsi.Session, at: int) -> tuple[int, int] | None:
        """What a block says of itself; nothing: another command was told something first."""
        cdb = bytes([0x88, 0, *(at // 512).to_bytes(8, "big"), *(8).to_bytes(4, "big"), 0, 0])
        answer = session.command(cdb, expected=4096)
        if answer.status != libiscsi.GOOD:
            return None
        return int.from_bytes(answer.data[:8], "little"), int.from_bytes(answer.data[8:16], "little")

    def go(self, *command: str, shows: int) -> dict:
        """Rolls back or undoes that; when a block read as `shows`, and when all was in the image."""
        with self.session() as session:
            while self.read(session, self.probe) is None:
                pass
            begun = time.monotonic()
            running = subprocess.Popen([str(mariner.MARINER), "--socket", str(self.daemon.socket), "--json", "--yes", *command,
                                        "--force"], stdout=subprocess.PIPE, text=True)
            ended = []
            waiter = threading.Thread(target=lambda: ended.append((running.communicate(), time.monotonic())))
            waiter.start()
            longest = last = 0.0
            while self.read(session, self.probe) != (self.probe, shows):
                if time.monotonic() > begun + 120:
                    raise mariner.Failed("the past does not show")
                now = time.monotonic()
                longest, last = max(longest, now - (last or now)), now
                time.sleep(0.001)
            seen = time.monotonic()
            waiter.join()
            assert running.returncode == 0, "the command failed"
        return {"first_read_ms": (seen - begun) * 1000, "command_ms": (ended[0][1] - begun) * 1000,
                "longest_read_ms": longest * 1000, "ended": ended[0][1]}

    def back(self) -> dict:
        return self.go("rollback", f"{VOLUME}@mark:past", shows=PAST)

    def undo(self) -> dict:
        return self.go("rollback", "undo", VOLUME, shows=PRESENT)

    def restored(self, run: dict):
        """Adds how fast it was restored."""
        run["restore_s"] = self.wait_applied() - run["ended"]
        run["restore_bytes_per_s"] = self.changed / run["restore_s"]

    def foreground(self, seconds: float, writes: bool = True) -> dict:
        """Reads and writes of hosts at the same time."""
        region = ["--block", "4096", "--random", "--depth", str(FOREGROUND_DEPTH), "--warmup", "0.3", "--seconds", str(seconds)]
        kinds = {"read": [], **({"write": ["--write"]} if writes else {})}
        running = {kind: subprocess.Popen([str(loads.LOAD), self.url, *region, *flags, "--seed", str(time.monotonic_ns() % 2**32)],
                                          stdout=subprocess.PIPE, text=True) for kind, flags in kinds.items()}
        out = {kind: json.loads(process.communicate()[0]) for kind, process in running.items()}
        for run in out.values():
            assert not run["failure"], run["failure"]
        return {kind: {"rate": run["rate"], "latency_us": run["latency_us"]} for kind, run in out.items()}

    def forget_image(self):
        """The page cache does: reads come from the disk, as those of the past do."""
        with open(self.image, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def digest(self) -> str:
        digest = hashlib.sha256()
        with open(self.image, "rb") as file:
            while piece := file.read(4 * MIB):
                digest.update(piece)
        return digest.hexdigest()


def copy_rates(volume: Volume) -> dict:
    """What the device copies, from the volume's log to a file beside it that was written before: of the volume's size, or as much smaller as less is copied."""
    size = min(volume.changed, COPY_BYTES_MAX)
    places = volume.size * size // volume.changed // COPY_PIECE * COPY_PIECE
    copy = volume.folder / "copy"
    servers.write_once(copy, places)
    log = volume.folder / "state" / "log0"
    blocks = size // (8 if volume.piece == SMALL_PIECE else 1)
    try:
        return {"bytes_per_s": copying(log, copy, COPY_PIECE, pieces_in_log_order(size, COPY_PIECE)),
                "blocks_bytes_per_s": copying(log, copy, volume.piece, pieces_in_block_order(blocks, volume.piece, places))}
    finally:
        copy.unlink()


def measure_volume(volume: Volume, scale: Scale, foreground: bool) -> dict:
    volume.fill()
    run = {"back": volume.back()}
    volume.restored(run["back"])
    run["undo"] = volume.undo()
    volume.restored(run["undo"])
    run["copy"] = copy_rates(volume)
    if foreground:
        seconds = 0.5 if scale.short else 4
        run["warm"] = volume.foreground(seconds)
        volume.wait_applied()
        volume.forget_image()
        run["idle"] = volume.foreground(seconds)
        volume.wait_applied()
        volume.back()
        run["during"] = volume.foreground(seconds)
        run["restoring_behind"] = bool(volume.daemon.ask("volume", "show", VOLUME).get("restoring"))
    return run


def measure_kills(volume: Volume) -> dict:
    """Ten times killed while it is restored."""
    volume.write(PAST)
    volume.wait_applied()
    volume.daemon.ask("mark", "add", VOLUME, "past")
    before = volume.digest()
    volume.write(PRESENT)
    volume.wait_applied()
    assert volume.digest() != before
    volume.daemon.rollback(VOLUME, "mark:past")
    left = []
    for _ in range(KILLS):
        shown = mariner.wait_until(lambda: volume.daemon.ask("rollback", "status", VOLUME), 60, "it is being restored")
        left.append(int(shown.get("left_bytes", 0)))
        time.sleep(0.3)
        volume.daemon.kill()
        volume.daemon.start()
    volume.wait_applied()
    return {"left_bytes": left, "exact": volume.digest() == before}


def rows_of(name: str, run: dict, scale: Scale) -> list[Row]:
    back, undo, copy = run["back"], run["undo"], run["copy"]
    seconds = back["restore_s"]
    common = {"measured_s": seconds, "scale": scale.name, "lacks": scale.lacks}
    rows = [Row(f"rollback.first_read.{name}", f"{name}: until the past is read", "ms", back["first_read_ms"], FIRST_READ_MS_MAX,
                "goal", goal=1.0, less_is_better=True, **common),
            Row(f"rollback.command.{name}", f"{name}: the command", "ms", back["command_ms"], FIRST_READ_MS_MAX, "goal",
                less_is_better=True, **common),
            Row(f"rollback.undo.{name}", f"{name}: until what was undone is read", "ms", undo["first_read_ms"], FIRST_READ_MS_MAX,
                "goal", goal=1.0, less_is_better=True, **common),
            Row(f"rollback.restore.{name}", f"{name}: restoring", "MB/s", back["restore_bytes_per_s"] / 1e6,
                copy["bytes_per_s"] / 1e6, "copying", goal=RESTORE_MIN if name != SMALL else None, **common),
            Row(f"rollback.block_order.{name}", f"{name}: restoring", "MB/s", back["restore_bytes_per_s"] / 1e6,
                copy["blocks_bytes_per_s"] / 1e6, "in LBN order", **common),
            Row(f"rollback.whole.{name}", f"{name}: until all is restored", "s", seconds, VOLUME_BYTES[scale.name] / copy["bytes_per_s"],
                "copying the whole volume", less_is_better=True, **common)]
    if "during" in run:
        warm, idle, during = ({kind: each[kind]["rate"] for kind in each} for each in (run["warm"], run["idle"], run["during"]))
        lacks = scale.lacks or ("" if run["restoring_behind"] else "restoring ended before the load did")
        rows.append(Row("rollback.foreground.warm", "4 KiB in the foreground, sum", "IO/s", sum(during.values()), sum(warm.values()),
                        "with all of it in the page cache", **(common | {"lacks": lacks})))
        for kind, goal in (("read", None), ("write", None), ("sum", FOREGROUND_MIN)):
            ours, rival = (sum(each.values()) if kind == "sum" else each[kind] for each in (during, idle))
            rows.append(Row(f"rollback.foreground.{kind}", f"4 KiB in the foreground, {kind}", "IO/s", ours, rival, "without restoring",
                            goal=goal, **(common | {"lacks": lacks})))
    return rows


def measure(scale: Scale, folder: pathlib.Path) -> Measured:
    size = VOLUME_BYTES[scale.name]
    sizes = {"1": GIB, "4": 4 * GIB, "10": 10 * GIB, SMALL: GIB // 2}
    if scale.short:
        sizes = {name: max(each // 64, 16 * MIB) for name, each in sizes.items()}
    rows, runs = [], {}
    for name, changed in sizes.items():
        say(f"   {name}: {changed / GIB:.3g} GiB changed")
        with Volume(folder / name, size, changed, SMALL_PIECE if name == SMALL else PIECE) as volume:
            runs[name] = measure_volume(volume, scale, name == "10")
        shutil.rmtree(folder / name)
        rows += rows_of(name, runs[name], scale)
    with Volume(folder / "killed", size // 4, size // 64 if scale.short else size // 8, PIECE, rate="8M" if scale.short else "64M") as volume:
        runs["killed"] = measure_kills(volume)
    rows.append(Row("rollback.killed", f"killed {KILLS} times while it is restored: exact", "", float(runs["killed"]["exact"]), 1.0,
                    "exact", measured_s=0, scale=scale.name, goal=1.0, lacks=scale.lacks))
    table = [*header("changed", "command", "past read", "restored in", "rate", "undone read", "left after each kill"),
             *(line(name, f"{number(run['back']['command_ms'])} ms", f"{number(run['back']['first_read_ms'])} ms",
                    f"{run['back']['restore_s']:.2f} s", f"{number(run['back']['restore_bytes_per_s'] / 1e6)} MB/s",
                    f"{number(run['undo']['first_read_ms'])} ms", "") for name, run in runs.items() if name != "killed"),
             line("killed", "", "", "", "", "", ", ".join(f"{left >> 20}" for left in runs["killed"]["left_bytes"]) + " MiB")]
    notes = NOTES.format(volume=size / GIB, copy=COPY_BYTES_MAX // GIB, depth=FOREGROUND_DEPTH, kills=KILLS)
    return Measured(rows, ["\n".join(table)], notes, runs)
