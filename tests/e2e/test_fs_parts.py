"""Files of the past in partitions: a GPT disk with an EFI, an ext4 and an NTFS partition, written to over iSCSI."""

import os
import pathlib

import pytest

import mariner
from programs import done, run

VOLUME = "pc1"
BLOCK = 4096
MIB = 1 << 20
SIZE = 96 * MIB
# Name, kind of sgdisk, where it begins, how long it is.
PARTS = {"p1": ("ef00", 1 * MIB, 16 * MIB), "p2": ("8300", 17 * MIB, 32 * MIB), "p3": ("0700", 49 * MIB, 32 * MIB)}


class Disk:
    """A disk of a PC; in each file system /notes is written, changed and deleted."""

    def __init__(self, daemon, folder: pathlib.Path):
        self.daemon, self.folder = daemon, folder
        self.image = folder / "disk.raw"
        self.text = folder / "text"
        self.clock = 0
        for name, make in (("p1", ["mkfs.fat"]), ("p2", ["mke2fs", "-q", "-t", "ext4"]), ("p3", ["mkntfs", "-q", "-F", "-Q"])):
            self.part(name).touch()
            os.truncate(self.part(name), PARTS[name][2])
            done(*make, self.part(name))
        self.image.touch()
        os.truncate(self.image, SIZE)
        for number, (kind, begin, length) in enumerate(PARTS.values(), start=1):
            done("sgdisk", "-n", f"{number}:{begin // 512}:{(begin + length) // 512 - 1}", "-t", f"{number}:{kind}", self.image)
        with open(self.image, "r+b") as disk:
            for name, (_, begin, _) in PARTS.items():
                disk.seek(begin)
                disk.write(self.part(name).read_bytes())
        daemon.ask("volume", "import", VOLUME, self.image)
        self.url = daemon.volume_url(VOLUME)
        self.made = self.write_all("one\ntwo\n")
        self.changed = self.write_all("one\n2\nthree\n")
        self.deleted = self.delete_all()

    def part(self, name: str) -> pathlib.Path:
        return self.folder / name

    def write_all(self, text: str) -> int:
        self.text.write_text(text)
        self.clock += 1000  # (debugfs knows seconds alone)
        replace = ("rm /notes", f"write {self.text} /notes", f"set_inode_field /notes ctime @{self.clock}")
        self.change("p1", ["mcopy", "-o", "-i", self.part("p1"), self.text, "::notes"])
        self.change("p2", *(["debugfs", "-w", "-R", each, self.part("p2")] for each in replace))
        return self.change("p3", ["ntfscp", "-q", self.part("p3"), self.text, "notes"])

    def delete_all(self) -> int:
        self.change("p1", ["mdel", "-i", self.part("p1"), "::notes"])
        return self.change("p2", ["debugfs", "-w", "-R", "rm /notes", self.part("p2")])

    def change(self, name: str, *commands: list) -> int:
        """What the commands do to a part is written to the volume, backwards: contents before what says where they are."""
        before = self.part(name).read_bytes()
        for command in commands:
            done(*command)
        after = self.part(name).read_bytes()
        writes = []
        for at in reversed(range(0, len(after), BLOCK)):
            if before[at:at + BLOCK] != after[at:at + BLOCK]:
                piece = self.folder / f"block{at}"
                piece.write_bytes(after[at:at + BLOCK])
                writes += ["-c", f"write -s {piece} {PARTS[name][1] + at} {BLOCK}"]
        assert writes
        done("qemu-io", "-f", "raw", *writes, self.url)
        return mariner.sequence_of(self.daemon.ask("volume", "show", VOLUME)["newest"])


