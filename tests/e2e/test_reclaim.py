"""A log much smaller than what is written: it goes round, keeps what it has promised, and says when it cannot."""


import pytest

import hammer
from mariner import Daemon, lun_checksum, qemu_io, sequence_of, wait_until

VOLUME = "db1"
# Old tracks are verified all the while: none that is given up under it may look damaged.
SMALL_LOG = {"max_size": "256M", "track_size": "8M", "scrub_rate": "256M"}
STORAGE = {"lag_max": "64M", "apply_delay": "200ms"}
LOG_BYTES = 256 << 20
# Half of it and of everything, where it only matters that the log is full, or has gone round.
QUICK_LOG = {**SMALL_LOG, "max_size": "128M"}
QUICK_STORAGE = {**STORAGE, "lag_max": "32M"}
QUICK_LOG_BYTES, QUICK_VOLUME_BYTES = LOG_BYTES // 2, 32 << 20


@pytest.fixture
def small(folder):
    with Daemon(folder, log=SMALL_LOG, storage=STORAGE, window="1s") as daemon:
        daemon.start()
        yield daemon


@pytest.mark.slow
def test_a_volume_larger_than_the_log_is_overwritten(folder):
    """From one end to the other, as fast as it goes: what the log gives up the image becomes the base of, so that almost each
    block is logged as a before-image first, which the log has to have room for. (Its lag is not bounded by less than that.)"""
    with Daemon(folder, log=SMALL_LOG, window="1s") as daemon:
        daemon.start()
        url = daemon.url(daemon.create(VOLUME, "512M")["iqn"])
        for byte in range(1, 5):
            for first in range(0, 512, 64):
                qemu_io(url, *(f"aio_write -q -P {byte} {at}M 8M" for at in range(first, first + 64, 8)), "aio_flush")
            qemu_io(url, f"read -P {byte} 0 512M")
        assert not [line for line in daemon.log_lines() if " ERROR " in line], daemon.tail()


@pytest.mark.slow
def test_the_log_goes_round(small, folder, seed, long_run):
    campaign = hammer.Campaign(folder / "journals")
    url = small.url(small.create(VOLUME, "64M")["iqn"])
    rounds = 0
    written = 0
    while written < (20 if long_run else 3) * LOG_BYTES:
        marked = rounds % 4 == 0
        if marked:
            small.ask("mark", "add", VOLUME, "before")
            before = lun_checksum(url, folder / "copy")
        report = campaign.run(url, "--writes", 700, "--seed", seed + rounds, "--depth", 40)
        written += report["payload_bytes"]
        if marked:  # the mark has kept its moment while the log went on
            view = small.expose(VOLUME, "mark:before")
            assert lun_checksum(small.url(view["iqn"]), folder / "copy") == before
            small.ask("view", "unexpose", view["name"])
            small.ask("mark", "remove", VOLUME, "before")
        if rounds % 6 == 1:
            small.kill()
            small.start()
        verified = campaign.verify(url)
        assert verified["faults"] == [], verified["faults"]
        rounds += 1
    shown = small.ask("volume", "show", VOLUME)
    assert sequence_of(shown["oldest"]) > 0
    scrubbed = dict(line.rsplit(" ", 1) for line in small.http("/metrics")[1].splitlines() if "{disk=" in line)
    figures = {name.split("{")[0]: float(value) for name, value in scrubbed.items()}
    assert figures["mariner_log_damaged_blocks"] == 0
    assert figures["mariner_log_scrub_bytes_total"] > 8 << 20, figures
    # What went is refused by name, not answered wrongly.
    answer = small.cli("view", "expose", f"{VOLUME}@#1", check=False)
    assert answer.code == 3, answer
    assert "outside the history" in answer.err
    assert not [line for line in small.log_lines() if " error " in line.lower()], small.tail()
    print(f"{rounds} rounds, {written >> 20} MiB written through a log of {LOG_BYTES >> 20} MiB")


def fill(url: str, folder, writes: int) -> dict:
    load = hammer.Campaign(folder / "journals", QUICK_VOLUME_BYTES).start(url, "--writes", writes, "--read-percent", 0)
    report = load.report()
    return {**report, "code": load.code}


def test_a_full_log_stops_writes_if_it_is_told_to(folder):
    with Daemon(folder, log={**QUICK_LOG, "on_full": "stop-writes"}, storage=QUICK_STORAGE) as daemon:
        daemon.start()
        url = daemon.url(daemon.create(VOLUME, "32M")["iqn"])
        report = fill(url, folder, 100_000)
        assert report["code"] == hammer.REFUSED, report
        assert sequence_of(daemon.ask("volume", "show", VOLUME)["oldest"]) == 0, "nothing was given up"
        assert any("the log is full" in line for line in daemon.log_lines())
        view = daemon.expose(VOLUME, "#1")
        assert lun_checksum(daemon.url(view["iqn"]), folder / "copy")
        # It can be written again when there is less to keep.
        daemon.ask("view", "unexpose", view["name"])
        assert daemon.stop() == 0
        daemon.start()
        assert hammer.Campaign(folder / "journals", QUICK_VOLUME_BYTES).verify(url)["faults"] == []


