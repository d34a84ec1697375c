"""What a host's tools ask of a disk beside its data: pages, logs, self-tests, starting and stopping. Answers are decoded by sg3_utils."""

import struct
import subprocess

import pytest

import iscsi_pdu
import mariner

GOOD, CHECK_CONDITION = 0x00, 0x02
READ = bytes([0x28, 0, 0, 0, 0, 0, 0, 0, 1])
TEST_UNIT_READY = bytes(6)


class Host:
    """An initiator with a name of its own, whose unit attentions are taken."""

    def __init__(self, daemon, target: str, name: str):
        self.connection = iscsi_pdu.log_in((daemon.address, daemon.port), target,
                                           initiator=f"iqn.2026-11.org.mariner:{name}")
        self.sn = 0
        while self.command(TEST_UNIT_READY)[0] != GOOD:
            assert self.sn < 10

    def command(self, cdb: bytes, data: bytes = b"", expected: int = 0) -> tuple[int, bytes]:
        self.sn += 1
        return iscsi_pdu.command(self.connection, cdb, data, sn=self.sn, expected=expected)

    def ask(self, cdb: bytes, expected: int = 1024) -> bytes:
        status, data = self.command(cdb, expected=expected)
        assert status == GOOD, data.hex()
        return data

    def refusal(self, cdb: bytes, data: bytes = b"", expected: int = 0) -> str:
        """Sense key, code and qualifier."""
        status, sense = self.command(cdb, data, expected)
        assert status == CHECK_CONDITION
        return f"{sense[4] & 0xF:X}/{sense[14]:02X}/{sense[15]:02X}"

    def log_page(self, page: int) -> bytes:
        return self.ask(struct.pack(">BBBBBHHB", 0x4D, 0, 0x40 | page, 0, 0, 0, 1024, 0))

    def vital_page(self, page: int) -> bytes:
        return self.ask(struct.pack(">BBBHB", 0x12, 1, page, 1024, 0))


def decoded(program: list[str], data: bytes) -> str:
    """What a program of sg3_utils says of an answer."""
    run = subprocess.run(program, input=data.hex(" "), capture_output=True, text=True, timeout=30)
    assert run.returncode == 0, run.stderr
    return run.stdout


def log_text(page: bytes, tmp_path) -> str:
    file = tmp_path / "page.hex"
    file.write_text(page.hex(" "))
    return decoded(["sg_logs", f"--in={file}"], b"")


@pytest.fixture(scope="module")
def target(module_folder):
    with mariner.Daemon(module_folder) as running:
        running.start()
        yield running, running.create("disk", "64M")["iqn"]


@pytest.fixture
def host(target):
    return Host(*target, "a")


def test_libiscsi_reads_the_list_of_vital_pages(target):
    """And no more: its iscsi-inq knows the formats of few pages, 86h and 87h not among them."""
    daemon, iqn = target
    listed = subprocess.run(["iscsi-inq", "-e", "1", "-c", "0", daemon.url(iqn)],
                            capture_output=True, text=True, timeout=30)
    for page in ("86", "87", "b0", "b1", "b2"):
        assert f"0x{page}" in listed.stdout.lower(), listed.stdout


def test_vital_pages_say_what_the_disk_is(host):
    pages = {page: decoded(["sg_vpd", "--inhex=-", f"--page=0x{page:x}", "--long"], host.vital_page(page))
             for page in (0x86, 0x87, 0xB0, 0xB1, 0xB2)}
    for line in ("HEADSUP=1", "ORDSUP=1", "SIMPSUP=1", "V_SUP=0", "WU_SUP=0", "LUICLR=1", "SPT=0", "POA_SUP=0",
                 "Extended self-test completion minutes=1"):
        assert line in pages[0x86], pages[0x86]
    assert pages[0x87].count("Policy: shared") == 2
    assert "Write same non-zero (WSNZ): 1" in pages[0xB0]
    for line in ("Non-rotating medium", "FUAB=1", "VBULS=1"):
        assert line in pages[0xB1], pages[0xB1]
    for line in ("Unmap command supported (LBPU): 1", "Provisioning type: 2"):
        assert line in pages[0xB2], pages[0xB2]


