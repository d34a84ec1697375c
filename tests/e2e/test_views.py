"""Views in numbers: as many as there may be, what may be written to one, and which of them a full log spares."""

import struct

import pytest

import hammer
import libiscsi
from mariner import Daemon, Failed, lun_checksum, qemu_io, wait_until

VOLUME = "db1"
VIEWS_MAX = 255
BLOCK = 4096
MIB = 1 << 20
LOG_BYTES = 1 << 30
SPACE_ALLOCATION_FAILED = (7, 0x27, 7)
SMALL_LOG = {"max_size": "256M", "track_size": "8M", "on_full": "shorten-window"}
STORAGE = {"lag_max": "64M", "apply_delay": "200ms"}


def views_of(daemon) -> dict[str, dict]:
    return {view["name"]: view for view in daemon.ask("view", "list")["views"]}


class Host:
    """A session that reads and writes whole blocks."""

    def __init__(self, daemon, iqn: str, number: int):
        self.session = libiscsi.Session(daemon.portal(), iqn, f"iqn.2026-11.org.mariner:host{number}", 1, number)
        for _ in range(3):  # unit attentions
            self.session.command(bytes(6))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session.close()

    def read(self, block: int, count: int = 1) -> bytes:
        cdb = struct.pack(">BBQIBB", 0x88, 0, block * BLOCK // 512, count * BLOCK // 512, 0, 0)
        answer = self.session.command(cdb, expected=count * BLOCK)
        assert answer.status == libiscsi.GOOD, answer
        return answer.data

    def write(self, block: int, count: int = 1, byte: int = 0x57) -> tuple[int, int, int]:
        """Its sense; all zero: it was written."""
        cdb = struct.pack(">BBQIBB", 0x8A, 0, block * BLOCK // 512, count * BLOCK // 512, 0, 0)
        return self.session.command(cdb, bytes([byte]) * count * BLOCK).sense

    def unmap(self, block: int, count: int):
        descriptor = struct.pack(">QI4x", block * BLOCK // 512, count * BLOCK // 512)
        data = struct.pack(">HH4x", 6 + len(descriptor), len(descriptor)) + descriptor
        answer = self.session.command(struct.pack(">BB4xBHB", 0x42, 0, 0, len(data), 0), data)
        assert answer.status == libiscsi.GOOD, answer


def test_as_many_as_there_may_be(daemon):
    """Each of a moment of its own, which differs from all others; also after a restart."""
    url = daemon.url(daemon.create(VOLUME, "16M")["iqn"])
    qemu_io(url, *(f"write -q -P {number} {number * BLOCK} {BLOCK}" for number in range(1, VIEWS_MAX + 1)))
    for number in range(1, VIEWS_MAX + 1):
        daemon.expose(VOLUME, f"#{number}", "--name", f"v{number}")
    refused = daemon.cli("view", "expose", f"{VOLUME}@#7", check=False)
    assert refused.code == 1, refused
    assert "there are 255 views already, which is the limit; unexpose one" in refused.err
    daemon.kill()
    daemon.start()
    views = views_of(daemon)
    assert len(views) == VIEWS_MAX
    for number in range(1, VIEWS_MAX + 1):
        with Host(daemon, views[f"v{number}"]["iqn"], number) as host:
            blocks = host.read(0, VIEWS_MAX + 1)
            assert blocks == b"".join(bytes([i if i <= number else 0]) * BLOCK for i in range(VIEWS_MAX + 1)), number
    daemon.ask("view", "unexpose", "v7")
    daemon.expose(VOLUME, "#7", "--name", "again")


def test_what_is_written_to_a_view_is_bounded(daemon):
    volume = daemon.create(VOLUME, "64M")
    qemu_io(daemon.url(volume["iqn"]), "write -q -P 1 0 8M")
    bounded = daemon.expose(VOLUME, "#1", "--writable", "--overlay-max", "1M", "--name", "bounded")
    other = daemon.expose(VOLUME, "#1", "--writable", "--name", "other")
    assert int(bounded["overlay_bytes_max"]) == MIB
    assert 0.9 < int(other["overlay_bytes_max"]) / (LOG_BYTES / 4) <= 1, "a quarter of the log"
    host, neighbour, origin = (Host(daemon, iqn, i) for i, iqn in enumerate((bounded["iqn"], other["iqn"], volume["iqn"])))

    def used() -> int:
        return int(views_of(daemon)["bounded"].get("overlay_bytes", 0))

    for block in range(0, 256, 16):
        assert host.write(block, 16) == (0, 0, 0)
    assert used() == MIB
    assert host.write(300) == SPACE_ALLOCATION_FAILED
    assert host.write(255, 2) == SPACE_ALLOCATION_FAILED, "in part beyond it"
    for _ in range(3):
        assert host.write(0, 16, 0x58) == (0, 0, 0), "what is there can be overwritten"
    assert used() == MIB
    assert neighbour.write(300) == (0, 0, 0) and origin.write(300) == (0, 0, 0)
    lines = [line for line in daemon.log_lines() if "overlay of a view fills up" in line]
    assert len(lines) == 1 and "bounded" in lines[0], lines
    host.unmap(0, 8)
    assert used() == MIB - 8 * BLOCK
    assert host.write(300) == (0, 0, 0)
    for each in (host, neighbour, origin):
        each.session.close()
    daemon.kill()
    daemon.start()
    with Host(daemon, bounded["iqn"], 9) as host:
        for first, count, byte in ((0, 8, 0), (8, 8, 0x58), (16, 240, 0x57), (300, 1, 0x57), (400, 100, 1)):
            assert host.read(first, count) == bytes([byte]) * count * BLOCK, first
        assert host.write(400, 8) == SPACE_ALLOCATION_FAILED, "it is as full as it was"
        assert host.write(400, 7) == (0, 0, 0)
    assert used() == MIB


def test_a_bound_that_makes_no_sense_is_refused(daemon):
    daemon.create(VOLUME, "16M")
    for flags, why in ((("--overlay-max", "10M"), "--writable"), (("--writable", "--overlay-max", "64K"), "1 MiB at least")):
        answer = daemon.cli("view", "expose", VOLUME, *flags, check=False)
        assert answer.code in (1, 2) and why in answer.err, answer
    planned = daemon.expose(VOLUME, "#0", "--writable", "--overlay-max", "2M", "--keep", "--dry-run")
    assert int(planned["overlay_bytes_max"]) == 2 * MIB and planned["keep"]
    assert daemon.ask("view", "list").get("views", []) == []


def test_a_full_log_spares_what_is_to_be_kept(folder):
    """A kept view with what was written to it; one that is not goes."""
    with Daemon(folder, log=SMALL_LOG, storage=STORAGE, window="1s") as daemon:
        daemon.start()
        url = daemon.url(daemon.create(VOLUME, "64M")["iqn"])
        qemu_io(url, "write -q -P 1 0 4M")
        lost = daemon.expose(VOLUME, "#1", "--name", "lost", "--writable")
        qemu_io(daemon.url(lost["iqn"]), "write -q -P 4 0 1M")  # what is written to it stays in the log
        qemu_io(url, "write -q -P 2 0 4M")
        kept = daemon.expose(VOLUME, "#2", "--name", "kept", "--writable", "--keep")
        kept_url = daemon.url(kept["iqn"])
        qemu_io(kept_url, "write -q -P 3 0 1M")
        before = lun_checksum(kept_url, folder / "copy")
        load = hammer.Campaign(folder / "journals").start(url, "--writes", 100_000, "--read-percent", 0)
        load.report()
        assert load.code == hammer.REFUSED
        views = views_of(daemon)
        assert list(views) == ["kept"], f"{lost['name']} is not to be kept"
        assert views["kept"]["keep"]
        assert lun_checksum(kept_url, folder / "copy") == before
        daemon.kill()
        daemon.start()
        assert lun_checksum(kept_url, folder / "copy") == before
        daemon.ask("view", "unexpose", "kept")
        load = hammer.Campaign(folder / "journals2").start(url, "--writes", 500, "--read-percent", 0)
        load.report()
        assert load.code == hammer.DONE, "there is room again"


@pytest.mark.parametrize("kept", [False, True])
def test_a_time_to_live_ends(daemon, kept):
    daemon.create(VOLUME, "16M")
    flags = ("--keep",) if kept else ()
    daemon.expose(VOLUME, "#0", "--name", "stays", *flags)
    daemon.expose(VOLUME, "#0", "--name", "short", "--ttl", "1s", *flags)
    assert set(views_of(daemon)) == {"short", "stays"}
    wait_until(lambda: set(views_of(daemon)) == {"stays"}, 20, "its time is over")
    with pytest.raises(Failed, match="there is no view short"):
        daemon.cli("view", "unexpose", "short")
