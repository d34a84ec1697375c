"""bs_mariner.so in a stock tgtd: volumes of marinerd as tgt's disks, with their history, through crashes of either."""

import shutil
import struct
import subprocess
import threading
import time

import pytest

import crash_campaign
import hammer
import iscsi_pdu
import libiscsi_client
import mariner
import tgt_front
from libiscsi_client import CHECK_CONDITION, GOOD

pytestmark = pytest.mark.skipif(shutil.which("tgtd") is None or not tgt_front.MODULE.exists(),
                                reason="built or installed without tgt")

BLOCK = 512
VOLUME = "db1"


def read10(session, lba: int, blocks: int = 1):
    return session.command(struct.pack(">BBIBHB", 0x28, 0, lba, 0, blocks, 0), expected=blocks * BLOCK)


def write10(session, lba: int, data: bytes):
    return session.command(struct.pack(">BBIBHB", 0x2A, 0, lba, 0, len(data) // BLOCK, 0), data)


def compare_and_write(session, lba: int, old: bytes, new: bytes):
    return session.command(struct.pack(">BBQ3xBBB", 0x89, 0, lba, 1, 0, 0), old + new)


@pytest.fixture
def front(folder, daemon):
    with tgt_front.TgtFront(folder / "tgtd", daemon) as running:
        yield running


@pytest.fixture
def url(daemon, front):
    """Of volume db1 through tgtd."""
    daemon.create(VOLUME, "64M")
    return front.disk(VOLUME, thin=True)


# -- Serving --------------------------------------------------------------------------------------

def test_it_serves_a_volume(daemon, url):
    direct = daemon.volume_url(VOLUME)
    mariner.qemu_io(url, "write -P 0x11 0 4M", "write -P 0x12 63M 1M", "flush", "read -P 0x11 0 4M")
    mariner.qemu_io(direct, "read -P 0x11 0 4M", "read -P 0x12 63M 1M", "write -P 0x22 1M 64k")
    mariner.qemu_io(url, "read -P 0x11 0 1M", "read -P 0x22 1M 64k", "read -P 0x11 1088k 64k", "write -z -u 2M 1M")
    mariner.qemu_io(direct, "read -P 0 2M 1M", "read -P 0x11 3M 1M")
    assert mariner.qemu_io(url, "length") == "64 MiB\n"


@pytest.mark.parametrize("block_size", [512, 4096])
def test_block_size_comes_from_the_volume(daemon, front, block_size):
    daemon.create(VOLUME, "64M", "--block-size", str(block_size))
    out = subprocess.run(["iscsi-readcapacity16", front.disk(VOLUME)], capture_output=True, text=True, check=True).stdout
    assert f"LOGICAL BLOCK LENGTH IN BYTES:{block_size}\n" in out and f"Total size:{64 << 20}" in out, out
    assert f"PHYSICAL BLOCK EXPONENT:{3 if block_size == 512 else 0}\n" in out, out


def test_limits_are_those_of_marinerd(daemon, front, url):
    def limits(session):
        return session.command(bytes([0x12, 1, 0xB0, 0, 64, 0]), expected=64).good()

    direct = libiscsi_session(daemon)
    through = tgt_front.session(front, url)
    try:
        assert limits(through)[4:44] == limits(direct)[4:44]
        assert limits(through)[44:] == bytes(20), "tgt has no atomic writes"
    finally:
        through.close()
        direct.close()


def libiscsi_session(daemon):
    return libiscsi_client.Session(daemon, daemon.ask("volume", "show", VOLUME)["iqn"])


def test_answers_come_back_as_they_are(daemon, front, url):
    session = tgt_front.session(front, url)
    direct = libiscsi_session(daemon)
    try:
        old, new = bytes([1]) * BLOCK, bytes([2]) * BLOCK
        assert write10(session, 7, old).status == GOOD
        assert compare_and_write(session, 7, old, new).status == GOOD
        missed = compare_and_write(session, 7, old, new)
        assert (missed.status, missed.sense) == (CHECK_CONDITION, "E/1D/00")
        assert read10(session, 7).good() == new
        # BYTCHK of VERIFY(10): without it tgt alone would not look.
        assert session.command(struct.pack(">BBIBHB", 0x2F, 2, 7, 0, 1, 0), old).sense == "E/1D/00"
        assert session.command(struct.pack(">BBIBHB", 0x2F, 0, 1 << 20, 0, 1, 0)).sense == "5/21/00"
        status = struct.pack(">BBQIBB", 0x9E, 0x12, 0, 64, 0, 0)
        extents = session.command(status, expected=64).good()
        assert extents == direct.command(status, expected=64).good() and extents[3] == 36, "two: one is there, one not"
        codes = session.command(bytes([0xA3, 0x0C, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0]), expected=4096).good()
        assert 0x89 in codes[4::8], "REPORT SUPPORTED OPERATION CODES"
    finally:
        session.close()
        direct.close()


# -- History --------------------------------------------------------------------------------------

def test_the_past_of_what_came_through_tgtd(daemon, front, url):
    mariner.qemu_io(url, "write -P 0x11 0 1M")
    daemon.ask("mark", "add", VOLUME, "first")
    mariner.qemu_io(url, "write -P 0x22 0 1M")
    view = daemon.expose(VOLUME, "mark:first")
    mariner.qemu_io(daemon.url(view["iqn"]), "read -P 0x11 0 1M", read_only=True)
    # A view is a disk for tgtd, too, which tells its hosts that it is read-only.
    past = front.disk("past", options=front.options(target=view["iqn"]))
    mariner.qemu_io(past, "read -P 0x11 0 1M", read_only=True)
    mariner.qemu_io(url, "read -P 0x22 0 1M")
    session = tgt_front.session(front, past)
    try:
        assert write10(session, 0, bytes(BLOCK)).sense == "7/27/00"
        assert session.command(bytes([0x1A, 8, 0x3F, 0, 4, 0]), expected=4).good()[2] & 0x80
    finally:
        session.close()


def test_a_rollback_is_told_to_every_initiator(daemon, front, url):
    sessions = [tgt_front.session(front, url, f"iqn.2026-11.org.mariner:host{i}") for i in range(3)]
    try:
        first, second = bytes([1]) * BLOCK, bytes([2]) * BLOCK
        assert write10(sessions[0], 3, first).status == GOOD
        daemon.ask("mark", "add", VOLUME, "first")
        assert write10(sessions[0], 3, second).status == GOOD
        assert [read10(session, 3).good() for session in sessions] == [second] * 3
        daemon.rollback(VOLUME, "mark:first")
        for session in sessions:
            told = []
            while (answer := read10(session, 3)).status == CHECK_CONDITION:
                told.append(answer.sense)
            assert told and all(sense.startswith("6/") for sense in told), told
            assert answer.good() == first
            assert read10(session, 3).good() == first, "once"
    finally:
        for session in sessions:
            session.close()


def test_a_volume_that_grows(daemon, front, url):
    session = tgt_front.session(front, url)
    try:
        end = (64 << 20) // BLOCK
        assert read10(session, end).sense == "5/21/00"
        daemon.ask("volume", "resize", VOLUME, "128M")
        told = read10(session, 0)
        assert told.sense == "6/2A/09"
        # Whoever asks now is told the new size.
        assert session.command(bytes([0x25]) + bytes(9), expected=8).good()[:4] == (2 * end - 1).to_bytes(4, "big")
        assert read10(session, end).good() == bytes(BLOCK)
    finally:
        session.close()


# -- Crashes --------------------------------------------------------------------------------------

def campaign_of(folder) -> hammer.Campaign:
    return hammer.Campaign(folder / "journals", region_bytes=32 << 20)


def check(campaign: hammer.Campaign, daemon, *urls: str):
    for each in (daemon.volume_url(VOLUME), *urls):
        report = campaign.verify(each)
        assert report["faults"] == [] and report["writes"] > 0, report


@pytest.mark.slow
def test_marinerd_restarts_under_load(daemon, front, url, folder, long_run):
    campaign = campaign_of(folder)
    load = campaign.start(url, "--depth", 40, "--seconds", 600, "--repeat-attentions")
    try:
        for number in range(20 if long_run else 4):
            time.sleep(0.7)
            daemon.stop() if number % 2 else daemon.kill()
            time.sleep(0.3 * (number % 3))
            daemon.start()
        time.sleep(0.7)
        report = load.stop()
    finally:
        load.kill()
    assert load.code == hammer.DONE and report["acknowledged"] > 0, report
    assert front.said().count("is back after") >= 4
    check(campaign, daemon, url)


@pytest.mark.slow
def test_a_reset_by_another_initiator_loses_nothing(daemon, front, url, folder):
    campaign = campaign_of(folder)
    load = campaign.start(url, "--depth", 40, "--seconds", 600, "--repeat-attentions")
    other = libiscsi_session(daemon)
    try:
        for _ in range(5):
            time.sleep(0.4)
            other.reset_lun()
        time.sleep(0.5)
        report = load.stop()
    finally:
        other.close()
        load.kill()
    assert load.code == hammer.DONE, report
    assert "reset by another initiator" in front.said()
    check(campaign, daemon, url)


@pytest.mark.slow
def test_what_may_have_been_done_is_not_done_twice(daemon, front, url):
    """COMPARE AND WRITE while marinerd crashes: a second time it would miscompare with what it has written itself."""
    session = tgt_front.session(front, url)
    over = threading.Event()

    def crashes():
        for _ in range(4):
            time.sleep(0.3)
            daemon.kill()
            daemon.start()
        over.set()

    thread = threading.Thread(target=crashes)
    thread.start()
    number, done, aborted = 0, 0, 0
    content = bytes(BLOCK)
    try:
        while not over.is_set() or done < 100:
            number += 1
            new = number.to_bytes(8, "big") * (BLOCK // 8)
            answer = compare_and_write(session, 0, content, new)
            if answer.status == GOOD:
                content, done = new, done + 1
            elif answer.sense.startswith("B/"):
                aborted += 1
                while (found := read10(session, 0)).status != GOOD:
                    assert found.sense.startswith("6/"), found
                assert found.data in (content, new)
                content = found.data
            else:
                assert answer.sense.startswith("6/"), answer
    finally:
        thread.join()
        session.close()
    print(f"{done} done, {aborted} may have been done")


@pytest.mark.slow
def test_tgtd_is_killed_under_load(daemon_off, folder, seed, long_run):
    campaign = crash_campaign.CrashCampaign(daemon_off, seed)
    campaign.prepare()
    direct = campaign.url
    front = tgt_front.TgtFront(folder / "tgtd", daemon_off)
    try:
        for _ in range(50 if long_run else 5):
            front.__enter__()
            campaign.url = front.disk(crash_campaign.VOLUME, thin=True)
            campaign.load_until(front.kill)
            campaign.url = direct
            campaign.check_volume()
        campaign.check_random_moment()
        sessions = daemon_off.ask("session", "list")
        mariner.wait_until(lambda: "org.mariner:tgt" not in str(daemon_off.ask("session", "list")), 10,
                           f"marinerd ends tgtd's sessions: {sessions}")
    finally:
        front.kill()
    print(f"{campaign.acknowledged} acknowledged writes, all there; of the others {campaign.present} present")


@pytest.mark.slow
def test_while_marinerd_is_away(daemon, front, url):
    other = front.target("other")[0]
    daemon.kill()
    began = time.monotonic()
    waiting = subprocess.Popen(["qemu-io", "-f", "raw", "-t", "none", "-c", "write -P 0x33 0 64k", url],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for _ in range(5):
            asked = time.monotonic()
            front.admin("--mode", "target", "--op", "show")
            assert time.monotonic() - asked < 1, "the event loop does not wait"
            time.sleep(0.2)
        assert not front.try_unit(other, "db2", front.options()), "nobody listens"
        assert time.monotonic() - began < 10
        assert waiting.poll() is None
        daemon.start()
        out = waiting.communicate(timeout=20)[0]
    finally:
        waiting.kill()
    assert waiting.returncode == 0 and "wrote 65536" in out, out
    mariner.qemu_io(daemon.volume_url(VOLUME), "read -P 0x33 0 64k")


@pytest.mark.slow
def test_what_a_host_has_given_up_is_not_written_later(daemon, front, url):
    lun = tgt_front.LUN << 48

    def request(number: int, cdb: bytes, data: bytes = b"") -> bytes:
        rest = struct.pack(">III", len(data), number, 0) + cdb.ljust(16, b"\0")
        flags = 0x81 | (0x20 if data else 0)
        return iscsi_pdu.header(iscsi_pdu.SCSI_COMMAND, flags=flags, length=len(data), lun=lun, tag=number, rest=rest) + data

    with iscsi_pdu.log_in((tgt_front.servers.HOST, front.port), url.split("/")[-2]) as connection:
        number = 0
        status = CHECK_CONDITION
        while status != GOOD:  # tgt's own unit attentions
            number += 1
            connection.sendall(request(number, bytes(6)))
            status = iscsi_pdu.receive_pdu(connection)[0][3]
        daemon.kill()
        writes = {number + 1 + lba: struct.pack(">BBIBHB", 0x2A, 0, lba, 0, 1, 0) for lba in range(2)}
        for tag, cdb in writes.items():
            connection.sendall(request(tag, cdb, b"\x77" * BLOCK))
        first, second = writes
        abort = struct.pack(">IIII", first, second + 1, 0, first)
        connection.sendall(iscsi_pdu.header(0x42, flags=0x81, lun=lun, tag=99, rest=abort))
        answers = [iscsi_pdu.receive_pdu(connection)[0] for _ in range(2)]
        assert [(bhs[0], int.from_bytes(bhs[16:20], "big")) for bhs in answers] == [(0x21, first), (0x22, 99)]
        assert answers[0][3] == 0x40, "TASK ABORTED"
        daemon.start()
        bhs = iscsi_pdu.receive_pdu(connection)[0]
        assert (int.from_bytes(bhs[16:20], "big"), bhs[3]) == (second, GOOD)
    mariner.qemu_io(daemon.volume_url(VOLUME), "read -P 0 0 512", "read -P 0x77 512 512")


# -- Administration -------------------------------------------------------------------------------

def test_what_is_wrong_is_said(daemon, front, folder):
    daemon.create(VOLUME, "16M", "--block-size", "4096")
    tid, _ = front.target(VOLUME)
    secret = folder / "secret"
    secret.write_text("not for everybody")
    secret.chmod(0o644)
    closed = mariner.free_ports(1)[0]
    portal = daemon.portal()
    for options, more, expected in [
            ("prtal=127.0.0.1:1", [], "found 'prtal'; did you mean 'portal'?"),
            ("portal=localhost", [], "portal: expected ADDRESS:PORT with a numeric address"),
            (f"portal={portal};user=a", [], "password-file: expected one beside user, found none"),
            (f"portal={portal};user=a;password-file={secret}", [], f"(mode 0600), found {secret} with mode 0644"),
            (f"portal={portal}", ["--blocksize", "2048"], "blocksize: expected 4096, which is the volume's, found 2048"),
            (f"portal={portal};iqn-base=iqn.2001-04.com.example", [], "iqn.2001-04.com.example:db1"),
            (f"portal=127.0.0.1:{closed}", [], f"127.0.0.1:{closed}: ")]:
        began = time.monotonic()
        assert not front.try_unit(tid, VOLUME, options, *more), options
        assert time.monotonic() - began < 6
        assert expected in front.tail(3), (expected, front.tail(3))
    assert front.try_unit(tid, VOLUME, f"portal={portal}"), front.tail()


def test_tgt_admin_reads_it_from_its_file(daemon, front, folder):
    """As at a start: from targets.conf, where a store has to be a file."""
    daemon.create(VOLUME, "16M")
    store = folder / VOLUME
    store.touch()
    file = folder / "targets.conf"
    iqn = "iqn.2001-04.com.example:disk1"
    file.write_text(f"""<target {iqn}>
    <backing-store {store}>
        bs-type mariner
        bsopts "'{front.options(initiator="iqn.2001-04.com.example:front")}'"
    </backing-store>
</target>
""")
    run = subprocess.run(["tgt-admin", "-e", "-c", str(file)], env=front.environment, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr + front.tail()
    mariner.qemu_io(f"iscsi://{tgt_front.servers.HOST}:{front.port}/{iqn}/1", "write -P 0x55 0 64k", "read -P 0x55 0 64k")
    mariner.qemu_io(daemon.volume_url(VOLUME), "read -P 0x55 0 64k")
    assert "iqn.2001-04.com.example:front" in str(daemon.ask("session", "list"))


def test_an_account_is_used(daemon, front, folder):
    for name, content in (("right", "the host's own secret"), ("wrong", "another secret here")):
        (folder / name).write_text(content + "\n")
        (folder / name).chmod(0o600)
    daemon.more_config = f'[auth.front]\nsecret_file = "{folder}/right"\n[[volume]]\nname = "{VOLUME}"\nsize = "16M"\nauth = "front"\n'
    daemon.stop()
    daemon.start()
    for password in ("", ";user=front;password-file=" + str(folder / "wrong")):
        tid, _ = front.target("refused" + str(len(password)))
        assert not front.try_unit(tid, VOLUME, front.options() + password)
        assert f"{VOLUME} at {daemon.portal()}: " in front.tail(3)
    url = front.disk(VOLUME, options=front.options(user="front", password_file=str(folder / "right")))
    mariner.qemu_io(url, "write -P 0x44 0 64k", "read -P 0x44 0 64k")


def test_nothing_is_left_behind(daemon, front, url):
    tid, _ = front.target("again")
    before = front.descriptors()
    for _ in range(20):
        assert front.try_unit(tid, VOLUME, front.options()), front.tail()
        front.admin("--mode", "logicalunit", "--op", "delete", "--tid", tid, "--lun", tgt_front.LUN)
        assert not front.try_unit(tid, "none", front.options())
    mariner.wait_until(lambda: front.descriptors() <= before, 5, f"{before} descriptors, as before")
    mariner.wait_until(lambda: len(daemon.ask("session", "list")["sessions"]) == 1, 10, "one session is left")
    mariner.qemu_io(url, "write 0 64k")