def test_all_mode_pages_come_in_one_answer(host):
    data = host.ask(struct.pack(">BBBB3xHx", 0x5A, 0x08, 0x3F, 0xFF, 1024))
    assert struct.unpack_from(">H", data)[0] == len(data) - 2
    pages, at = [], 8
    while at < len(data):
        subpage = data[at] & 0x40
        pages.append((data[at] & 0x3F, data[at + 1] if subpage else 0))
        at += 4 + struct.unpack_from(">H", data, at + 2)[0] if subpage else 2 + data[at + 1]
    assert pages == [(0x01, 0), (0x02, 0), (0x07, 0), (0x08, 0), (0x0A, 0), (0x0A, 1), (0x1A, 0), (0x1C, 0), (0x1C, 2)]


def test_counters_are_those_of_the_commands(host, tmp_path):
    assert host.command(struct.pack(">BBBB5xB", 0x4C, 0x02, 0x40, 0, 0))[0] == GOOD, "LOG SELECT, all to zero"
    for _ in range(3):
        host.ask(READ, 512)
    assert host.command(bytes([0x2A, 0, 0, 0, 0, 0, 0, 0, 8]), bytes(4096))[0] == GOOD
    text = log_text(host.log_page(0x19), tmp_path)
    for line in ("number of read commands = 3", "number of write commands = 1",
                 "number of logical blocks received = 8", "number of logical blocks transmitted = 3",
                 "time interval negative exponent = 6"):
        assert line in text, text
    write_time = next(int(line.split("=")[1]) for line in text.splitlines()
                      if line.strip().startswith("write command processing intervals"))
    assert 0 < write_time < 60_000_000, "microseconds of one durable write"
    assert "Total bytes processed = 4096" in log_text(host.log_page(0x02), tmp_path)
    assert "Total bytes processed = 1536" in log_text(host.log_page(0x03), tmp_path)


def test_a_self_test_reads_the_live_volume_and_is_logged(host, tmp_path):
    assert host.command(bytes([0x1D, 0x04, 0, 0, 0, 0]))[0] == GOOD, "the default test"
    assert host.command(bytes([0x1D, 0xC0, 0, 0, 0, 0]))[0] == GOOD, "extended, in the foreground"
    page = host.log_page(0x10)
    assert page[8] == 0xC0, "code 6, passed"
    assert page[12:20] == b"\xff" * 8, "no failure"
    text = log_text(page, tmp_path)
    assert "foreground extended [6]" in text and "completed without error [0]" in text, text


def test_a_stopped_unit_is_stopped_for_all_until_it_is_started(host, target):
    other = Host(*target, "b")
    assert host.command(bytes([0x1B, 0, 0, 0, 0, 0]))[0] == GOOD
    try:
        assert other.refusal(READ, expected=512) == "2/04/02"
        assert other.refusal(TEST_UNIT_READY) == "2/04/02"
        assert other.ask(bytes([3, 1, 0, 0, 252, 0]), 252)[:4].hex() == "72020402"
        assert host.refusal(bytes([0x1B, 0, 0, 0, 2, 0])) == "5/24/00", "nothing can be ejected"
    finally:
        assert other.command(bytes([0x1B, 0, 0, 0, 1, 0]))[0] == GOOD
    assert len(host.ask(READ, 512)) == 512


def test_an_exception_test_is_told_on_request(host):
    page = bytearray(bytes.fromhex("00000000 1c0a 0406 00000000 00000001"))
    assert host.command(bytes([0x15, 0x10, 0, 0, len(page), 0]), bytes(page))[0] == GOOD
    assert host.ask(bytes([3, 1, 0, 0, 252, 0]), 252)[:4].hex() == "72005dff"
    page[6] = 0
    assert host.command(bytes([0x15, 0x10, 0, 0, len(page), 0]), bytes(page))[0] == GOOD
    assert host.ask(bytes([3, 1, 0, 0, 252, 0]), 252)[:4].hex() == "72000000"


def test_the_echo_buffer_gives_back_what_was_written(host):
    data = bytes(range(256)) * 16
    assert host.command(struct.pack(">BB4x3sx", 0x3B, 0x0A, (4096).to_bytes(3, "big")), data)[0] == GOOD
    assert host.ask(struct.pack(">BB4x3sx", 0x3C, 0x0A, (4096).to_bytes(3, "big")), 4096) == data
