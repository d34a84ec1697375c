"""The `mariner` command: every verb, for people and as JSON, and its exit codes."""

import json
import os
import subprocess

import pytest

import hammer
import mariner

DONE, FAILED, USAGE, OUTSIDE_WINDOW, BUSY, NOT_CONFIRMED = 0, 1, 2, 3, 4, 5


@pytest.fixture
def volume(daemon, folder):
    """A volume with some history; yields (daemon, url)."""
    url = daemon.url(daemon.create("db1", "64M")["iqn"])
    hammer.Campaign(folder / "journals").run(url, "--writes", 200)
    return daemon, url


def code(daemon, *arguments, **options) -> int:
    answer = daemon.cli(*arguments, check=False, **options)
    if answer.code != DONE:
        assert answer.err.strip(), "a failure says why, on standard error"
    return answer.code


def test_volume_verbs(daemon, folder):
    planned = daemon.ask("volume", "create", "db1", "--size", "64M", "--dry-run")
    assert planned["name"] == "db1"
    assert daemon.ask("volume", "list").get("volumes", []) == []
    created = daemon.ask("volume", "create", "db1", "--size", "64M", "--window", "2h",
                         "--block-size", "4096")
    assert int(created["size_bytes"]) == 64 << 20 and created["block_size"] == 4096
    assert created["iqn"].startswith(mariner.IQN_BASE)
    assert int(created["window_s"]) == 7200
    assert code(daemon, "volume", "create", "db1", "--size", "64M") == FAILED
    shown = daemon.ask("volume", "show", "db1")
    assert (shown["serial"], shown["naa"]) == (created["serial"], created["naa"])
    people = daemon.cli("volume", "list").out
    assert "db1" in people and not people.lstrip().startswith("{")
    assert "db1" in daemon.cli("volume", "show", "db1").out
    daemon.cli("volume", "delete", "db1", "--dry-run")
    assert "db1" in daemon.cli("volume", "list").out
    daemon.cli("volume", "delete", "db1", "--yes")
    assert code(daemon, "volume", "show", "db1") == FAILED


def test_import(daemon, folder):
    source = folder / "disk.raw"
    data = os.urandom(8 << 20)
    source.write_bytes(data)
    daemon.ask("volume", "import", "old", str(source))
    url = daemon.volume_url("old")
    subprocess.run(["qemu-img", "compare", "-f", "raw", "-F", "raw", str(source), url], check=True,
                   capture_output=True)
    newest = mariner.sequence_of(daemon.ask("volume", "show", "old").get("newest", {}))
    subprocess.run(["qemu-io", "-f", "raw", "-c", "write -P 1 0 1M", url], check=True,
                   capture_output=True)
    # What was imported is the base of the history: it can be gone back to.
    daemon.rollback("old", f"#{newest}")
    subprocess.run(["qemu-img", "compare", "-f", "raw", "-F", "raw", str(source), url], check=True,
                   capture_output=True)
    assert source.read_bytes() == data


def test_history(volume):
    daemon, _ = volume
    history = daemon.ask("history", "show", "db1", "--since", "-1h")
    assert int(history["writes"]) >= 200
    assert sum(int(b.get("writes", 0)) for b in history["buckets"]) == int(history["writes"])
    listed = daemon.ask("history", "show", "db1", "--writes", 1000)["write_list"]
    assert len(listed) >= 200
    assert all(w["kind"] in ("write", "zero") for w in listed)
    people = daemon.cli("history", "show", "db1", "--since", "-1h")
    assert people.out.strip()


def test_marks(volume):
    daemon, _ = volume
    added = daemon.ask("mark", "add", "db1", "pre-upgrade", "--lock", "30d")
    assert added["name"] == "pre-upgrade" and int(added["locked_until_ns"]) > 0
    assert code(daemon, "mark", "add", "db1", "pre-upgrade") == FAILED
    assert "pre-upgrade" in daemon.cli("mark", "list", "db1").out
    assert daemon.ask("mark", "list", "db1")["marks"][0]["name"] == "pre-upgrade"
    daemon.ask("mark", "remove", "db1", "pre-upgrade")
    assert daemon.ask("mark", "list", "db1").get("marks", []) == []
    assert code(daemon, "mark", "remove", "db1", "pre-upgrade", "--yes") == FAILED


def test_views(volume):
    daemon, _ = volume
    view = daemon.ask("view", "expose", "db1@-0s", "--ttl", "2h")
    origin = daemon.ask("volume", "show", "db1")
    assert view["iqn"] != origin["iqn"]
    assert view["naa"] != origin["naa"] and view["serial"] != origin["serial"]
    assert int(view["expires_ns"]) > 0 and view["at"]["utc"] and view["at"]["local"]
    writable = daemon.ask("view", "expose", "db1@#5", "--writable")
    assert writable["writable"]
    assert len(daemon.ask("view", "list")["views"]) == 2
    assert view["name"] in daemon.cli("view", "list").out
    assert "iqn" in daemon.cli("view", "expose", "db1@#6").out
    daemon.ask("view", "unexpose", view["name"])
    assert code(daemon, "view", "unexpose", view["name"], "--yes") == FAILED


