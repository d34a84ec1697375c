"""A moment's file system, checked, looked for and mended by `mariner`: with a real daemon, the real ifsck, and e2fsck as the judge."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

import mariner
from programs import done, run

VOLUME = "db1"
BLOCK = 4096
SIZE = 32 << 20
IFSCK = mariner.BUILD / "ifsck" / "program" / "ifsck"
SOUND, ERRORS = 0, 10


class Story:
    """A volume with an ext4 file system, sound at `sound`, and with wrong counts and an entry of no inode since."""

    def __init__(self, daemon, folder: pathlib.Path, *options: str):
        self.daemon = daemon
        self.folder = folder
        self.image = folder / "disk.raw"
        content = folder / "content"
        content.mkdir()
        for i in range(20):
            (content / f"file{i}").write_text(f"{i}\n" * 5000)
        done("mke2fs", "-q", "-t", "ext4", *options, "-b", BLOCK, "-d", content, self.image, f"{SIZE >> 10}k")
        daemon.ask("volume", "import", VOLUME, self.image)
        self.url = daemon.volume_url(VOLUME)
        self.write(SIZE // BLOCK - 1)  # of a block that the file system does not use
        self.sound = self.newest()
        self.damage("set_inode_field /file3 links_count 7", "clri /file5")
        self.damaged = self.newest()

    def newest(self) -> int:
        return mariner.sequence_of(self.daemon.ask("volume", "show", VOLUME)["newest"])

    def write(self, block: int, data: bytes = bytes(BLOCK)):
        file = self.folder / "block"
        file.write_bytes(data)
        done("qemu-io", "-f", "raw", "-c", f"write -s {file} {block * BLOCK} {BLOCK}", self.url)

    def damage(self, *requests: str):
        before = self.image.read_bytes()
        for request in requests:
            done("debugfs", "-w", "-R", request, self.image)
        after = self.image.read_bytes()
        for at in range(0, SIZE, BLOCK):
            if before[at:at + BLOCK] != after[at:at + BLOCK]:
                self.write(at // BLOCK, after[at:at + BLOCK])

    def copy(self, url: str) -> pathlib.Path:
        to = self.folder / "copy.raw"
        done("qemu-img", "convert", "-f", "raw", "-O", "raw", url, to)
        return to

    def is_sound(self, url: str) -> bool:
        return run("e2fsck", "-f", "-n", self.copy(url)).returncode == 0


@pytest.fixture
def story(daemon, folder):
    return Story(daemon, folder)


# -- handing over: a script in the place of ifsck, since only the words and the end matter -----------------------------------------------


@pytest.fixture
def installed(folder):
    """`mariner` as it is installed, beside an ifsck that says its words and ends with 10."""
    here = folder / "bin"
    here.mkdir()
    shutil.copy(mariner.MARINER, here / "mariner")
    (here / "ifsck").write_text('#!/bin/sh\necho "$@"\nexit 10\n')
    (here / "ifsck").chmod(0o755)
    return here


def test_words_and_exit_code_are_handed_over(installed):
    check = run(installed / "mariner", "--socket", "/s", "fsck", "db1@#5", "--level", "2", "--quiet")
    assert (check.returncode, check.stdout) == (10, "check db1@#5 --level 2 --socket /s --quiet\n")
    find = run(installed / "mariner", "find-clean", "db1", "--before", "-10m", "--json", "--socket", "/s")
    assert (find.returncode, find.stdout) == (10, "find-clean db1 --before -10m --socket /s --json\n")


def test_one_in_the_path_is_found_and_none_is_said(installed, folder):
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (installed / "ifsck").rename(elsewhere / "ifsck")
    none = run(installed / "mariner", "fsck", "db1", env={**os.environ, "PATH": "/nonexistent"})
    assert none.returncode == 1 and "the program ifsck, which checks file systems, is neither in" in none.stderr
    found = run(installed / "mariner", "fsck", "db1", env={**os.environ, "PATH": f"{elsewhere}:/bin"})
    assert found.returncode == 10 and found.stdout.startswith("check db1 ")


# -- the real one --------------------------------------------------------------------------------------------------------------------


def test_a_moment_is_checked(story):
    assert story.daemon.cli("fsck", f"{VOLUME}@#{story.sound}", check=False).code == SOUND
    errors = story.daemon.cli("--json", "fsck", f"{VOLUME}@#{story.damaged}", check=False)
    assert errors.code == ERRORS and errors.json()["verdict"] == "repairable"
    assert story.daemon.cli("fsck", f"{VOLUME}@#{story.damaged + 100}", check=False).code == 3
    shown = {event["sequence"]: event["kind"] for event in story.daemon.ask("history", "show", VOLUME)["events"]}
    assert shown == {str(story.sound): "clean", str(story.damaged): "repairable"}
    assert f'mariner_fsck_duration_seconds_count{{volume="{VOLUME}"}} 2\n' in story.daemon.http("/metrics")[1]


def test_a_dry_run_of_a_check_keeps_nothing(story):
    assert story.daemon.cli("fsck", f"{VOLUME}@#{story.sound}", "--dry-run", check=False).code == SOUND
    assert story.daemon.ask("history", "show", VOLUME)["events"] == []


def test_the_newest_clean_moment_is_found(story):
    found = story.daemon.cli("--json", "find-clean", VOLUME).json()
    assert mariner.sequence_of(found["at"]) == story.sound


@pytest.mark.parametrize("flags", [(), ("--writable",)], ids=["read-only", "writable"])
def test_a_consistent_view_is_sound(story, flags):
    plain = story.daemon.expose(VOLUME, f"#{story.damaged}", *flags)
    assert not story.is_sound(story.daemon.url(plain["iqn"]))
    view = story.daemon.expose(VOLUME, f"#{story.damaged}", "--consistent", *flags)
    assert int(view["repaired_blocks"]) > 0 and view["writable"] == bool(flags)
    url = story.daemon.url(view["iqn"])
    assert story.is_sound(url)
    written = run("qemu-io", "-f", "raw", "-c", f"write -P 1 {SIZE - BLOCK} {BLOCK}", url)
    assert (written.returncode == 0) == bool(flags), written.stdout + written.stderr
    story.daemon.kill()
    story.daemon.start()
    assert story.is_sound(url), "after a crash"
    assert not story.is_sound(story.url), "the volume is as it was"


def test_a_consistent_rollback_is_sound_and_is_undone(story):
    story.damage("set_inode_field /file7 links_count 9")
    before = story.copy(story.url).read_bytes()
    planned = story.daemon.ask("rollback", f"{VOLUME}@#{story.damaged}", "--consistent", "--dry-run")
    assert int(planned["repaired_blocks"]) > 0 and story.copy(story.url).read_bytes() == before
    rolled = story.daemon.rollback(VOLUME, f"#{story.damaged}", "--consistent")
    assert rolled["repaired_blocks"] == planned["repaired_blocks"]
    assert story.is_sound(story.url)
    story.daemon.kill()
    story.daemon.start()
    assert story.is_sound(story.url), "after a crash"
    story.daemon.ask("rollback", "undo", VOLUME, "--force")
    assert story.copy(story.url).read_bytes() == before


def test_a_sound_moment_needs_nothing(story):
    view = story.daemon.expose(VOLUME, f"#{story.sound}", "--consistent")
    assert view["repaired_blocks"] == "0" and view["overlay_bytes"] == "0"
    assert story.is_sound(story.daemon.url(view["iqn"]))


def test_what_is_no_file_system_goes_no_further(daemon, folder):
    url = daemon.url(daemon.create("raw", "16M")["iqn"])
    done("qemu-io", "-f", "raw", "-c", f"write -P 7 0 {1 << 20}", url)
    refused = daemon.cli("view", "expose", "raw", "--consistent", check=False)
    assert refused.code == 1 and "without --consistent the moment is used as it is" in refused.err
    refused = daemon.cli("--json", "--yes", "rollback", "raw@#0", "--consistent", check=False)
    assert refused.code == 1 and json.loads(refused.out)["error"]["code"] == "not-found"
    assert daemon.ask("view", "list")["views"] == []


def test_the_newest_moments_are_followed_across_a_restart(daemon, folder):
    story = Story(daemon, folder, "-O", "^has_journal")

    def shown(sequence: int) -> str:
        at = [each for each in daemon.ask("history", "show", VOLUME)["events"] if mariner.sequence_of(each) == sequence]
        return at[0]["kind"] if at else ""

    with open(folder / "follow.log", "wb") as log:
        follower = subprocess.Popen([IFSCK, "--socket", daemon.socket, "follow", VOLUME, "--every", "200ms", "--states", folder / "states"],
                                    stdout=log, stderr=log)
    try:
        mariner.wait_until(lambda: shown(story.damaged) == "repairable", 30, "the newest moment is checked")
        daemon.kill()
        daemon.start()
        story.url = daemon.volume_url(VOLUME)
        story.write(SIZE // BLOCK - 1)
        newest = story.newest()
        mariner.wait_until(lambda: shown(newest) == "repairable", 30, "the newest moment after the restart is checked")
        assert follower.poll() is None
        assert "Seccomp:\t2\n" in pathlib.Path(f"/proc/{follower.pid}/status").read_text()
    finally:
        follower.kill()
        follower.wait()
