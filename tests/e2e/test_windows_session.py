"""Windows logs in: discovery, the keys one by one, CHAP, a second connection, a lost one, a large write."""

import struct

import pytest

from libiscsi import GOOD
from windows_cluster import READ_KEYS, REGISTER, key_of
from windows_disk import read10, write10
from windows_fixtures import ADDRESSES, BLOCK, MUTUAL, SECRET, server, target  # noqa: F401  (fixtures)
from windows_session import DISCOVERY_KEYS, INITIATOR, NORMAL_KEYS, OPERATIONAL, Connection, Refused

pytestmark = pytest.mark.slow


def connect(server, **options) -> Connection:
    return Connection((server.address, server.port), **options)


def test_discovery(server, target):
    with connect(server) as connection:
        connection.log_in()
        answer = connection.answers[1]
        assert set(answer.keys) <= set(DISCOVERY_KEYS), "what was not offered is not answered"
        assert answer.keys["HeaderDigest"] == answer.keys["DataDigest"] == "None"
        said = connection.text({"SendTargets": "All"}).split("\0")
        mine = said[said.index(f"TargetName={target}") + 1:][:2]
        assert mine[0] == f"TargetAddress={server.address}:{server.port},1", "the portal that was reached comes first"
        assert mine[1] == f"TargetAddress={ADDRESSES[1]}:{server.port},1"
        assert connection.log_out() == 0


def test_a_login_is_answered_key_by_key(server, target):
    with connect(server) as connection:
        connection.log_in(target)
        security, operational = connection.answers
        assert security.next_stage == OPERATIONAL and security.tsih == 0
        # Windows waits for ever without the tag (RFC 7143 13.9: in the first response of a normal session).
        assert security.keys["TargetPortalGroupTag"] == "1"
        assert security.keys["AuthMethod"] == "None"
        assert operational.tsih != 0
        assert operational.stat_sn == security.stat_sn + 1
        assert operational.exp_cmd_sn == 1 and operational.max_cmd_sn >= 1
        keys = operational.keys
        assert set(keys) <= set(NORMAL_KEYS) | {"TargetAlias"}, "what was not offered is not answered"
        assert not {"Reject", "NotUnderstood", "Irrelevant"} & set(keys.values()), keys
        assert keys["HeaderDigest"] == keys["DataDigest"] == "None", "the first of the list"
        assert keys["ErrorRecoveryLevel"] in ("0", "1", "2")
        assert keys["ImmediateData"] in ("Yes", "No") and keys["InitialR2T"] in ("Yes", "No")
        assert keys["DataPDUInOrder"] == keys["DataSequenceInOrder"] == "Yes"
        assert 512 <= int(keys["FirstBurstLength"]) <= 65536
        assert int(keys["FirstBurstLength"]) <= int(keys["MaxBurstLength"]) <= 262144
        assert 1 <= int(keys["MaxConnections"]) <= 32 and 1 <= int(keys["MaxOutstandingR2T"]) <= 16
        assert int(keys["DefaultTime2Retain"]) <= 60
        assert connection.command(bytes(6))[0] != GOOD, "power on"
        assert connection.command(bytes(6))[0] == GOOD
        assert connection.log_out() == 0


@pytest.mark.parametrize("digest", ["CRC32C", "CRC32C,None"])
def test_digests_that_are_asked_for(server, target, digest):
    with connect(server) as connection:
        connection.log_in(target, changes={"HeaderDigest": digest, "DataDigest": digest})
        assert connection.answers[1].keys["HeaderDigest"] == connection.answers[1].keys["DataDigest"] == "CRC32C"


def test_chap(server):
    safe = server.ask("volume", "show", "safe")["iqn"]
    user = INITIATOR.format("win1")
    for mutual in ("", MUTUAL):
        with connect(server) as connection:
            connection.log_in_with_chap(safe, user, SECRET, mutual)
            connection.command(bytes(6))
            assert connection.command(bytes(6))[0] == GOOD
    with connect(server) as connection, pytest.raises(Refused, match="0x0201"):
        connection.log_in_with_chap(safe, user, "wrongsecret123")
    # It asks for no authentication first, unless it is told to.
    with connect(server) as connection, pytest.raises(Refused, match="0x0201"):
        connection.log_in(safe)


def test_a_second_connection_of_the_session(server, target):
    """MC/S: as many as were agreed upon; commands are numbered over all of them (RFC 7143 4.2.2.1)."""
    with connect(server) as first, connect(server, cid=2) as second:
        first.log_in(target)
        first.command(bytes(6))
        assert first.command(bytes(6))[0] == GOOD
        if int(first.answers[1].keys["MaxConnections"]) == 1:
            with pytest.raises(Refused, match="0x0206"):  # too many connections
                second.log_in(target, tsih=first.tsih)
        else:
            second.sn = first.sn
            second.log_in(target, tsih=first.tsih)
            assert second.tsih == first.tsih
            data = bytes(range(256)) * 2
            assert second.command(write10(8, 1), data, sn=first.sn + 1)[0] == GOOD
            assert first.command(read10(8, 1), expected=BLOCK, sn=second.sn + 1) == (GOOD, data)
        assert first.command(bytes(6), sn=max(first.sn, second.sn) + 1)[0] == GOOD, "the first lives on"


def test_a_lost_connection_comes_back_as_the_same_nexus(server, target):
    """Windows logs in again with its ISID after a second; its registration is still there."""
    data = struct.pack(">QQIB3x", 0, key_of(1), 0, 0)
    register = struct.pack(">BBBHIB", 0x5F, REGISTER, 0, 0, len(data), 0)
    with connect(server) as lost, connect(server) as back:
        lost.log_in(target)
        lost.command(bytes(6))
        assert lost.command(register, data)[0] == GOOD
        back.log_in(target)
        while back.command(bytes(6))[0] != GOOD:
            assert back.sn < 8
        status, keys = back.command(struct.pack(">BB5xHB", 0x5E, READ_KEYS, 64, 0), expected=64)
        assert status == GOOD and keys[8:] == struct.pack(">Q", key_of(1))
        data = struct.pack(">QQIB3x", key_of(1), 0, 0, 0)
        assert back.command(register, data)[0] == GOOD, "it is registered: REGISTER with its key"


@pytest.mark.parametrize("initial_r2t", ["No", "Yes"])
def test_a_write_larger_than_the_first_burst(server, target, initial_r2t):
    """Windows sends FirstBurstLength as immediate data and waits for an R2T; one that is wrong ends its connection."""
    with connect(server) as connection:
        connection.log_in(target, changes={"InitialR2T": initial_r2t})
        connection.command(bytes(6))
        data = bytes(i * 31 % 251 for i in range(256 << 10))
        connection.write_in_bursts(write10(64, len(data) // BLOCK), data)
        assert connection.command(read10(64, len(data) // BLOCK), expected=len(data)) == (GOOD, data)


def test_a_ping(server, target):
    """With EnableNOPOut Windows asks whether the target is there."""
    with connect(server) as connection:
        connection.log_in(target)
        assert connection.ping(b"are you there?") == b"are you there?"
