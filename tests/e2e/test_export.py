"""Moments of a volume as image files, and as volumes of their own: exact, sparse, whole or not there."""

import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess

import pytest

import mariner
from mariner import qemu_io, sequence_of, wait_until

BLOCK = 4096
BLOCKS = 48 << 10  # 192 MiB


@pytest.fixture
def daemon(folder):
    # With room for all: a log that is short of it gives readings up first.
    with mariner.Daemon(folder / "daemon", log={"max_size": "4G"}) as daemon:
        yield daemon.start()


class Story:
    """A volume with random writes, and what it was at some moments."""

    def __init__(self, daemon, name: str, seed: int):
        self.daemon = daemon
        self.name = name
        self.random = random.Random(seed)
        daemon.create(name, f"{BLOCKS * BLOCK}")
        self.url = daemon.volume_url(name)
        self.now: dict[int, int] = {}  # the byte that a block is full of; none: zeros
        self.moments: dict[int, dict[int, int]] = {0: {}}  # by sequence number

    def write(self, writes: int) -> int:
        """Data, zeros and discards; the newest sequence number then."""
        commands = []
        for _ in range(writes):
            first = self.random.randrange(BLOCKS)
            count = min(self.random.choice([1, 1, 2, 5, 64, 300]), BLOCKS - first)
            byte = self.random.choice([self.random.randrange(1, 256)] * 6 + [0, None])
            commands.append(f"discard {first * BLOCK} {count * BLOCK}" if byte is None else
                            f"write -P {byte} {first * BLOCK} {count * BLOCK}")
            for block in range(first, first + count):
                self.now[block] = byte or 0
        qemu_io(self.url, *commands)
        sequence = sequence_of(self.daemon.ask("volume", "show", self.name)["newest"])
        self.moments[sequence] = {block: byte for block, byte in self.now.items() if byte}
        return sequence

    def bytes_at(self, sequence: int) -> bytes:
        out = bytearray(BLOCKS * BLOCK)
        for block, byte in self.moments[sequence].items():
            out[block * BLOCK:(block + 1) * BLOCK] = bytes([byte]) * BLOCK
        return bytes(out)

    def digest_at(self, sequence: int) -> str:
        return hashlib.sha256(self.bytes_at(sequence)).hexdigest()


def digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def lun_digest(url: str, folder: pathlib.Path) -> str:
    return mariner.lun_checksum(url, folder / "lun.raw")


def qemu_img(*words) -> subprocess.CompletedProcess:
    return subprocess.run(["qemu-img", *map(str, words)], capture_output=True, text=True, timeout=120)


