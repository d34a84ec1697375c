"""The past, read in batches beside the daemon by a program of ifsck's, is what views show."""

import hashlib
import pathlib
import random
import re
import subprocess

import pytest

import mariner
from mariner import AdminConnection, Failed, lun_checksum, sequence_of

READER = mariner.BUILD / "tests" / "ifsck" / "program" / "mariner-past-reader"
VOLUME = "db1"
BLOCK = 4096
BLOCKS = 4096  # 16 MiB


class Rejected(Exception):
    """By the daemon, with this error."""


def read_past(daemon, verb: str, *arguments) -> list[list[int]]:
    """Rows of numbers."""
    run = subprocess.run([str(READER), str(daemon.socket), VOLUME, verb, *map(str, arguments)], capture_output=True,
                         text=True, timeout=120)
    if run.returncode == 1:
        raise Rejected(run.stderr)
    if run.returncode != 0:
        raise Failed(f"{verb}: {run.returncode}: {run.stderr}")
    return [[int(word) for word in line.split()] for line in run.stdout.splitlines()]


class Story:
    """An imported volume, partly written since."""

    def __init__(self, daemon, folder: pathlib.Path, seed: int):
        self.daemon = daemon
        self.folder = folder
        self.random = random.Random(seed)
        source = folder / "disk.raw"
        source.write_bytes(self.random.randbytes(BLOCKS // 2 * BLOCK) + bytes(BLOCKS // 2 * BLOCK))
        daemon.ask("volume", "import", VOLUME, str(source))
        self.url = daemon.volume_url(VOLUME)

    def write(self, writes: int) -> int:
        """Data, zeros and discards of any blocks; the newest sequence number then."""
        commands = []
        for _ in range(writes):
            first = self.random.randrange(BLOCKS)
            count = min(self.random.choice([1, 1, 1, 2, 5, 64]), BLOCKS - first)
            kind = self.random.choice([f"write -P {self.random.randrange(1, 256)}"] * 6 + ["write -z", "discard"])
            commands += ["-c", f"{kind} {first * BLOCK} {count * BLOCK}"]
        run = subprocess.run(["qemu-io", "-f", "raw", *commands, self.url], capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stdout + run.stderr
        return self.newest()

    def newest(self) -> int:
        return sequence_of(self.daemon.ask("volume", "show", VOLUME)["newest"])

    def images(self, moments: list[int]) -> dict[int, bytes]:
        """Of all moments, read at once and in any order."""
        files = {moment: self.folder / f"at-{moment}" for moment in moments}
        read_past(self.daemon, "images", *(word for pair in files.items() for word in pair))
        return {moment: file.read_bytes() for moment, file in files.items()}

    def view_checksum(self, moment: int) -> str:
        view = self.daemon.expose(VOLUME, f"#{moment}")
        try:
            return lun_checksum(self.daemon.url(view["iqn"]), self.folder / "view")
        finally:
            self.daemon.ask("view", "unexpose", view["name"], "--force")

    def check_images(self, moments: list[int]) -> dict[int, bytes]:
        images = self.images(moments)
        for moment, image in images.items():
            assert hashlib.sha256(image).hexdigest() == self.view_checksum(moment), moment
        return images

    def check_changed(self, images: dict[int, bytes]):
        """What differs has changed, and what was not named is the same."""
        for first, second in zip(sorted(images), sorted(images)[1:]):
            named = set()
            for begin, count in read_past(self.daemon, "changed", first, second):
                assert begin not in named and begin - 1 not in named, "gaps between them"
                named |= set(range(begin, begin + count))
            differ = {block for block in range(BLOCKS) if images[first][block * BLOCK:(block + 1) * BLOCK] !=
                      images[second][block * BLOCK:(block + 1) * BLOCK]}
            assert differ <= named, (first, second, differ - named)

    def check_versions(self, until: int):
        """As the history lists the writes; a rollback is one where it changed something, too."""
        history = self.daemon.ask("history", "show", VOLUME, "--writes", 100_000)
        writes, rollbacks = [], {}
        for write in history["write_list"]:
            if write["kind"] == "rollback":
                rollbacks[int(write["sequence"])] = int(write["target_sequence"])
            else:
                writes.append((int(write["sequence"]), int(write["time_ns"]), int(write["first_block"]),
                               int(write["blocks"])))
        blocks = sorted(self.random.sample(range(BLOCKS), 300))
        found = read_past(self.daemon, "versions", 0, until, *blocks)
        assert found == sorted(found)
        expected = [[block, sequence, time_ns] for block in blocks for sequence, time_ns, first, count in writes
                    if first <= block < first + count and sequence <= until]
        assert [row for row in found if row[1] not in rollbacks] == sorted(expected)
        for block, sequence, _ in found:
            if sequence in rollbacks:
                between = [row for row in found if row[0] == block and rollbacks[sequence] < row[1] < sequence]
                assert between, "there was something to undo"
        for sequence, target in rollbacks.items():
            for block in blocks:
                undone = any(target < w[0] < sequence and w[2] <= block < w[2] + w[3] for w in writes)
                later = [r for r in rollbacks if target < r < sequence]
                if undone and not later and sequence <= until:
                    assert any(row[0] == block and row[1] == sequence for row in found)


@pytest.fixture
def story(daemon, folder, seed):
    return Story(daemon, folder, seed)


def test_every_moment_is_what_a_view_shows(story):
    daemon = story.daemon
    moments = [0, *(story.write(60) for _ in range(3))]
    moments.insert(2, moments[1] + 17)
    images = story.check_images(moments)
    story.check_changed(images)
    story.check_versions(moments[-1])

    daemon.rollback(VOLUME, f"#{moments[1]}")
    moments.append(story.newest())
    assert story.images(moments[-1:])[moments[-1]] == images[moments[1]]
    moments.append(story.write(60))
    daemon.ask("rollback", "undo", VOLUME, "--force")
    moments.append(story.newest())
    images = story.check_images(moments)
    story.check_changed(images)
    story.check_versions(moments[-1])

    daemon.kill()
    daemon.start()
    assert story.images(moments) == images, "after a restart"
    (oldest, newest, size), = read_past(daemon, "reach")
    assert oldest == 0 and newest >= moments[-1] and size == BLOCKS * BLOCK


def test_moments_and_times(story):
    newest = story.write(20)
    for write in story.daemon.ask("history", "show", VOLUME, "--writes", 100)["write_list"]:
        sequence, time_ns = int(write["sequence"]), int(write["time_ns"])
        assert read_past(story.daemon, "time", sequence) == [[time_ns]]
        assert read_past(story.daemon, "moment", time_ns) == [[sequence]]
        assert read_past(story.daemon, "moment", time_ns - 1) == [[sequence - 1]]
    assert read_past(story.daemon, "time", 0) == [[0]]
    for words in (("time", newest + 1), ("moment", 1 << 62), ("changed", 0, newest + 1), ("versions", 0, newest + 1, 3)):
        with pytest.raises(Rejected, match="outside-window"):
            read_past(story.daemon, *words)
    with pytest.raises(Rejected, match="invalid-argument.*behind the end"):
        read_past(story.daemon, "versions", 0, newest, BLOCKS)


def test_nonsense_is_refused_and_hurts_nobody(story):
    newest = story.write(10)
    connection = AdminConnection(story.daemon.socket)
    status, text = connection.ask("POST", f"/v1/volumes/{VOLUME}/past", b"{}")
    assert status == 200
    past = "/v1/past/" + re.search(rb'"id":"(\d+)"', text).group(1).decode()

    def numbers(*values: int) -> bytes:
        return b"".join(value.to_bytes(8, "little") for value in values)

    for body, expected in ((b"", 400), (b"x", 400), (numbers(1), 400), (numbers(1, newest, 2), 400),
                           (numbers(BLOCKS, newest), 400), (numbers((1 << 64) - 1, newest), 400),
                           (numbers(0, newest + 1), 422), (numbers(0, (1 << 64) - 1), 422),
                           (numbers(0, newest) * 2049, 429), (numbers(0, newest) * 2048, 200)):
        assert connection.ask("POST", past + "/blocks", body)[0] == expected, body[:32]
    for body, expected in ((numbers(newest), 400), (numbers(newest, 3, 0, 3, 0), 400), (numbers(newest, BLOCKS, 0), 400),
                           (numbers(newest + 1, 3, 0), 422), (numbers(newest, 3, 0), 200)):
        assert connection.ask("POST", past + "/versions", body)[0] == expected, body
    for query, expected in (("from=3&to=2", 400), ("from=0&to=x", 400), (f"from=0&to={newest + 1}", 422),
                            (f"from=0&to={newest}&first_block={(1 << 64) - 1}", 200)):
        assert connection.ask("GET", f"{past}/changed?{query}")[0] == expected, query
    for _ in range(200):
        body = story.random.randbytes(story.random.randrange(200))
        assert connection.ask("POST", past + "/" + story.random.choice(["blocks", "versions"]), body)[0] in (400, 422)
    # Who goes in the middle of a question, or of an answer.
    for _ in range(20):
        broken = AdminConnection(story.daemon.socket)
        broken.putrequest("POST", past + "/blocks")
        broken.putheader("Content-Length", "32768")
        broken.endheaders(numbers(0, newest) * story.random.choice([1, 2048]))
        broken.close()
    assert connection.ask("DELETE", past)[0] == 200
    assert connection.ask("DELETE", past)[0] == 404
    assert connection.ask("POST", past + "/blocks", numbers(0, newest))[0] == 404
    story.check_images([newest])


@pytest.mark.parametrize("clients", [4])
def test_several_programs_read_beside_a_host_that_writes(story, clients):
    newest = story.write(40)
    expected = story.images([newest])[newest]
    files = [story.folder / f"client-{i}" for i in range(clients)]
    readers = [subprocess.Popen([str(READER), str(story.daemon.socket), VOLUME, "images", str(newest), str(file)])
               for file in files]
    story.write(100)
    for reader, file in zip(readers, files):
        assert reader.wait(60) == 0
        assert file.read_bytes() == expected
