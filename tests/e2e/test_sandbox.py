"""The programs that parse file systems, as they run: in their sandbox. What they print there is in test_fs_verbs.py and test_fsck_verbs.py."""

import os
import pathlib
import signal
import subprocess

import pytest

import mariner
from programs import done, run

IFSCK = mariner.BUILD / "ifsck" / "program" / "ifsck"
FUSE = pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="without FUSE nothing is mounted")


def status(process: int) -> dict[str, str]:
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


@pytest.fixture
def image(folder) -> pathlib.Path:
    content = folder / "content"
    (content / "deep").mkdir(parents=True)
    (content / "deep" / "file").write_text("deep\n" * 5000)
    os.link(content / "deep" / "file", content / "twin")
    os.mkfifo(content / "pipe")
    path = folder / "disk.raw"
    done("mke2fs", "-q", "-t", "ext4", "-b", 4096, "-d", content, path, "16384k")
    return path


class Mount:
    def __init__(self, image: pathlib.Path, folder: pathlib.Path):
        self.folder = folder / "history"
        self.folder.mkdir()
        self.process = subprocess.Popen([mariner.UVFS, "mount", "--image", image, self.folder, "--foreground"], stdout=subprocess.PIPE, text=True)
        assert "umount" in self.process.stdout.readline()

    def is_there(self) -> bool:
        return os.path.ismount(self.folder)


@pytest.fixture
def mounted(image, folder):
    mount = Mount(image, folder)
    yield mount
    if mount.process.poll() is None:
        mount.process.terminate()
        mount.process.wait(timeout=30)
    assert not mount.is_there()


@FUSE
def test_a_mount_is_confined(mounted):
    assert (mounted.folder / "@now" / "deep" / "file").read_text() == "deep\n" * 5000
    about = status(mounted.process.pid)
    assert (about["Seccomp"], about["NoNewPrivs"]) == ("2", "1")
    assert [about[each] for each in ("CapPrm", "CapEff", "CapInh", "CapAmb")] == ["0" * 16] * 4
    limits = pathlib.Path(f"/proc/{mounted.process.pid}/limits").read_text()
    assert "Max core file size        0 " in limits and f"Max data size             {8 << 30} " in limits


@FUSE
def test_a_mount_ends_with_its_process(mounted):
    mounted.process.terminate()
    assert mounted.process.wait(timeout=30) == 0
    assert not mounted.is_there()


@FUSE
def test_a_mount_whose_process_is_killed_hangs_nobody(mounted):
    assert os.listdir(mounted.folder / "@now")
    mounted.process.kill()
    assert mounted.process.wait(timeout=30) == -signal.SIGKILL
    mariner.wait_until(lambda: not mounted.is_there(), 30, "it is unmounted")


@FUSE
def test_who_mounts_in_the_background_is_told_what_is_wrong(image, folder):
    where = folder / "history"
    where.mkdir()
    refused = run(mariner.UVFS, "mount", "--image", image, ":/nothing", where)
    assert refused.returncode == 2 and "/nothing cannot be mounted by itself" in refused.stderr and not os.path.ismount(where)
    done(mariner.UVFS, "mount", "--image", image.name, "history", cwd=folder)
    try:
        assert (where / "@now" / "twin").read_text() == "deep\n" * 5000
    finally:
        done("umount", where)


@FUSE
def test_what_is_not_understood_is_mounted_as_an_image(folder):
    where, image = folder / "history", folder / "swap.raw"
    where.mkdir()
    image.write_bytes(os.urandom(1 << 20))
    done("mkswap", image)
    mounted = run(mariner.UVFS, "mount", "--image", image, where)
    try:
        assert mounted.returncode == 0 and "@TIME/volume.img, without files" in mounted.stderr and "swap space" in mounted.stderr
        assert (where / "@now" / "volume.img").read_bytes() == image.read_bytes()
    finally:
        done("umount", where)


def test_verbs_print_the_same_with_and_without(image, folder):
    def both(*words, code: int = 0):
        words = [*words, "--image", image]
        ended = [run(*words, env={**os.environ, "MARINER_SANDBOX": value}) for value in ("", "off")]
        assert [each.returncode for each in ended] == [code, code], ended
        assert ended[0].stdout == ended[1].stdout and ended[0].stderr == ended[1].stderr
        return ended[0].stdout

    assert "deep" in both(mariner.UVFS, "ls", "/")
    assert both(mariner.UVFS, "cat", "/deep/file") == "deep\n" * 5000
    both(mariner.UVFS, "versions", "/deep/file")
    both(mariner.UVFS, "incarnations", "/deep/file")
    both(mariner.UVFS, "find", "/", "--name", "f*")
    both(mariner.UVFS, "diff", "/@now", "@now")
    both(mariner.UVFS, "cat", "/nothing", code=1)
    assert "clean: 0 findings" in done(IFSCK, "check", "--image", image, "--no-save")


def test_a_restored_tree_is_as_it_was(image, folder):
    to = folder / "restored"
    done(mariner.UVFS, "restore", "/", "--image", image, "--to", to)
    assert (to / "deep" / "file").stat().st_ino == (to / "twin").stat().st_ino
    if os.geteuid() == 0:
        assert (to / "pipe").is_fifo() and (to / "lost+found").stat().st_mode & 0o777 == 0o700
    refused = run(mariner.UVFS, "restore", "/", "--image", image, "--to", to)
    assert refused.returncode == 1 and "--force" in refused.stderr
    assert sorted(os.listdir(folder)) == ["content", "disk.raw", "restored"]


def test_what_is_known_is_kept(image, folder):
    states = folder / "states"
    for _ in range(2):
        done(IFSCK, "check", "--image", image, "--states", states)
    assert [each.suffix for each in states.iterdir()] == [".baseline"]


def test_the_environment_is_understood_or_refused(image):
    refused = run(mariner.UVFS, "ls", "/", "--image", image, env={**os.environ, "MARINER_SANDBOX": "no"})
    assert refused.returncode == 2 and "MARINER_SANDBOX=no: expected off" in refused.stderr
