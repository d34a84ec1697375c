"""Files of the past through `mariner fs`: with a real daemon, the real uvfs, and an ext2 file system written to over iSCSI."""

import os
import shutil

import pytest

import mariner
from files_story import VOLUME, Story
from programs import done, run


@pytest.fixture
def story(daemon, folder):
    return Story(daemon, folder)


def test_words_and_exit_code_are_handed_over(folder):
    here = folder / "bin"
    here.mkdir()
    shutil.copy(mariner.MARINER, here / "mariner")
    (here / "uvfs").write_text('#!/bin/sh\necho "$@"\nexit 3\n')
    (here / "uvfs").chmod(0o755)
    ended = run(here / "mariner", "--socket", "/s", "fs", "restore", "db1:/a@#5", "--to", "x", "--dry-run", "--quiet")
    assert (ended.returncode, ended.stdout) == (3, "restore db1:/a@#5 --to x --dry-run --socket /s --quiet\n")
    (here / "uvfs").unlink()
    none = run(here / "mariner", "fs", "ls", "db1:/", env={**os.environ, "PATH": "/nonexistent"})
    assert none.returncode == 1 and "the program uvfs, which reads the files of the past, is neither in" in none.stderr


def test_a_moment_is_listed_and_read(story):
    listed = story.fs("ls", f"{VOLUME}:/@#{story.made}").out
    assert f"{VOLUME}  #{story.made}  " in listed and "  notes\n" in listed and "  tree\n" in listed
    assert "  notes\n" not in story.fs("ls", f"{VOLUME}:/").out
    assert story.fs("cat", f"{VOLUME}:/notes@#{story.made}").out == "one\ntwo\n"
    assert story.fs("cat", f"{VOLUME}:/notes@#{story.changed}").out == "one\n2\nthree\n"
    gone = story.fs("cat", f"{VOLUME}:/notes", check=False)
    assert gone.code == 1 and f"uvfs find --deleted {VOLUME}:/ lists" in gone.err
    assert story.fs("cat", f"{VOLUME}:/notes@#{story.deleted + 100}", check=False).code == 3
    assert story.fs("cat", f"{VOLUME}:/notes@sometime", check=False).code == 2


def test_versions_are_found_and_compared(story):
    history = story.ask("versions", f"{VOLUME}:/notes")
    lives = history["paths"][0]["incarnations"]
    texts = [story.fs("cat", version["argument"]).out for life in lives for version in life["versions"]]
    assert "one\ntwo\n" in texts and texts[-1] == "one\n2\nthree\n"
    assert mariner.sequence_of(lives[-1]["end"]) <= story.deleted
    assert len(story.ask("incarnations", f"{VOLUME}:/notes")["paths"][0]["incarnations"]) == len(lives)
    diff = story.fs("diff", f"{VOLUME}:/notes@#{story.made}", f"@#{story.changed}").out
    assert "@@ -1,2 +1,3 @@\n one\n-two\n+2\n+three\n" in diff
    assert story.fs("diff", f"{VOLUME}:/@#{story.changed}", "@now").out == "D /notes\n"


def test_what_was_deleted_is_found_and_restored(story):
    found = story.ask("find", VOLUME, "--deleted", "--type", "f")["files"]
    assert [each["path"]["text"] for each in found] == ["/notes"]
    to = story.folder / "restored"
    story.fs("restore", found[0]["argument"], "--to", str(to))
    assert to.read_text() == "one\n2\nthree\n"
    refused = story.fs("restore", found[0]["argument"], "--to", str(to), check=False)
    assert refused.code == 1 and "--force" in refused.err


def test_a_tree_is_restored_as_it_was(story):
    to = story.folder / "tree"
    assert "Dry run" in story.daemon.cli("--dry-run", "fs", "restore", f"{VOLUME}:/tree@#{story.made}", "--to", str(to)).out
    assert not to.exists()
    restored = story.ask("restore", f"{VOLUME}:/tree@#{story.made}", "--to", str(to))
    assert (restored["directories"], restored["links"]) == ("2", "1")
    original = story.folder / "content" / "tree"
    assert (to / "deep" / "file").read_bytes() == (original / "deep" / "file").read_bytes()
    assert (to / "deep" / "file").stat().st_mode == (original / "deep" / "file").stat().st_mode
    assert int((to / "deep" / "file").stat().st_mtime) == int((original / "deep" / "file").stat().st_mtime)
    assert (to / "twin").stat().st_ino == (to / "deep" / "file").stat().st_ino
    assert os.readlink(to / "link") == "deep/file"


@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="without FUSE nothing is mounted")
def test_the_past_is_mounted(story):
    daemon, where = story.daemon, story.folder / "history"
    where.mkdir()
    story.daemon.ask("mark", "add", f"{VOLUME}@#{story.made}", "begin")
    daemon.cli("fs", "mount", VOLUME, str(where))
    try:
        then = where / f"@#{story.made}"
        assert (then / "notes").read_text() == "one\ntwo\n"
        assert (where / f"@#{story.changed}" / "notes").read_text() == "one\n2\nthree\n"
        assert sorted(os.listdir(where / "latest")) == ["lost+found", "tree"]
        assert (where / "marks" / "begin" / "notes").read_text() == "one\ntwo\n"
        assert (where / "deleted" / "notes").read_text() == "one\n2\nthree\n"
        versions = sorted(os.listdir(where / "versions" / "notes"))
        assert [(where / "versions" / "notes" / each).read_text() for each in versions][-1] == "one\n2\nthree\n"
        # The moment is resolved: a time means the last write at or before it.
        at = daemon.ask("volume", "show", VOLUME)["newest"]
        assert (where / f"@{at['utc']}").stat().st_mtime_ns == int(at["time_ns"])
        # What people use works, and says what the original says.
        original = story.folder / "content" / "tree"
        done("diff", "-r", "--no-dereference", original, then / "tree")
        assert sorted(done("find", ".", cwd=then / "tree").split()) == sorted(done("find", ".", cwd=original).split())
        assert done("grep", "-rl", "deep", ".", cwd=then / "tree").split()
        done("cp", "-a", then / "tree", story.folder / "copied")
        done("diff", "-r", "--no-dereference", original, story.folder / "copied")
        done("tar", "-C", then, "-cf", story.folder / "tree.tar", "tree")
        assert "tree/deep/file" in done("tar", "-tf", story.folder / "tree.tar")
        with pytest.raises(OSError, match="Read-only"):
            (then / "notes").write_text("other")
        with pytest.raises(FileNotFoundError):
            os.listdir(where / "@sometime")
    finally:
        done("umount", where)


def test_a_rollback_brings_files_back(story):
    """It is one write, by which a path has its object again; and its undoing is another, by which it has not."""
    story.daemon.ask("--yes", "rollback", f"{VOLUME}@#{story.changed}", "--force")
    back = mariner.sequence_of(story.daemon.ask("volume", "show", VOLUME)["newest"])
    assert story.fs("cat", f"{VOLUME}:/notes").out == "one\n2\nthree\n"
    story.daemon.ask("--yes", "rollback", "undo", VOLUME, "--force")
    gone = mariner.sequence_of(story.daemon.ask("volume", "show", VOLUME)["newest"])
    lives = story.ask("incarnations", f"{VOLUME}:/notes", "--since", f"#{story.deleted}")["paths"][0]["incarnations"]
    assert [(mariner.sequence_of(life["from"]), mariner.sequence_of(life["end"])) for life in lives] == [(back, gone)]
    assert [each["path"]["text"] for each in story.ask("find", VOLUME, "--deleted", "--type", "f")["files"]] == ["/notes"]
