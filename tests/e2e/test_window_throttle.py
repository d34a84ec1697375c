"""With `on_full = "throttle"` hosts are slowed so that the log holds the window, whatever they write."""

import re
import time

import pytest

import hammer
from mariner import Daemon, lun_checksum, wait_until

VOLUME = "db1"
LOG_BYTES = 128 << 20
LOG = {"max_size": str(LOG_BYTES), "track_size": "8M", "on_full": "throttle"}
STORAGE = {"lag_max": "32M", "pending_memory": "16M", "apply_delay": "200ms"}
WINDOW_S = 10


def metric(daemon: Daemon, name: str) -> float | None:
    found = re.search(rf"^{name}\S* (\S+)$", daemon.http("/metrics")[1], re.MULTILINE)
    return float(found.group(1)) if found else None


def seconds_back(daemon: Daemon) -> float:
    return time.time() - metric(daemon, "mariner_oldest_recoverable_timestamp_seconds")


@pytest.mark.slow
def test_the_window_holds_under_an_overload_and_no_write_fails(folder):
    with Daemon(folder, log=LOG, storage=STORAGE, window=f"{WINDOW_S}s") as daemon:
        daemon.start()
        url = daemon.url(daemon.create(VOLUME, "64M")["iqn"])
        campaign = hammer.Campaign(folder / "journals")
        load = campaign.start(url, "--writes", 100_000, "--read-percent", 0, "--depth", 8)
        written = [metric(daemon, "mariner_log_batch_bytes_sum")]
        reached_back = []
        paced = 0
        deadline = time.monotonic() + 120
        while written[-1] - written[0] < 1.8 * LOG_BYTES and time.monotonic() < deadline:
            began = time.monotonic()
            assert load.running(), load.report()
            reached_back.append(seconds_back(daemon))
            paced += metric(daemon, "mariner_write_pace_bytes_per_second") is not None
            while time.monotonic() < began + 2:  # a rate needs a time
                time.sleep(0.1)
            written.append(metric(daemon, "mariner_log_batch_bytes_sum"))
        moment = daemon.ask("volume", "show", VOLUME)["oldest"]
        report = load.stop()
        assert written[-1] - written[0] >= 1.8 * LOG_BYTES, "it went on"
        assert load.code == hammer.DONE, report
        # (Before anything is given up the history reaches back to the creation.)
        assert min(reached_back[WINDOW_S // 2 + 1:]) >= WINDOW_S, reached_back
        assert int(moment.get("sequence", 0)) > 0, "and the log went round"
        pieces = [after - before for before, after in zip(written, written[1:])]
        settled = pieces[len(pieces) // 2:]
        assert min(settled) > 0.3 * sum(settled) / len(settled), f"it never stood: {pieces}"
        assert paced > len(reached_back) / 2
        lines = "\n".join(daemon.log_lines())
        assert "writes are slowed so that the log holds the windows" in lines
        assert "history inside the window is given up" not in lines
        assert "the log is full" not in lines
        assert campaign.verify(url)["faults"] == []


@pytest.mark.slow
def test_hosts_are_slowed_from_a_reload_on_and_until_one(folder):
    with Daemon(folder, log=LOG | {"on_full": "shorten-window"}, storage=STORAGE, window="10m") as daemon:
        def slowed():
            return metric(daemon, "mariner_write_pace_bytes_per_second") is not None

        daemon.start()
        url = daemon.url(daemon.create(VOLUME, "64M")["iqn"])
        load = hammer.Campaign(folder / "journals").start(url, "--writes", 100_000, "--read-percent", 0, "--depth", 8)
        try:
            wait_until(lambda: metric(daemon, "mariner_log_batch_bytes_sum") > LOG_BYTES, 60, "the log has gone round")
            assert not slowed()
            for _ in range(2):
                daemon.configure_log(on_full="throttle")
                wait_until(slowed, 30, "writes are slowed")
                assert load.running(), load.report()
                daemon.configure_log(on_full="shorten-window")
                wait_until(lambda: not slowed(), 5, "and no more")
        finally:
            load.stop()


@pytest.mark.slow
def test_a_volume_that_writes_little_is_not_slowed(folder):
    """Beside one that writes whatever it may."""
    with Daemon(folder, log=LOG, storage=STORAGE, window=f"{WINDOW_S}s") as daemon:
        daemon.start()
        greedy = daemon.url(daemon.create("greedy", "64M")["iqn"])
        quiet = daemon.url(daemon.create("quiet", "64M")["iqn"])
        load = hammer.Campaign(folder / "greedy").start(greedy, "--writes", 100_000, "--read-percent", 0, "--depth", 8)
        waited = []
        try:
            deadline = time.monotonic() + 60
            while metric(daemon, "mariner_log_batch_bytes_sum") < 1.2 * LOG_BYTES and time.monotonic() < deadline:
                began = time.monotonic()
                hammer.Campaign(folder / "quiet").run(quiet, "--writes", 2, "--seed", len(waited), "--read-percent", 0)
                waited.append(time.monotonic() - began)
                time.sleep(1)
        finally:
            report = load.stop()
        assert load.code == hammer.DONE, report
        assert metric(daemon, "mariner_log_batch_bytes_sum") >= 1.2 * LOG_BYTES
        assert sorted(waited)[len(waited) // 2] < 1, waited
        assert lun_checksum(quiet, folder / "copy")
