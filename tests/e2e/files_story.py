"""A volume whose files have a past: for tests of what is asked about them."""

import os
import pathlib

import mariner
from programs import done

VOLUME = "db1"
BLOCK = 4096
SIZE = 32 << 20


class Story:
    """A volume with an ext2 file system: /notes is written, changed, and deleted; /tree stays."""

    def __init__(self, daemon, folder: pathlib.Path):
        self.daemon = daemon
        self.folder = folder
        self.image = folder / "disk.raw"
        self.clock = 0
        content = folder / "content"
        (content / "tree" / "deep").mkdir(parents=True)
        (content / "tree" / "deep" / "file").write_text("deep\n" * 5000)
        (content / "tree" / "link").symlink_to("deep/file")
        os.link(content / "tree" / "deep" / "file", content / "tree" / "twin")
        (content / "tree" / "deep" / "file").chmod(0o640)
        done("mke2fs", "-q", "-t", "ext2", "-b", BLOCK, "-d", content, self.image, f"{SIZE >> 10}k")
        daemon.ask("volume", "import", VOLUME, self.image)
        self.url = daemon.volume_url(VOLUME)
        self.made = self.change("one\ntwo\n")
        self.changed = self.change("one\n2\nthree\n", "rm /notes")
        self.deleted = self.change(None, "rm /notes")

    def change(self, notes: str | None, *requests: str) -> int:
        """debugfs changes a copy, and what it changed is written to the volume: contents before the inodes that say so, as a host does."""
        before = self.image.read_bytes()
        script = list(requests)
        if notes is not None:
            (self.folder / "text").write_text(notes)
            self.clock += 1000
            script += [f"write {self.folder / 'text'} /notes", f"set_inode_field /notes ctime @{self.clock}"]
        for request in script:
            done("debugfs", "-w", "-R", request, self.image)
        after = self.image.read_bytes()
        commands = []
        for at in reversed(range(0, SIZE, BLOCK)):
            if before[at:at + BLOCK] != after[at:at + BLOCK]:
                file = self.folder / f"block{at}"
                file.write_bytes(after[at:at + BLOCK])
                commands += ["-c", f"write -s {file} {at} {BLOCK}"]
        done("qemu-io", "-f", "raw", *commands, self.url)
        return mariner.sequence_of(self.daemon.ask("volume", "show", VOLUME)["newest"])

    def fs(self, *words: str, check: bool = True):
        return self.daemon.cli("fs", *words, check=check)

    def ask(self, *words: str) -> dict:
        return self.daemon.cli("--json", "fs", *words).json()