def test_every_form_of_a_time(volume):
    daemon, _ = volume
    daemon.ask("mark", "add", "db1", "here")
    shown = daemon.ask("volume", "show", "db1")
    newest = mariner.sequence_of(shown["newest"])
    time_ns = int(shown["newest"]["time_ns"])
    forms = [mariner.time_text(time_ns), shown["newest"]["utc"], "mark:here", f"#{newest}", "-0s",
             "0 seconds ago"]
    for form in forms:
        answer = daemon.ask("rollback", f"db1@{form}", "--dry-run")
        assert mariner.sequence_of(answer["target"]) == newest, form
    assert code(daemon, "rollback", "db1@yesterdayish", "--dry-run") == USAGE


def test_rollback_and_undo(volume):
    daemon, _ = volume
    people = daemon.cli("rollback", "db1@#100", "--dry-run")
    assert "100" in people.out
    answer = daemon.ask("rollback", "db1@#100", "--force")
    assert mariner.sequence_of(answer["target"]) == 100 and answer["before_mark"]
    undone = daemon.ask("rollback", "undo", "db1", "--force")
    assert mariner.sequence_of(undone) > mariner.sequence_of(answer)


def test_sessions(volume, folder):
    daemon, url = volume
    load = hammer.Campaign(folder / "more").start(url, "--seconds", 60, "--read-percent", 0)
    try:
        sessions = mariner.wait_until(
            lambda: daemon.ask("session", "list").get("sessions"), 10, "a session")
        assert sessions[0]["volume"] == "db1"
        assert "hammer" in daemon.cli("session", "list").out
        # A rollback under a session that has recent I/O wants to be told so.
        assert code(daemon, "rollback", "db1@#100", "--yes") == BUSY
        assert code(daemon, "volume", "delete", "db1", "--yes") == BUSY
        daemon.ask("session", "kick", str(sessions[0]["id"]), "--force")
        load.report()
        assert load.code == hammer.LOST
    finally:
        load.kill()


def test_config_check(daemon, folder):
    daemon.cli("config", "check", str(daemon.config_file))
    wrong = folder / "wrong.toml"
    wrong.write_text('version = 1\nroles = ["standalone"]\n[log]\nmaxsize = "1G"\n')
    answer = daemon.cli("config", "check", str(wrong), check=False)
    assert answer.code == FAILED
    said = answer.out + answer.err
    assert "maxsize" in said and "max_size" in said and ":4" in said


def test_doctor(daemon):
    configuration = ["--config", str(daemon.config_file)]
    findings = daemon.ask("doctor", *configuration)["findings"]
    assert findings and all(f["level"] in ("ok", "warning", "error") for f in findings)
    assert daemon.cli("doctor", *configuration).out.strip()
    durability = next(f for f in findings if f["check"] == "log durability")
    assert "measured at start: fua " in durability["found"] or "not measured" in durability["found"]
    method = "fua" if "(fua)" in durability["found"] else "flush"
    assert f'mariner_log_durability_info{{disk="{daemon.state}/log0",method="{method}"}} 1' in daemon.http("/metrics")[1]


def test_exit_codes(volume):
    daemon, _ = volume
    assert code(daemon, "volume", "show", "nothing") == FAILED
    assert code(daemon, "volume", "frobnicate") == USAGE
    assert code(daemon, "volume", "create", "x") == USAGE
    assert code(daemon, "rollback", "db1@2001-01-01T00:00:00Z", "--yes") == OUTSIDE_WINDOW
    assert code(daemon, "view", "expose", "db1@2001-01-01T00:00:00Z") == OUTSIDE_WINDOW
    assert code(daemon, "volume", "delete", "db1", input="something else\n") == NOT_CONFIRMED
    assert "db1" in daemon.cli("volume", "list").out


def test_json_errors_are_json(daemon):
    answer = daemon.cli("--json", "volume", "show", "nothing", check=False)
    assert answer.code == FAILED
    text = answer.out.strip() or answer.err.strip()
    error = json.loads(text.splitlines()[-1])
    assert "nothing" in json.dumps(error)


def test_without_a_daemon(folder):
    daemon = mariner.Daemon(folder)
    assert code(daemon, "volume", "list") == FAILED


def test_health_readiness_and_metrics(volume):
    daemon, _ = volume
    assert daemon.http("/healthz")[0] == 200
    assert daemon.http("/readyz")[0] == 200
    status, text = daemon.http("/metrics")
    assert status == 200
    for name in ("mariner_scsi_commands_total", "mariner_scsi_bytes_total",
                 "mariner_scsi_command_duration_seconds", "mariner_log_commit_duration_seconds",
                 "mariner_log_used_bytes", "mariner_log_limit_bytes", "mariner_iscsi_sessions",
                 "mariner_login_failures_total", "mariner_views_exposed",
                 "mariner_oldest_recoverable_timestamp_seconds"):
        assert name in text, name
    assert daemon.http("/nothing")[0] == 404


def test_a_service_manager_stops_it_in_order(volume, folder):
    daemon, url = volume
    assert daemon.stop() == 0
    daemon.start()
    report = hammer.Campaign(folder / "journals").verify(url)
    assert report["faults"] == []
