"""Operations on files of a mounted file system, and a trace of them, as guest/version_workload.cc has it: for file systems that no kernel of
a guest mounts. What an operation did is on the disk before the next one, which has another time."""

import os
import pathlib
import random
import time

TABLE = []
for number in range(256):
    for _ in range(8):
        number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
    TABLE.append(number)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class TracedFiles:
    """Paths begin with a slash and have no spaces; `tick_ns` is how far times of modification are apart."""

    def __init__(self, root: pathlib.Path, trace: pathlib.Path, tick_ns: int):
        self.root, self.tick_ns = root, tick_ns
        self.trace = open(trace, "w", encoding="utf8")
        self.fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        self.contents: dict[str, bytearray] = {}
        self.folders: dict[str, set[str]] = {"/": set()}
        self.ticks: dict[str, int] = {}
        self.sync()
        self.tell("/")

    def close(self):
        os.close(self.fd)
        self.trace.close()

    def make_folder(self, path):
        self.wait(self.above(path))
        os.mkdir(self.full(path))
        self.folders[path] = set()
        self.sync()
        self.add_name(path)
        self.tell(path)

    def remove_folder(self, path):
        self.wait(self.above(path))
        os.rmdir(self.full(path))
        del self.folders[path]
        self.sync()
        self.remove_name(path)

    def make(self, path, data):
        """Two versions: an empty file is the first."""
        self.wait(path, self.above(path))
        fd = os.open(self.full(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.close(fd)
        self.sync()
        self.contents[path] = bytearray()
        self.add_name(path)
        self.tell(path)
        self.write(path, 0, data)

    def append(self, path, data):
        self.write(path, len(self.contents[path]), data)

    def write(self, path, at, data):
        """As the kernel gives it to a driver in user space: by pages, each of which is an operation."""
        while data:
            count = 4096 - at % 4096
            self.write_page(path, at, data[:count])
            at, data = at + count, data[count:]

    def write_page(self, path, at, data):
        self.wait(*self.names_of(path))
        fd = os.open(self.full(path), os.O_WRONLY)
        assert os.pwrite(fd, data, at) == len(data)
        os.fsync(fd)
        os.close(fd)
        self.sync()
        have = self.contents[path]
        have.extend(bytes(max(0, at - len(have))))
        have[at:at + len(data)] = data
        self.tell_all(path)

    def cut(self, path, size):
        self.wait(*self.names_of(path))
        os.truncate(self.full(path), size)
        self.sync()
        del self.contents[path][size:]
        self.tell_all(path)

    def remove(self, path):
        self.wait(path, self.above(path))
        os.unlink(self.full(path))
        self.sync()
        del self.contents[path]
        self.remove_name(path)

    def rename(self, path, to):
        self.wait(path, to, self.above(path), self.above(to))
        os.rename(self.full(path), self.full(to))
        self.sync()
        self.contents[to] = self.contents.pop(path)
        self.remove_name(path)
        self.add_name(to)
        self.tell(to)

    def link(self, path, to):
        self.wait(*self.names_of(path), to, self.above(to))
        os.link(self.full(path), self.full(to))
        self.sync()
        self.contents[to] = self.contents[path]
        self.add_name(to)
        self.tell(to)

    def full(self, path) -> str:
        return str(self.root) + path

    @staticmethod
    def above(path) -> str:
        return path.rsplit("/", 1)[0] or "/"

    def names_of(self, path) -> list[str]:
        return [name for name, data in self.contents.items() if data is self.contents[path]]

    def wait(self, *paths):
        """Until the time of what has been done to any of these last is over."""
        while any(self.ticks.get(path) == time.time_ns() // self.tick_ns for path in paths):
            time.sleep(min(self.tick_ns / 1e9, 1) / 20)
        # (And nothing is done at its very end.)
        left = self.tick_ns - time.time_ns() % self.tick_ns
        if self.tick_ns > 10**8 and left < 10**8:
            time.sleep(left / 1e9 + 0.001)
        self.ticks.update((path, time.time_ns() // self.tick_ns) for path in paths)

    def sync(self):
        """The end of an operation."""
        os.fsync(self.fd)
        self.trace.write(f"T {time.time_ns()}\n")

    def tell_all(self, path):
        for name in self.names_of(path):
            self.tell(name)

    def add_name(self, path):
        self.folders[self.above(path)].add(path.rsplit("/", 1)[1])
        self.tell(self.above(path))

    def remove_name(self, path):
        self.trace.write(f"D {path}\n")
        self.folders[self.above(path)].discard(path.rsplit("/", 1)[1])
        self.tell(self.above(path))

    def tell(self, path):
        now = os.lstat(self.full(path))
        if path in self.folders:
            data = "".join(name + "\n" for name in sorted(self.folders[path], key=str.encode)).encode()
        else:
            data = bytes(self.contents[path])
        self.trace.write(f"S {path} {now.st_ino} {now.st_mode:o} {now.st_size} {now.st_mtime_ns} {now.st_ctime_ns} {crc32c(data):08x}\n")


def postmark(files: TracedFiles, choice: random.Random, counts: tuple[int, int, int], links: bool):
    """Files, folders, transactions: as version_workload.cc."""
    count, folders, transactions = counts
    pool: list[str] = []

    def data() -> bytes:
        """Few bytes, or many; of the same ones, or of any."""
        count = choice.choice((choice.randrange(1, 600), choice.randrange(600, 9500)))
        return choice.choice((choice.randbytes(count), (choice.randbytes(16) * 600)[:count]))

    def name() -> str:
        while True:
            path = f"/s{choice.randrange(folders)}/datei-ä-{choice.randrange(4 * count // folders + 2)}"
            if path not in files.contents:
                return path

    def make():
        path = name()
        files.make(path, data())
        pool.append(path)

    def remove():
        files.remove(pool.pop(choice.randrange(len(pool))))

    for i in range(folders):
        files.make_folder(f"/s{i}")
    for _ in range(count):
        make()
    for _ in range(transactions):
        if choice.randrange(2) == 0 or len(pool) < 2:
            make()
        else:
            remove()
        at = choice.randrange(len(pool))
        path = pool[at]
        size = len(files.contents[path])
        what = choice.randrange(10)
        if what == 0:
            # (Some drivers make the new name before they remove the old one: within one folder these are two versions of it.)
            to = name()
            while files.above(to) == files.above(path):
                to = name()
            pool[at] = to
            files.rename(path, to)
        elif what == 1 and links:
            pool.append(name())
            files.link(path, pool[-1])
        elif what in (2, 3):
            files.write(path, choice.randrange(size), data())
        elif what == 4 and size > 1:
            files.cut(path, choice.randrange(1, size))
        else:
            files.append(path, data())
    while pool:
        remove()
    for i in range(folders):
        files.remove_folder(f"/s{i}")
