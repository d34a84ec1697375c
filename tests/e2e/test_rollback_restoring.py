"""What a rollback changed gets into the image in the background: how far it is, how fast it may go, and through crashes."""

import hashlib
import pathlib
import time

import pytest

from mariner import Daemon, lun_checksum, qemu_io, wait_until

VOLUME, SIZE = "db1", 40 << 20
# So that restoring takes several seconds.
RATE = 8 << 20
KILLS = 10
# Half a minute of restoring: ten restarts and what is read between them fit in on a slow machine, too.
SIZE_FOR_KILLS = 256 << 20
PIECE = 8 << 20


class Rolled:
    """A volume all of which was written and written over; restoring is slow."""

    def __init__(self, folder: pathlib.Path, size: int = SIZE):
        self.folder = folder
        self.size = size
        self.daemon = Daemon(folder, more_config=f'[rollback]\nrate_max = "{RATE >> 20}M"\n')

    def start(self):
        self.daemon.start()
        self.url = self.daemon.url(self.daemon.create(VOLUME, str(self.size))["iqn"])
        self.image = pathlib.Path(self.daemon.ask("volume", "show", VOLUME)["image_path"])
        self.write(0x11)
        self.past = self.checksum()
        self.daemon.ask("mark", "add", VOLUME, "past")
        self.write(0x22)
        self.present = self.checksum()
        self.wait_restored()  # the image has it all
        assert self.past != self.present

    def write(self, seed: int):
        """In pieces that differ, each with what is beside it, so that nothing is repeated."""
        qemu_io(self.url, *(f"write -P {(seed + at) % 255 + 1} {at}M 1M" for at in range(self.size >> 20)))

    def checksum(self) -> str:
        return lun_checksum(self.url, self.folder / "copy")

    def status(self) -> dict:
        return self.daemon.ask("rollback", "status", VOLUME)

    def left(self) -> int:
        return int(self.status().get("left_bytes", 0))

    def lag_is_gone(self) -> bool:
        return int(self.daemon.ask("volume", "show", VOLUME).get("unapplied_bytes", 0)) == 0

    def wait_restored(self, timeout_s: float = 60):
        wait_until(self.lag_is_gone, timeout_s, "the image holds everything", interval_s=0.1)

    def image_checksum(self) -> str:
        return hashlib.sha256(self.image.read_bytes()).hexdigest()


@pytest.fixture
def rolled(request, folder):
    volume = Rolled(folder, getattr(request, "param", SIZE))
    with volume.daemon:
        volume.start()
        yield volume


def test_it_tells_how_far_it_is_and_keeps_to_its_rate(rolled):
    daemon = rolled.daemon
    assert "no rollback is being restored" in daemon.cli("rollback", "status", VOLUME).out
    assert int(rolled.status()["total_bytes"]) == 0
    daemon.rollback(VOLUME, "mark:past")
    assert rolled.checksum() == rolled.past, "the past shows at once"
    first = wait_until(lambda: int((shown := rolled.status())["seconds_left"]) and shown, 10, "there is an estimate")
    assert int(first["total_bytes"]) == SIZE and 0 < int(first["left_bytes"]) < SIZE
    begun = time.monotonic()
    assert "restoring: " in daemon.cli("rollback", "status", VOLUME).out
    assert "restoring a rollback" in daemon.cli("volume", "show", VOLUME).out
    wait_until(lambda: rolled.left() < int(first["left_bytes"]), 10, "it goes on")
    assert f'mariner_rollback_progress_ratio{{volume="{VOLUME}"}} 0.' in daemon.http("/metrics")[1]
    rolled.wait_restored()
    # Two pieces may be on their way whatever the rate.
    assert time.monotonic() - begun >= (int(first["left_bytes"]) - 2 * PIECE) / RATE
    assert rolled.image_checksum() == rolled.past
    assert any("what the rollback changed is in the image" in line for line in daemon.log_lines())


def test_undo_takes_effect_at_once_while_the_rollback_is_being_restored(rolled):
    rolled.daemon.rollback(VOLUME, "mark:past")
    wait_until(lambda: 0 < rolled.left() < SIZE, 10, "some of it is restored")
    rolled.daemon.ask("rollback", "undo", VOLUME, "--force")
    assert rolled.left() > 0
    assert rolled.checksum() == rolled.present
    rolled.wait_restored()
    assert rolled.image_checksum() == rolled.present


@pytest.mark.slow
@pytest.mark.parametrize("rolled", [SIZE_FOR_KILLS], indirect=True, ids=["256M"])
def test_killed_ten_times_while_it_is_restored(rolled):
    rolled.daemon.rollback(VOLUME, "mark:past")
    again = 0  # bytes that are restored once more
    for kill in range(KILLS):
        begun = rolled.left()
        if kill % 2 == 0:
            wait_until(lambda begun=begun: rolled.left() < begun, 10, "it goes on")
        left = rolled.left()
        rolled.daemon.kill()
        rolled.daemon.start()
        status = rolled.status()
        assert int(status["total_bytes"]) == rolled.size, kill
        again += max(0, int(status["left_bytes"]) - left)
        assert int(status["left_bytes"]) <= left + RATE, kill
        assert not rolled.lag_is_gone(), kill
        if kill % 3 == 0:
            assert rolled.checksum() == rolled.past, kill
    assert again <= 0.3 * rolled.size
    rolled.wait_restored()
    assert rolled.image_checksum() == rolled.past
    assert rolled.checksum() == rolled.past
