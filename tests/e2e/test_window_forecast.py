"""The log is known to be too small for a window before it is full."""

import re
import time

import pytest

import mariner

MIB = 1 << 20
LOG = 96 * MIB


@pytest.fixture
def daemon(tmp_path):
    with mariner.Daemon(tmp_path, log={"max_size": str(LOG), "track_size": "8M"}, window="1h") as daemon:
        yield daemon.start()


def metric(daemon, name: str) -> float | None:
    found = re.search(rf"^{name}\{{volume=\"db1\"\}} (\S+)$", daemon.http("/metrics")[1], re.MULTILINE)
    return float(found.group(1)) if found else None


def test_a_window_that_will_be_short_is_foreseen(daemon):
    daemon.create("db1", "64M")
    url = daemon.volume_url("db1")
    assert metric(daemon, "mariner_window_seconds") == 3600
    assert metric(daemon, "mariner_window_short_in_seconds") is None
    written = 0
    foreseen = None
    deadline = time.monotonic() + 60
    while foreseen is None and time.monotonic() < deadline:
        mariner.qemu_io(url, f"write -P {written % 251} {written % 60 * MIB} 1M")
        written += 1
        time.sleep(0.5)
        foreseen = metric(daemon, "mariner_window_short_in_seconds")
    assert foreseen is not None and foreseen > 0
    used = metric_of_log(daemon, "mariner_log_used_bytes")
    assert used < LOG / 2, "long before the log is full"
    assert metric(daemon, "mariner_window_forecast_seconds") < 3600
    shown = daemon.ask("volume", "show", "db1")
    assert abs(int(shown["outlook"]["short_in_s"]) - foreseen) <= foreseen / 2 + 5
    assert "the log will be too small for the window" in daemon.cli("volume", "show", "db1").out
    assert re.search(r"1h \(\d+\w+( \d+\w+)? in \d+", daemon.cli("volume", "list").out)
    assert any("the log will be too small for a window" in line and "db1" in line for line in daemon.log_lines())


def metric_of_log(daemon, name: str) -> float:
    return float(re.search(rf"^{name} (\S+)$", daemon.http("/metrics")[1], re.MULTILINE).group(1))


def test_the_oldest_recoverable_moment_moves_on(tmp_path):
    with mariner.Daemon(tmp_path, log={"max_size": str(LOG), "track_size": "8M"}, window="1s") as daemon:
        daemon.start()
        daemon.create("db1", "32M")
        url = daemon.volume_url("db1")
        created = metric(daemon, "mariner_oldest_recoverable_timestamp_seconds")
        for turn in range(5):
            mariner.qemu_io(url, *(f"write -P {turn + 1} {at}M 8M" for at in range(0, 32, 8)))
        mariner.wait_until(lambda: metric(daemon, "mariner_oldest_recoverable_timestamp_seconds") > created, 30,
                           "something is given up")
        shown = daemon.ask("volume", "show", "db1")["oldest"]
        assert metric(daemon, "mariner_oldest_recoverable_timestamp_seconds") >= int(shown["time_ns"]) / 1e9 - 0.001