def begin(daemon, *words, **options) -> subprocess.Popen:
    """`mariner`, which goes on."""
    return subprocess.Popen([mariner.MARINER, "--socket", daemon.socket, *words], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.slow
def test_any_moment_is_exported_exactly(daemon, folder, seed):
    story = Story(daemon, "db1", seed)
    for _ in range(4):
        story.write(40)
    for number, sequence in enumerate(story.moments):
        raw, qcow2 = folder / f"{number}.raw", folder / f"{number}.qcow2"
        answer = daemon.ask("volume", "export", f"db1@#{sequence}", raw)
        assert sequence_of(answer["at"]) == sequence and answer["format"] == "raw"
        assert int(answer["data_bytes"]) == len(story.moments[sequence]) * BLOCK
        assert daemon.ask("volume", "export", f"db1@#{sequence}", qcow2)["format"] == "qcow2"
        assert raw.stat().st_size == BLOCKS * BLOCK
        assert digest(raw) == story.digest_at(sequence)
        for path in (raw, qcow2):  # (a file system may take some for itself)
            assert path.stat().st_blocks * 512 <= len(story.moments[sequence]) * BLOCK + (2 << 20)
        check = qemu_img("check", "--output", "json", qcow2)
        assert check.returncode == 0 and json.loads(check.stdout).get("leaks", 0) == 0, check
        assert json.loads(check.stdout)["check-errors"] == 0
        assert qemu_img("compare", "-s", "-f", "qcow2", "-F", "raw", qcow2, raw).returncode in (0, 1)
        assert qemu_img("compare", "-f", "qcow2", "-F", "raw", qcow2, raw).returncode == 0
        assert qemu_img("convert", "-f", "qcow2", "-O", "raw", qcow2, folder / "back.raw").returncode == 0
        assert digest(folder / "back.raw") == story.digest_at(sequence)
    now = max(story.moments)
    assert daemon.ask("volume", "export", "db1", folder / "now.raw")["at"]["sequence"] == str(now)
    assert digest(folder / "now.raw") == story.digest_at(now)
    streamed = subprocess.run(f"{mariner.MARINER} --socket {daemon.socket} volume export db1 - | sha256sum", shell=True,
                              capture_output=True, text=True, timeout=120)
    assert streamed.stdout.split()[0] == story.digest_at(now), streamed
    assert f"#{now}  " in streamed.stderr


@pytest.mark.slow
def test_an_imported_volume_is_exported_with_its_base(daemon, folder, seed):
    source = folder / "disk.raw"
    source.write_bytes(random.Random(seed).randbytes(8 << 20))
    os.truncate(source, 64 << 20)
    daemon.ask("volume", "import", "db1", str(source))
    qemu_io(daemon.volume_url("db1"), "write -P 7 4M 1M", "write -z 1M 1M")
    daemon.ask("volume", "export", "db1@#0", folder / "then.raw")
    assert digest(folder / "then.raw") == digest(source)
    assert (folder / "then.raw").stat().st_blocks * 512 <= 10 << 20, "zeros of the base stay holes"
    daemon.ask("volume", "export", "db1", folder / "now.raw")
    expected = bytearray(source.read_bytes())
    expected[4 << 20:5 << 20] = b"\7" * (1 << 20)
    expected[1 << 20:2 << 20] = bytes(1 << 20)
    assert (folder / "now.raw").read_bytes() == expected


@pytest.mark.slow
def test_a_moment_is_exported_while_the_volume_is_written(daemon, folder, seed):
    story = Story(daemon, "db1", seed)
    then = story.write(60)
    writer = subprocess.Popen(["qemu-io", "-f", "raw", "-t", "none", story.url], stdin=subprocess.PIPE, text=True,
                              stdout=subprocess.DEVNULL)
    try:
        for i in range(200):
            writer.stdin.write(f"write -P {i % 255 + 1} {i * 960 % 190 << 20} 512k\n")
        writer.stdin.flush()
        for number in range(3):
            daemon.ask("volume", "export", f"db1@#{then}", folder / f"{number}.raw")
            assert digest(folder / f"{number}.raw") == story.digest_at(then)
        writer.stdin.close()
        assert writer.wait(120) == 0
    finally:
        writer.kill()
        writer.wait()
    assert daemon.ask("volume", "show", "db1")["newest"]["sequence"] != str(then)


def test_what_cannot_be_exported_is_said_and_leaves_nothing(daemon, folder):
    daemon.create("db1", "4M")
    qemu_io(daemon.volume_url("db1"), "write -P 1 0 1M")
    out = folder / "out"
    out.mkdir()
    for words, code, text in [
            (["db1@#99", out / "a.raw"], 3, "#99"),
            (["db1@2001-01-01T00:00:00Z", out / "a.raw"], 3, ""),
            (["db1@tomorrow", out / "a.raw"], 2, "tomorrow"),
            (["db2", out / "a.raw"], 1, "db2"),
            (["db1", out / "missing" / "a.raw"], 1, "missing"),
            (["db1", out], 2, "neither a file nor a block device"),
            (["db1", "-", "--format", "qcow2"], 2, "expected a file")]:
        answer = daemon.cli("volume", "export", *words, check=False)
        assert answer.code == code and text in answer.err, (words, answer)
    assert list(out.iterdir()) == []
    (out / "a.raw").write_text("mine")
    refused = daemon.cli("volume", "export", "db1", out / "a.raw", check=False)
    assert refused.code == 1 and "--force" in refused.err
    planned = daemon.ask("--dry-run", "volume", "export", "db1", out / "a.raw", "--force")
    assert planned["dry_run"] and planned["at"]["sequence"] == "1" and planned["size_bytes"] == str(4 << 20)
    assert (out / "a.raw").read_text() == "mine"
    daemon.ask("volume", "export", "db1", out / "a.raw", "--force")
    assert (out / "a.raw").read_bytes() == b"\1" * (1 << 20) + bytes(3 << 20)
    assert [path.name for path in out.iterdir()] == ["a.raw"]


@pytest.fixture
def device(folder):
    """A block device of 80 MiB that is full of garbage."""
    file = folder / "device"
    file.write_bytes(b"\xAA" * (80 << 20))
    made = subprocess.run(["losetup", "--find", "--show", str(file)], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no loop device can be had here: {made.stderr}")
    yield pathlib.Path(made.stdout.strip())
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


def test_a_block_device_is_overwritten_by_force(daemon, device):
    daemon.create("db1", "64M")
    qemu_io(daemon.volume_url("db1"), "write -P 7 4M 1M", "write -P 8 60M 4M")
    assert "--force" in daemon.cli("volume", "export", "db1", device, check=False).err
    assert daemon.cli("volume", "export", "db1", device, "--force", "--format", "qcow2", check=False).code == 2
    daemon.ask("volume", "export", "db1", device, "--force")
    expected = bytearray(64 << 20) + b"\xAA" * (16 << 20)
    expected[4 << 20:5 << 20] = b"\7" * (1 << 20)
    expected[60 << 20:64 << 20] = b"\10" * (4 << 20)
    assert device.read_bytes() == expected, "zeros too, and nothing behind the volume's end"
    daemon.create("db2", "128M")
    small = daemon.cli("volume", "export", "db2", device, "--force", check=False)
    assert small.code == 2 and "expected 134217728 at least" in small.err


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["daemon", "command"])
def test_an_export_that_is_killed_leaves_no_file(daemon, folder, whom):
    daemon.create("db1", "1G")
    qemu_io(daemon.volume_url("db1"), *[f"write -P 5 {i * 16}M 16M" for i in range(64)])
    out = folder / "out"
    out.mkdir()
    export = begin(daemon, "volume", "export", "db1", str(out / "a.qcow2"))
    assert "db1 as of #" in export.stdout.readline()
    assert "done_bytes" in export.stdout.readline(), "it is in the middle"
    if whom == "daemon":
        daemon.kill()
        _, errors = export.communicate(timeout=120)
        # In the middle of an answer it broke off; between two it cannot be reached.
        said = "the daemon's answer broke off", "marinerd is not running"
        assert export.returncode == 1 and any(each in errors for each in said), errors
    else:
        export.send_signal(signal.SIGKILL)
        export.communicate(timeout=120)
    assert [path for path in out.iterdir() if not path.name.startswith(".")] == []


def test_a_full_disk_ends_an_export_and_leaves_nothing(daemon, folder):
    daemon.create("db1", "64M")
    qemu_io(daemon.volume_url("db1"), "write -P 5 0 64M")
    out = folder / "out"
    out.mkdir()
    export = begin(daemon, "volume", "export", "db1", str(out / "a.raw"), preexec_fn=lambda: limit_files(16 << 20))
    _, errors = export.communicate(timeout=120)
    assert export.returncode == 1 and "a.raw: write: " in errors, errors
    assert list(out.iterdir()) == []


def limit_files(size: int):
    """Longer ones cannot be written: the nearest to a full disk that needs no file system of one's own."""
    import resource
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.slow
def test_a_clone_is_the_moment_and_then_its_own(daemon, folder, seed):
    story = Story(daemon, "db1", seed)
    then = story.write(60)
    now = story.write(60)
    planned = daemon.ask("--dry-run", "volume", "clone", f"db1@#{then}", "db2")
    assert planned["volume"]["state"] == "planned" and sequence_of(planned["at"]) == then
    assert [volume["name"] for volume in daemon.ask("volume", "list")["volumes"]] == ["db1"]
    answer = daemon.ask("volume", "clone", f"db1@#{then}", "db2", "--window", "1d")
    assert sequence_of(answer["at"]) == then and answer["volume"]["window_s"] == str(86400)
    assert answer["volume"]["size_bytes"] == str(BLOCKS * BLOCK)
    clone = daemon.volume_url("db2")
    assert lun_digest(clone, folder) == story.digest_at(then)
    assert int(answer["volume"]["image_bytes"]) <= len(story.moments[then]) * BLOCK + (2 << 20)

    taken = daemon.cli("volume", "clone", "db1", "db2", check=False)
    assert taken.code == 1 and "exists already" in taken.err
    outside = daemon.cli("volume", "clone", "db1@#9999", "db3", check=False)
    assert outside.code == 3

    qemu_io(clone, f"write -P 9 0 {BLOCKS * BLOCK // 2}", "write -z 100M 8M", "discard 120M 8M")
    assert lun_digest(story.url, folder) == story.digest_at(now), "the source does not change"
    latest = story.write(20)
    for restarted in (False, True):
        if restarted:
            daemon.stop()
            daemon.start()
        assert lun_digest(story.url, folder) == story.digest_at(latest)
        daemon.ask("volume", "export", "db2@#0", folder / "base.raw", "--force")
        assert digest(folder / "base.raw") == story.digest_at(then), "what it began with, by before-images"
        view = daemon.expose("db2", "#0")
        assert lun_digest(daemon.url(view["iqn"]), folder) == story.digest_at(then)
        daemon.ask("view", "unexpose", view["name"])
        expected = bytearray(story.bytes_at(then))
        expected[:BLOCKS * BLOCK // 2] = b"\11" * (BLOCKS * BLOCK // 2)
        expected[100 << 20:108 << 20] = expected[120 << 20:128 << 20] = bytes(8 << 20)
        assert lun_digest(daemon.volume_url("db2"), folder) == hashlib.sha256(expected).hexdigest()
    daemon.ask("volume", "delete", "db1", "--force")
    daemon.rollback("db2", "#0")
    assert lun_digest(daemon.volume_url("db2"), folder) == story.digest_at(then)


@pytest.mark.slow
def test_a_crash_in_the_middle_of_a_clone_leaves_no_half_volume(daemon, folder):
    daemon.create("db1", "1G")
    qemu_io(daemon.volume_url("db1"), *[f"write -P 5 {i * 16}M 16M" for i in range(64)])
    clone = begin(daemon, "volume", "clone", "db1", "db2")
    assert "done_bytes" in clone.stdout.readline(), "it is in the middle"
    states = {volume["name"]: volume["state"] for volume in daemon.ask("volume", "list")["volumes"]}
    assert states == {"db1": "ready", "db2": "cloning"}
    assert daemon.cli("volume", "delete", "db2", "--yes", check=False).code != 0, "it is not served yet"
    daemon.kill()
    assert clone.wait(120) == 1
    clone.communicate()
    daemon.start()
    assert [volume["name"] for volume in daemon.ask("volume", "list")["volumes"]] == ["db1"]
    assert sorted(path.name for path in (daemon.state / "images").iterdir()) == ["1.raw"]
    assert any("cloning a volume was interrupted" in line for line in daemon.log_lines())
    daemon.ask("volume", "clone", "db1", "db2")
    qemu_io(daemon.volume_url("db2"), "read -P 5 0 1G")


@pytest.mark.slow
def test_a_source_that_is_deleted_ends_its_clone(daemon, folder):
    daemon.create("db1", "1G")
    qemu_io(daemon.volume_url("db1"), *[f"write -P 5 {i * 16}M 16M" for i in range(64)])
    clone = begin(daemon, "volume", "clone", "db1", "db2")
    assert "done_bytes" in clone.stdout.readline()
    daemon.ask("volume", "delete", "db1", "--force")
    clone.communicate(timeout=120)
    names = [volume["name"] for volume in daemon.ask("volume", "list")["volumes"]]
    assert (clone.returncode, names) in [(0, ["db2"]), (1, []), (3, [])], "whole, or not there"
    wait_until(lambda: len(list((daemon.state / "images").iterdir())) == len(names), 20, "the rest is gone")
