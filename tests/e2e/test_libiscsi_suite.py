"""libiscsi's conformance tests of the families that Mariner answers, each in a process of its own on a fresh volume."""

import re
import struct
import subprocess

import pytest

import iscsi_pdu
import mariner

pytestmark = pytest.mark.slow

PROGRAM = "iscsi-test-cu"
FAMILIES = """
iSCSIcmdsn iSCSIdatasn iSCSIResiduals iSCSITMF TestUnitReady Inquiry Mandatory ReadCapacity10
ReadCapacity16 Read6 Read10 Read12 Read16 Write10 Write12 Write16 WriteSame10 WriteSame16 Unmap
Verify10 Verify12 Verify16 WriteVerify10 WriteVerify12 WriteVerify16 CompareAndWrite OrWrite WriteAtomic16
GetLBAStatus Prefetch10 Prefetch16 ReadDefectData10 ReadDefectData12 ModeSense6 ReportSupportedOpcodes
PrinReadKeys PrinReportCapabilities PrinServiceactionRange ProutClear ProutPreempt ProutRegister ProutReserve
Reserve6 StartStopUnit PreventAllow ExtendedCopy ReceiveCopyResults
""".split()

# What libiscsi leaves out by itself, and why that is right for this disk. Any other skip fails.
NOT_REMOVABLE = "the medium is not removable"
EXPECTED_SKIPS = {
    "PreventAllow.Simple": NOT_REMOVABLE,
    "PreventAllow.Eject": NOT_REMOVABLE,
    "PreventAllow.ITNexusLoss": NOT_REMOVABLE,
    "PreventAllow.Logout": NOT_REMOVABLE,
    "PreventAllow.WarmReset": NOT_REMOVABLE,
    "PreventAllow.ColdReset": NOT_REMOVABLE,
    "PreventAllow.LUNReset": NOT_REMOVABLE,
    "PreventAllow.2ITNexuses": NOT_REMOVABLE,
    "StartStopUnit.Simple": NOT_REMOVABLE,
    "StartStopUnit.PwrCnd": NOT_REMOVABLE,
    "StartStopUnit.NoLoej": NOT_REMOVABLE,
    "WriteAtomic16.VPD": "atomic writes need no alignment: every write is atomic",
    "WriteSame10.ZeroBlocks": "zero blocks are refused, as the block limits page says (WSNZ)",
    "WriteSame16.ZeroBlocks": "zero blocks are refused, as the block limits page says (WSNZ)",
}
# Faults of libiscsi 1.19: the assertion that fails, with every target.
CLIENT_FAULTS = {
    # It looks for the answer before it has sent the question. test_a_lun_reset_is_answered stands in.
    "iSCSITMF.LUNResetSimpleAsync": "CU_ASSERT_EQUAL(reconnect_succeeded,1)",
    # Where physical blocks are larger than logical ones it asks for one block and looks for another's
    # status. GetLbaStatusCommand.BeginsWithTheBlockThatWasAskedFor (disk_io_test) stands in.
    "GetLBAStatus.UnmapSingle": "test_get_lba_status_unmap_single.c:135",
}


def listed_tests() -> list[str]:
    out = subprocess.run([PROGRAM, "-l"], capture_output=True, text=True).stdout
    names = re.findall(r"^ALL\.(\w+\.[\w-]+)$", out, re.MULTILINE)
    return [name for name in names if name.split(".")[0] in FAMILIES]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    base = mariner.BUILD / "e2e" / "libiscsi"
    with mariner.Daemon(base) as running:
        running.start()
        yield running


@pytest.fixture
def fresh_url(daemon):
    volume = daemon.create("suite", "128M")
    yield daemon.url(volume["iqn"])
    daemon.ask("volume", "delete", "suite", "--force")


def test_a_lun_reset_is_answered(daemon, fresh_url):
    """With a write outstanding, as iSCSITMF.LUNResetSimpleAsync means it."""
    target = fresh_url.split("/")[3]
    command = struct.pack(">III", 4096, 1, 1) + bytes([0x2A, 0, 0, 0, 0, 0, 0, 0, 8])
    reset = iscsi_pdu.header(0x42, flags=0x85, tag=2, rest=struct.pack(">III", 0xFFFFFFFF, 2, 1))
    with iscsi_pdu.log_in((daemon.address, daemon.port), target) as connection:
        connection.sendall(iscsi_pdu.header(iscsi_pdu.SCSI_COMMAND, flags=0xA1, length=4096,
                                            rest=command) + bytes(4096) + reset)
        while True:
            bhs, _ = iscsi_pdu.receive_pdu(connection)
            if bhs[0] & 0x3F == 0x22:
                assert bhs[2] == 0, "function complete"
                return


def test_every_family_is_there():
    assert {name.split(".")[0] for name in listed_tests()} == set(FAMILIES)


@pytest.mark.parametrize("name", listed_tests())
def test_libiscsi(fresh_url, name):
    run = subprocess.run([PROGRAM, "-d", "-V", "-v", "-t", f"ALL.{name}", fresh_url],
                         capture_output=True, text=True, timeout=120)
    report = run.stdout + run.stderr
    # Between the two: what comes before and after is of the program, not of the test.
    body = report[report.find("Suite:"):report.find("Run Summary")].rpartition("Send PRIN/READ_KEYS")[0]
    summary = re.search(r"^\s*tests\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", report, re.MULTILINE)
    assert summary, f"no summary, exit {run.returncode}:\n{report}"
    if CLIENT_FAULTS.get(name, "\0") in report:
        pytest.skip(f"libiscsi's own fault: {CLIENT_FAULTS[name]}")
    total, ran, passed, failed = map(int, summary.groups())
    assert (total, ran, passed, failed) == (1, 1, 1, 0), "\n".join(report.splitlines()[-40:])
    skipped = re.search(r"\[SKIPPED\](.*)", body)
    if skipped:
        assert name in EXPECTED_SKIPS, f"{name}: {body}"
        pytest.skip(f"{EXPECTED_SKIPS[name]} (libiscsi: {skipped.group(1).strip()})")
