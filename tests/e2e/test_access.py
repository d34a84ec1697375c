"""Who may use a volume, and where: by command, and seen by initiators."""

import subprocess

import pytest

import iscsi_pdu
import mariner

ALICE, BOB = "iqn.2026-11.org.mariner:alice", "iqn.2026-11.org.mariner:bob"
FORBIDDEN, MOVED, MOVED_FOR_GOOD, TOO_MANY = 0x0202, 0x0101, 0x0102, 0x0302
DONE, FAILED, USAGE, BUSY = 0, 1, 2, 4


def address_of(daemon) -> tuple[str, int]:
    return daemon.address, daemon.port


def log_in(daemon, target, initiator, isid=b"\x80\0\0\0\0\x01"):
    return iscsi_pdu.log_in(address_of(daemon), target, initiator=initiator, isid=isid)


def status(daemon, target, initiator) -> int:
    code, _, connection = iscsi_pdu.login_answer(address_of(daemon), target, initiator)
    connection.close()
    return code


def discovered(daemon, initiator) -> set[str]:
    told = iscsi_pdu.send_targets(iscsi_pdu.log_in_discovery(address_of(daemon), initiator))
    return {value.rsplit(":", 1)[1] for key, value in told if key == "TargetName"}


def test_a_list_is_made_by_command_and_survives_a_restart(daemon):
    target = daemon.create("db1", "16M")["iqn"]
    assert daemon.ask("target", "acl", "list", "db1")["any_initiator"]
    assert status(daemon, target, BOB) == 0
    planned = daemon.ask("target", "acl", "add", "db1", ALICE, "--dry-run")
    assert planned["acl"] == [ALICE] and daemon.ask("volume", "show", "db1")["access"]["any_initiator"]
    daemon.cli("target", "acl", "add", "db1", ALICE)
    assert status(daemon, target, ALICE) == 0 and status(daemon, target, BOB) == FORBIDDEN
    assert ALICE in daemon.cli("volume", "show", "db1").out
    daemon.stop()
    daemon.start()
    assert status(daemon, target, ALICE) == 0 and status(daemon, target, BOB) == FORBIDDEN
    daemon.cli("target", "acl", "remove", "db1", ALICE, "--yes")
    assert status(daemon, target, ALICE) == FORBIDDEN, "nobody is left"
    daemon.cli("target", "acl", "add", "db1", "any")
    assert status(daemon, target, BOB) == 0
    assert daemon.cli("target", "acl", "add", "db1", "not a name", check=False).code == USAGE
    assert daemon.cli("target", "acl", "remove", "db1", ALICE, check=False).code == FAILED


def test_who_loses_access_is_asked_to_leave_and_then_dropped(daemon):
    target = daemon.create("db1", "16M")["iqn"]
    obedient = log_in(daemon, target, BOB)
    stubborn = log_in(daemon, target, BOB, isid=b"\x80\0\0\0\0\x02")
    alice = log_in(daemon, target, ALICE)
    refused = daemon.cli("target", "acl", "add", "db1", ALICE, check=False)
    assert refused.code == BUSY and "2 sessions" in refused.err and "--force" in refused.err
    assert daemon.ask("volume", "show", "db1")["access"]["any_initiator"], "nothing was changed"
    told = daemon.ask("target", "acl", "add", "db1", ALICE, "--force")
    assert len(told["sessions"]) == 2
    for connection in (obedient, stubborn):
        event, _, _, seconds = iscsi_pdu.async_event(connection)
        assert event == 1 and seconds == 5
    iscsi_pdu.logout(obedient)
    event, _, wait, retain = iscsi_pdu.async_event(stubborn)
    assert (event, wait, retain) == (3, 2, 0)
    assert stubborn.recv(1) == b""
    assert len(daemon.ask("session", "list")["sessions"]) == 1
    assert iscsi_pdu.command(alice, bytes(6), sn=1)[0] in (0, 2), "others are unharmed"
    assert any('"forbidden"' in line or "forbidden" in line for line in daemon.log_lines())


