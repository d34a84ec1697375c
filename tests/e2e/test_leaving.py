"""What initiators do that are asked to leave: they come again, and who may not, does not try without a pause."""

import subprocess
import time

import pytest

import mariner

# One try a second would be no loop. open-iscsi is to be seen trying at all.
LIBISCSI_S, OPEN_ISCSI_S = 6, 12


def refused(daemon) -> int:
    """Logins that have been refused, as the log says."""
    return sum("reason=login-failed" in line for line in daemon.log_lines())


def watch_who_may_not_come(daemon, volume: str, seconds: int) -> int:
    """How often those who are locked out try again."""
    before = refused(daemon)
    daemon.cli("target", "acl", "add", volume, "iqn.2026-11.org.mariner:nobody", "--force")
    mariner.wait_until(lambda: not daemon.ask("session", "list")["sessions"], 15, "nobody is left")
    time.sleep(seconds)
    assert not daemon.ask("session", "list")["sessions"]
    return refused(daemon) - before


def kick(daemon):
    """The session is another one afterwards, and works."""
    session, = daemon.ask("session", "list")["sessions"]
    daemon.ask("session", "kick", session["id"])

    def is_back() -> bool:
        now = daemon.ask("session", "list")["sessions"]
        return len(now) == 1 and now[0]["id"] != session["id"]
    mariner.wait_until(is_back, 30, "it comes again")


def test_libiscsi(daemon):
    daemon.create("db1", "64M")
    load = subprocess.Popen(["iscsi-perf", "-m", "1", "-b", "8", daemon.volume_url("db1")], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    try:
        mariner.wait_until(lambda: daemon.ask("session", "list")["sessions"], 10, "the load")
        kick(daemon)
        mariner.wait_until(lambda: int(daemon.ask("session", "list")["sessions"][0]["commands"]) > 100, 10, "it works")
        assert watch_who_may_not_come(daemon, "db1", LIBISCSI_S) <= LIBISCSI_S
    finally:
        load.kill()
        load.wait()


@pytest.mark.slow
def test_open_iscsi(lab):
    volume, target = lab.volume("64M")
    disk = lab.guest.login(target, lab.daemon.portal())
    kick(lab.daemon)
    assert lab.guest.run(f"dd if={disk} of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null && echo read") == "read"
    tries = watch_who_may_not_come(lab.daemon, volume, OPEN_ISCSI_S)
    lab.daemon.cli("target", "acl", "remove", volume, "iqn.2026-11.org.mariner:nobody", "--yes")
    lab.daemon.cli("target", "acl", "add", volume, "any")
    assert 1 <= tries <= OPEN_ISCSI_S
