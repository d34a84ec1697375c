"""History that is compacted: less room, the same past, whatever happens meanwhile."""

import pathlib
import random
import time

import hammer
import pytest

from crash_campaign import CrashCampaign
from mariner import BUSY_INDEX, Daemon, lun_checksum, qemu_io, sequence_of, wait_until

VOLUME, SIZE_MIB = "db1", 64
MIB = 1 << 20
LOG = {"max_size": "512M", "track_size": "8M", "compact_cpu": "100%"}


def used_and_history(daemon: Daemon) -> tuple[int, int]:
    status = daemon.ask("status")
    return int(status["log_used_bytes"]), int(status["log_history_bytes"])


def written_to_log(daemon: Daemon, kind: str) -> float:
    start = f'mariner_log_payload_bytes_total{{kind="{kind}"}} '
    return next(float(line.removeprefix(start)) for line in daemon.http("/metrics")[1].splitlines() if line.startswith(start))


class Past:
    """A volume, and what it was at marks."""

    def __init__(self, daemon: Daemon, folder: pathlib.Path, size_mib: int = SIZE_MIB):
        self.daemon, self.folder, self.size_mib = daemon, folder, size_mib
        self.url = daemon.url(daemon.create(VOLUME, f"{size_mib}M")["iqn"])
        self.marks: dict[str, str] = {}
        self.written = 0

    def write(self, mib: int, seed: int):
        """In pieces of 64 KiB, each of bytes of its own."""
        chance = random.Random(seed)
        pieces = (f"aio_write -q -P {chance.randrange(1, 256)} {chance.randrange(self.size_mib * 16) * 64}k 64k" for _ in range(mib * 16))
        qemu_io(self.url, *pieces, "aio_flush")
        self.written += mib * MIB

    def mark(self, name: str):
        self.marks[name] = lun_checksum(self.url, self.folder / "copy")
        self.daemon.ask("mark", "add", VOLUME, name)

    def check(self):
        for name, checksum in self.marks.items():
            view = self.daemon.expose(VOLUME, f"mark:{name}")
            assert lun_checksum(self.daemon.url(view["iqn"]), self.folder / "copy") == checksum, name
            self.daemon.ask("view", "unexpose", view["name"])


def test_what_is_compacted_is_what_it_was(folder):
    with Daemon(folder, log=LOG) as daemon:
        daemon.start()
        past = Past(daemon, folder, 32)
        for at in range(4):
            past.write(24, at)
            past.mark(f"m{at}")
        used, history = used_and_history(daemon)
        assert used == history > past.written, "nothing is compacted by itself"
        assert "would compact" in daemon.cli("log", "compact", "--dry-run").out
        assert "of history" in daemon.cli("log", "compact", "--wait").out
        used, same = used_and_history(daemon)
        assert same == history
        assert used < history / 4, "one byte again and again"
        past.check()
        assert f"mariner_log_history_bytes {history}" in daemon.http("/metrics")[1].replace(".0\n", "\n")
        assert "before it was compacted" in daemon.cli("status").out
        # It goes on: what is written now, and a rollback into what is compacted.
        past.write(10, 9)
        past.mark("m4")
        daemon.rollback(VOLUME, "mark:m1")
        assert lun_checksum(past.url, folder / "copy") == past.marks["m1"]
        daemon.kill()
        daemon.start()
        assert lun_checksum(past.url, folder / "copy") == past.marks["m1"]
        past.check()
        # The log is enough, compacted or not.
        daemon.stop()
        (daemon.state / "index").unlink()
        daemon.start()
        past.check()
        assert not [line for line in daemon.log_lines() if " ERROR " in line], daemon.tail()


@pytest.mark.slow
def test_more_history_than_the_disk_has_room_for(folder):
    """Twice the log's size, all of it kept: no window is shortened."""
    with Daemon(folder, log=LOG | {"max_size": "256M", "on_full": "stop-writes"}) as daemon:
        daemon.start()
        past = Past(daemon, folder)
        for at in range(8):
            past.write(64, at)
            if at % 3 == 0:
                past.mark(f"m{at}")
            daemon.cli("log", "compact", "--wait")
        used, history = used_and_history(daemon)
        assert history > past.written == 512 * MIB
        assert used < 256 * MIB
        assert sequence_of(daemon.ask("volume", "show", VOLUME)["oldest"]) == 0
        past.check()
        daemon.kill()
        daemon.start()
        past.check()


def test_cold_history_is_compacted_by_itself(folder):
    with Daemon(folder, log=LOG | {"max_size": "256M", "compact": "on", "compact_after": "1h"}) as daemon:
        daemon.start()
        past = Past(daemon, folder)
        past.write(120, 1)
        past.mark("m1")
        used, history = used_and_history(daemon)
        assert used == history, "it is too young, and there is room"
        daemon.configure_log(compact_after="0s")
        wait_until(lambda: used_and_history(daemon)[0] < history / 2, 60, "it is compacted")
        past.check()
        # With an hour again: but when the log runs short of room, what is young goes as well.
        daemon.configure_log(compact_after="1h")
        used, history = used_and_history(daemon)
        past.write(280, 2)

        def has_made_room():
            now = used_and_history(daemon)
            return now[1] - now[0] > history - used + 40 * MIB
        wait_until(has_made_room, 60, "it makes room")
        past.check()


@pytest.mark.slow
def test_a_log_that_is_overwritten_for_long_never_refuses_a_write(folder, seed):
    """What is given up makes room only with the last track of its pack, and what is needed of it takes some before."""
    log = LOG | {"max_size": "1G", "compact": "on", "on_full": "shorten-window"}
    with Daemon(folder, log=log, window="1d") as daemon:
        daemon.start()
        daemon.create(VOLUME, "64M")
        url = daemon.volume_url(VOLUME)
        rounds = hammer.Campaign(daemon.folder / "journals", region_bytes=64 * MIB)
        report = rounds.run(url, "--depth", 40, "--cells", 64, "--writes", 80_000, "--seed", seed, "--unmap-percent", 0, "--same-percent", 0)
        assert report["acknowledged"] == 80_000
        assert written_to_log(daemon, "packed") > 100 * MIB
        assert written_to_log(daemon, "moved") > 0
        daemon.kill()
        daemon.start()
        assert not rounds.verify(url)["faults"]


@pytest.mark.slow
def test_killed_while_it_compacts(folder, seed, long_run):
    # All of it is kept: who checks the past knows every write of it.
    log = LOG | {"max_size": "16G" if long_run else "4G", "compact": "on", "compact_after": "0s"}
    with Daemon(folder, log=log, index=BUSY_INDEX) as daemon:
        campaign = CrashCampaign(daemon, seed)
        campaign.prepare()

        def kill():
            daemon.ask("log", "compact")  # not waited for
            time.sleep(campaign.random.uniform(0, 0.4))
            daemon.kill()

        for _ in range(30 if long_run else 6):
            campaign.load_until(kill)
            campaign.restart()
            campaign.check_volume()
            campaign.check_random_moment()
        daemon.cli("log", "compact", "--wait", timeout_s=900)  # gigabytes, at some 25 MB a second
        used, history = used_and_history(daemon)
        assert used < 0.9 * history
        for _ in range(4):
            campaign.check_random_moment()
        print(campaign.summary())
