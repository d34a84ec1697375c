"""CHAP with a real initiator: libiscsi's tools, one way and mutual, and who guesses."""

import subprocess

import pytest

import iscsi_pdu
import mariner

CONFIG = """
[auth.alice]
secret_file = "{folder}/alice"
[auth.bob]
user = "bob"
secret_file = "{folder}/bob"
mutual_user = "target"
mutual_secret_file = "{folder}/mutual"
[[volume]]
name = "safe"
size = "16M"
auth = ["alice", "bob"]
[[volume]]
name = "open"
size = "16M"
"""
SECRETS = {"alice": "alice's own secret", "bob": "bobs.secret.1", "mutual": "the target's"}


@pytest.fixture
def daemon(tmp_path):
    for name, secret in SECRETS.items():
        file = tmp_path / name
        file.write_text(secret + "\n")
        file.chmod(0o600)
    with mariner.Daemon(tmp_path / "d", more_config=CONFIG.format(folder=tmp_path)) as running:
        yield running.start()


def inquire(daemon, volume: str, user: str = "", secret: str = "", more: str = "") -> str:
    """What INQUIRY says through libiscsi; "" if it cannot log in."""
    who = f"{user}%{secret}@" if user else ""
    url = daemon.volume_url(volume).replace("iscsi://", f"iscsi://{who}") + more
    run = subprocess.run(["iscsi-inq", url], capture_output=True, text=True, timeout=30)
    return run.stdout if run.returncode == 0 else ""


def test_who_knows_the_secret_gets_in(daemon):
    assert "MARINER" in inquire(daemon, "open").upper()
    assert "MARINER" in inquire(daemon, "safe", "bob", SECRETS["bob"]).upper()
    assert inquire(daemon, "safe") == ""
    assert inquire(daemon, "safe", "bob", "bobs.secret.2") == ""
    assert inquire(daemon, "safe", "eve", SECRETS["bob"]) == ""
    log = daemon.tail(50)
    assert "AuthMethod: not offered, required CHAP" in log or "AuthMethod: offered None, required CHAP" in log
    assert 'CHAP_R: wrong for the user \\"bob\\"' in log
    assert 'CHAP_N: there is no user \\"eve\\" here' in log


def test_the_target_proves_itself(daemon):
    right = f"?target_user=target&target_password={SECRETS['mutual']}"
    assert inquire(daemon, "safe", "bob", SECRETS["bob"], right) != ""
    wrong = "?target_user=target&target_password=something else"
    assert inquire(daemon, "safe", "bob", SECRETS["bob"], wrong) == ""


def test_a_view_asks_as_its_volume_does(daemon):
    view = daemon.expose("safe", "-0s")
    url = daemon.url(view["iqn"])
    run = subprocess.run(["iscsi-inq", url], capture_output=True, text=True, timeout=30)
    assert run.returncode != 0
    run = subprocess.run(["iscsi-inq", url.replace("iscsi://", f"iscsi://bob%{SECRETS['bob']}@")],
                         capture_output=True, text=True, timeout=30)
    assert run.returncode == 0, run.stderr


def wrong_login(daemon, target: str) -> bytes:
    """One login with a wrong response; the status of the last answer."""
    import socket
    with socket.create_connection((daemon.address, daemon.port), timeout=10) as connection:
        keys = [{"InitiatorName": "iqn.2026-11.org.mariner:guess", "TargetName": target, "AuthMethod": "CHAP"},
                {"CHAP_A": "7"}, {"CHAP_N": "alice", "CHAP_R": "0x" + "00" * 32}]
        for some in keys:
            connection.sendall(iscsi_pdu.login(some, stage_flags=0x00))
            bhs, _ = iscsi_pdu.receive_pdu(connection)
            if bhs[36:38] != b"\0\0":
                return bhs[36:38]
    return b""


def test_who_guesses_is_slowed_down_and_others_are_unharmed(daemon):
    target = daemon.ask("volume", "show", "safe")["iqn"]
    statuses = [wrong_login(daemon, target) for _ in range(60)]
    assert statuses[0] == b"\x02\x01", "authentication failure"
    assert statuses[-1] == b"\x03\x01", "service unavailable: it is not even compared any more"
    assert 20 <= statuses.count(b"\x02\x01") < 40
    assert inquire(daemon, "open") != ""
    mariner.wait_until(lambda: wrong_login(daemon, target) == b"\x02\x01", 30, "it may try again", interval_s=0.2)


def test_a_secret_that_others_can_read_is_refused(tmp_path):
    (tmp_path / "alice").write_text(SECRETS["alice"])
    config = f'[auth.alice]\nsecret_file = "{tmp_path}/alice"\n'
    (tmp_path / "alice").chmod(0o644)
    with mariner.Daemon(tmp_path / "d", more_config=config) as running:
        running.start(wait=False)
        assert running.process.wait(20) != 0
        assert "expected mode 0600" in running.tail()
        running.process = None