@pytest.fixture(scope="module")
def disk(module_folder):
    with mariner.Daemon(module_folder) as daemon:
        daemon.start()
        yield Disk(daemon, module_folder)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_has_the_files_of_its_file_system(disk, part):
    ask = disk.daemon.ask
    listed = ask("fs", "ls", f"{VOLUME}:/{part}@#{disk.changed}")
    assert listed["path"]["text"] == f"/{part}"
    [entry] = [each for each in listed["entries"] if each["name"]["text"] == "notes"]
    assert int(entry["object"]["size"]) == len("one\n2\nthree\n")
    assert disk.daemon.cli("fs", "cat", f"{VOLUME}:/{part}/notes@#{disk.made}").out == "one\ntwo\n"
    assert disk.daemon.cli("fs", "cat", f"{VOLUME}:/{part}/notes@#{disk.changed}").out == "one\n2\nthree\n"


@pytest.mark.parametrize("part", PARTS)
def test_versions_are_named_with_their_part(disk, part):
    [path] = disk.daemon.ask("fs", "versions", f"{VOLUME}:/{part}/notes")["paths"]
    assert path["path"]["text"] == f"/{part}/notes"
    texts = {disk.daemon.cli("fs", "cat", version["argument"]).out for life in path["incarnations"] for version in life["versions"]}
    assert {"one\ntwo\n", "one\n2\nthree\n"} <= texts
    gone = "end" in path["incarnations"][-1]
    assert gone == (part != "p3"), "only there it is still"


def test_what_was_deleted_is_found_and_restored(disk):
    found = disk.daemon.ask("fs", "find", f"{VOLUME}:/p2", "--deleted", "--name", "notes")["files"]
    assert [each["path"]["text"] for each in found] == ["/p2/notes"]
    done(mariner.MARINER, "--socket", disk.daemon.socket, "fs", "restore", found[0]["argument"], "--to", disk.folder / "back")
    assert (disk.folder / "back").read_text() == "one\n2\nthree\n"


def test_two_moments_of_a_part_are_compared(disk):
    diff = disk.daemon.ask("fs", "diff", f"{VOLUME}:/p2@#{disk.made}", f"@#{disk.deleted}")
    assert {(each["path"]["text"], each["change"]) for each in diff["changes"]} >= {("/p2/notes", "removed")}
    text = disk.daemon.ask("fs", "diff", f"{VOLUME}:/p3/notes@#{disk.made}", f"@#{disk.changed}")["unified"]
    assert "-two" in text and "+three" in text
    other = disk.daemon.cli("fs", "diff", f"{VOLUME}:/p2/notes@#{disk.made}", f"{VOLUME}:/p3/notes@#{disk.made}", check=False)
    assert other.code == 2 and "is not in /p2" in other.err


def test_what_is_no_part_is_said_with_those_that_there_are(disk):
    for path in ("/", "/etc/passwd", "/p4/notes"):
        answer = disk.daemon.cli("fs", "ls", f"{VOLUME}:{path}", check=False)
        assert answer.code == 2
        for expected in ("GPT", "/p1 (FAT)", "/p2 (ext)", "/p3 (NTFS)"):
            assert expected in answer.err, answer.err


@pytest.mark.skipif(os.geteuid() != 0 or not os.access("/dev/fuse", os.W_OK), reason="mounting takes root and FUSE")
def test_a_part_is_mounted(disk):
    where = disk.folder / "past"
    where.mkdir()
    wrong = run(mariner.MARINER, "--socket", disk.daemon.socket, "fs", "mount", VOLUME, where)
    assert wrong.returncode == 2 and "/p3 (NTFS)" in wrong.stderr
    for part in PARTS:
        done(mariner.MARINER, "--socket", disk.daemon.socket, "fs", "mount", f"{VOLUME}:/{part}", where)
        try:
            assert (where / f"@#{disk.changed}" / "notes").read_text() == "one\n2\nthree\n"
            versions = sorted(os.listdir(where / "versions" / "notes"))
            assert "one\ntwo\n" in [(where / "versions" / "notes" / each).read_text() for each in versions]
        finally:
            done("umount", where)