def test_what_the_configuration_declares_stays_declared(tmp_path):
    config = '[[volume]]\nname = "db1"\nsize = "16M"\nacl = ["%s"]\n' % ALICE
    with mariner.Daemon(tmp_path, more_config=config) as daemon:
        daemon.start()
        target = daemon.ask("volume", "show", "db1")["iqn"]
        for words in (["acl", "add", "db1", BOB], ["acl", "remove", "db1", ALICE], ["auth", "clear", "db1"],
                      ["redirect", "db1", "192.0.2.1:3260"]):
            refused = daemon.cli("target", *words, check=False)
            assert refused.code == FAILED and str(daemon.config_file) in refused.err, words
        alice = log_in(daemon, target, ALICE)
        # It is changed there: who has lost access is asked to leave.
        daemon.more_config = config.replace(ALICE, BOB)
        daemon.write_config()
        daemon.process.send_signal(1)
        assert iscsi_pdu.async_event(alice)[0] == 1
        assert status(daemon, target, ALICE) == FORBIDDEN
        assert daemon.ask("target", "acl", "list", "db1")["declared_in"] == str(daemon.config_file)


def test_a_kicked_session_is_asked_first(daemon):
    target = daemon.create("db1", "16M")["iqn"]
    asked, cut = log_in(daemon, target, ALICE), log_in(daemon, target, BOB)
    ids = {s["initiator"]: s["id"] for s in daemon.ask("session", "list")["sessions"]}
    daemon.ask("session", "kick", ids[ALICE])
    assert iscsi_pdu.async_event(asked)[0] == 1
    iscsi_pdu.logout(asked)
    daemon.ask("session", "kick", ids[BOB], "--force")
    assert iscsi_pdu.async_event(cut)[0] == 3
    assert cut.recv(1) == b""


def test_a_deleted_volume_tells_its_sessions(daemon):
    connection = log_in(daemon, daemon.create("db1", "16M")["iqn"], ALICE)
    daemon.ask("volume", "delete", "db1", "--force")
    assert iscsi_pdu.async_event(connection)[0] == 3
    assert connection.recv(1) == b""


def test_discovery_shows_each_initiator_its_own(daemon):
    for name in ("open", "alices", "bobs"):
        daemon.create(name, "16M")
    daemon.cli("target", "acl", "add", "alices", ALICE)
    daemon.cli("target", "acl", "add", "bobs", BOB)
    assert discovered(daemon, ALICE) == {"open", "alices"}
    assert discovered(daemon, BOB) == {"open", "bobs"}
    target = daemon.ask("volume", "show", "alices")["iqn"]
    connection = log_in(daemon, target, ALICE)
    other = daemon.ask("volume", "show", "open")["iqn"]
    assert {v for k, v in iscsi_pdu.send_targets(connection, "") if k == "TargetName"} == {target}
    assert iscsi_pdu.send_targets(connection, other, sn=2) == [], "a normal session: its own only"


CHAP = """
[auth.alice]
secret_file = "{folder}/alice"
[auth.bob]
secret_file = "{folder}/bob"
"""


def test_discovery_shows_each_account_its_own(tmp_path):
    for name in ("alice", "bob"):
        (tmp_path / name).write_text(f"the secret of {name}\n")
        (tmp_path / name).chmod(0o600)
    daemon = mariner.Daemon(tmp_path / "d", more_config=CHAP.format(folder=tmp_path))
    with daemon as running:
        running.start()
        for name in ("open", "alices", "bobs", "both"):
            running.create(name, "16M")
        running.cli("target", "auth", "set", "alices", "alice")
        running.cli("target", "auth", "set", "bobs", "bob")
        running.cli("target", "auth", "set", "both", "alice", "bob")
        assert running.cli("target", "auth", "set", "open", "eve", check=False).code == FAILED
        assert "alice, bob" in running.cli("target", "auth", "show", "both").out

        def listed(user: str) -> set[str]:
            url = f"iscsi://{user}%the secret of {user}@127.0.0.1:{running.port}"
            run = subprocess.run(["iscsi-ls", url], capture_output=True, text=True, timeout=30)
            return {line.split()[0].rsplit(":", 1)[1] for line in run.stdout.splitlines() if line.startswith("Target:")}

        # Without accounts for discovery, the access lists alone decide.
        assert discovered(running, ALICE) == {"open", "alices", "bobs", "both"}
        text = running.config_file.read_text()
        running.config_file.write_text(text.replace("[server]", '[server]\ndiscovery_auth = ["alice", "bob"]'))
        running.process.send_signal(1)
        mariner.wait_until(lambda: listed("alice") == {"open", "alices", "both"}, 10, "alice sees her own")
        assert listed("bob") == {"open", "bobs", "both"}
        running.cli("target", "auth", "clear", "bobs")
        assert listed("alice") == {"open", "alices", "both", "bobs"}