def test_what_a_full_log_does_is_changed_at_a_reload(folder):
    with Daemon(folder, log={**QUICK_LOG, "on_full": "stop-writes"}, storage=QUICK_STORAGE) as daemon:
        daemon.start()
        url = daemon.url(daemon.create(VOLUME, "32M")["iqn"])
        assert fill(url, folder / "first", 100_000)["code"] == hammer.REFUSED
        daemon.configure_log(on_full="shorten-window")
        assert daemon.times_said("take effect at the next start") == 0
        report = fill(url, folder / "second", 4_000)
        assert report["code"] == hammer.DONE, report
        assert sequence_of(daemon.ask("volume", "show", VOLUME)["oldest"]) > 0
        daemon.configure_log(on_full="stop-writes")
        assert fill(url, folder / "third", 100_000)["code"] == hammer.REFUSED
        daemon.configure_log(on_full="throttle")
        assert daemon.times_said("take effect at the next start") == 0


def test_a_full_log_shortens_the_window_if_it_is_told_to(folder):
    with Daemon(folder, log={**QUICK_LOG, "on_full": "shorten-window"}, storage=QUICK_STORAGE) as daemon:
        daemon.start()
        url = daemon.url(daemon.create(VOLUME, "32M")["iqn"])
        fill(url, folder, 150)
        daemon.expose(VOLUME, "#50")
        daemon.ask("mark", "add", VOLUME, "unlocked")
        report = fill(url, folder, 4_000)
        assert report["code"] == hammer.DONE, report
        assert report["payload_bytes"] > 1.2 * QUICK_LOG_BYTES
        assert daemon.ask("view", "list")["views"] == []
        assert daemon.ask("mark", "list", VOLUME)["marks"] == []
        assert sequence_of(daemon.ask("volume", "show", VOLUME)["oldest"]) > 50
        lines = "\n".join(daemon.log_lines())
        for what in ("a view is dropped", "a mark is dropped", "history inside the window is given up"):
            assert what in lines


def test_a_locked_mark_is_never_dropped(folder):
    """One keeps what it shows, while the log goes round; when many of them are more than it can hold, writes stop."""
    with Daemon(folder, log={**QUICK_LOG, "on_full": "shorten-window"}, storage=QUICK_STORAGE, window="1s") as daemon:
        daemon.start()
        url = daemon.url(daemon.create(VOLUME, "32M")["iqn"])
        before = {}
        for number in range(12):
            report = fill(url, folder, 2_000)
            if report["code"] == hammer.REFUSED:
                break
            assert report["code"] == hammer.DONE, report
            daemon.ask("mark", "add", VOLUME, f"kept{number}", "--lock", "1d")
            before[f"kept{number}"] = lun_checksum(url, folder / "copy")
        assert report["code"] == hammer.REFUSED, "each keeps its own contents of the volume"
        assert len(before) >= 2, "a log of four volumes' size holds two marks"
        oldest = sequence_of(daemon.ask("volume", "show", VOLUME)["oldest"])
        kept = daemon.ask("history", "prune", VOLUME, "--dry-run")["kept"]
        assert kept, "marks stand before the oldest moment"
        assert all(sequence_of(each["at"]) < oldest for each in kept)
        for restarted in (False, True):
            if restarted:
                daemon.kill()
                daemon.start()
            for mark, checksum in before.items():
                view = daemon.expose(VOLUME, f"mark:{mark}", "--keep")  # a full log drops the others
                assert lun_checksum(daemon.url(view["iqn"]), folder / "copy") == checksum
                daemon.ask("view", "unexpose", view["name"])
        # There is room again when one goes.
        daemon.ask("mark", "remove", VOLUME, "kept0")
        wait_until(lambda: fill(url, folder, 250)["code"] == hammer.DONE, 60, "room for writes")


def test_a_rollback_to_a_mark_behind_the_window(folder):
    with Daemon(folder, log=QUICK_LOG, storage=QUICK_STORAGE, window="1s") as daemon:
        daemon.start()
        url = daemon.url(daemon.create(VOLUME, "32M")["iqn"])
        fill(url, folder, 1_000)
        daemon.ask("mark", "add", VOLUME, "kept", "--lock", "1d")
        before = lun_checksum(url, folder / "copy")
        at = sequence_of(daemon.ask("mark", "list", VOLUME)["marks"][0]["at"])
        written = 0
        while written < 2 * QUICK_LOG_BYTES:
            written += fill(url, folder, 1_000)["payload_bytes"]
        assert sequence_of(daemon.ask("volume", "show", VOLUME)["oldest"]) > at
        after = lun_checksum(url, folder / "copy")
        daemon.ask("rollback", f"{VOLUME}@mark:kept", "--force")
        assert lun_checksum(url, folder / "copy") == before
        daemon.kill()
        daemon.start()
        assert lun_checksum(url, folder / "copy") == before, "also after a crash while it is restored"
        daemon.ask("rollback", "undo", VOLUME, "--force")
        assert lun_checksum(url, folder / "copy") == after