def test_initiators_follow_a_redirection(tmp_path):
    """Two daemons with a volume of the same name: the first sends everybody to the second."""
    with mariner.Daemon(tmp_path / "1") as first, mariner.Daemon(tmp_path / "2") as second:
        target = first.start().create("db1", "16M")["iqn"]
        assert second.start().create("db1", "32M")["iqn"] == target
        connection = log_in(first, target, ALICE)
        there = f"127.0.0.1:{second.port}"
        first.cli("target", "redirect", "db1", f"{there},1")
        assert iscsi_pdu.async_event(connection)[0] == 1, "who is logged in is asked to leave"
        iscsi_pdu.logout(connection)
        code, keys, _ = iscsi_pdu.login_answer(address_of(first), target)
        assert (code, keys) == (MOVED, {"TargetAddress": there})
        run = subprocess.run(["iscsi-inq", first.url(target)], capture_output=True, text=True, timeout=30)
        assert run.returncode == 0, run.stderr
        capacity = subprocess.run(["iscsi-readcapacity16", first.url(target)], capture_output=True, text=True, timeout=30)
        assert capacity.returncode == 0 and str(32 << 20) in capacity.stdout.replace(" ", ""), capacity.stdout
        image = subprocess.run(["qemu-img", "info", "--output=json", first.url(target)], capture_output=True,
                               text=True, timeout=60)
        assert f'"virtual-size": {32 << 20}' in image.stdout, image.stderr
        first.cli("target", "redirect", "db1", there, "--permanent")
        assert iscsi_pdu.login_answer(address_of(first), target)[0] == MOVED_FOR_GOOD
        assert there in first.cli("volume", "show", "db1").out
        first.stop()
        first.start()
        assert iscsi_pdu.login_answer(address_of(first), target)[0] == MOVED_FOR_GOOD, "remembered"
        first.cli("target", "redirect", "db1", "--off")
        assert status(first, target, ALICE) == 0
        assert "mariner_login_redirections_total" in first.http("/metrics")[1]


def test_a_redirection_to_another_portal_of_the_same_daemon(tmp_path):
    other, = mariner.free_ports(1)
    config = f"[[server.portal_group]]\ntag = 2\nportals = [\"127.0.0.1:{other}\"]\n" \
             f"[[volume]]\nname = \"db1\"\nsize = \"16M\"\nredirect = \"127.0.0.1:{other}\"\n"
    with mariner.Daemon(tmp_path, more_config=config) as daemon:
        target = daemon.start().ask("volume", "show", "db1")["iqn"]
        assert iscsi_pdu.login_answer(address_of(daemon), target)[0] == MOVED
        assert iscsi_pdu.login_answer(("127.0.0.1", other), target)[0] == 0, "not sent on from there"
        assert subprocess.run(["iscsi-inq", daemon.url(target)], capture_output=True, timeout=30).returncode == 0


@pytest.mark.parametrize("limit, count", [("sessions_max = 3", 3), ("sessions_per_initiator_max = 2", 2)])
def test_too_many_sessions_are_refused_and_the_limit_is_named(tmp_path, limit, count):
    daemon = mariner.Daemon(tmp_path)
    write = daemon.write_config
    daemon.write_config = lambda: (write(), daemon.config_file.write_text(
        daemon.config_file.read_text().replace("[server]", f"[server]\n{limit}")))
    with daemon as running:
        target = running.start().create("db1", "16M")["iqn"]
        sessions = [log_in(running, target, ALICE, isid=bytes([0x80, 0, 0, 0, 0, i])) for i in range(count)]
        code, _, _ = iscsi_pdu.login_answer(address_of(running), target, ALICE, isid=b"\x80\0\0\0\0\x77")
        assert code == TOO_MANY
        assert any(limit.split(" ")[0] in line and f"allowed {count}" in line for line in running.log_lines())
        assert "mariner_login_limit_refusals_total 1" in running.http("/metrics")[1]
        # The same port again is no new one.
        again = log_in(running, target, ALICE, isid=bytes([0x80, 0, 0, 0, 0, 0]))
        assert sessions[0].recv(1) == b"" and again is not None
