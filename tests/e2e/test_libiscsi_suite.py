"""libiscsi's conformance tests of the families that Mariner answers, each in a process of its own on a fresh volume."""

import re
import subprocess

import pytest

import mariner

PROGRAM = "iscsi-test-cu"
FAMILIES = """
iSCSIcmdsn iSCSIdatasn iSCSIResiduals iSCSITMF TestUnitReady Inquiry Mandatory ReadCapacity10
ReadCapacity16 Read6 Read10 Read12 Read16 Write10 Write12 Write16 WriteSame10 WriteSame16 Unmap
Verify10 Verify16 ModeSense6 ReportSupportedOpcodes StartStopUnit PreventAllow
""".split()

# What libiscsi leaves out by itself, and why that is right for this disk. Any other skip fails.
EXPECTED_SKIPS = {
    "ModeSense6.Control-SWP": "software write protection is not changeable",
    "PreventAllow.Eject": "the medium is not removable",
    "StartStopUnit.Simple": "the medium is not removable",
    "StartStopUnit.PwrCnd": "the medium is not removable",
    "StartStopUnit.NoLoej": "the medium is not removable",
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


def test_every_family_is_there():
    assert {name.split(".")[0] for name in listed_tests()} == set(FAMILIES)


@pytest.mark.parametrize("name", listed_tests())
def test_libiscsi(fresh_url, name):
    run = subprocess.run([PROGRAM, "-d", "-V", "-n", "-t", f"ALL.{name}", fresh_url],
                         capture_output=True, text=True, timeout=120)
    report = run.stdout + run.stderr
    summary = re.search(r"^\s*tests\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", report, re.MULTILINE)
    assert summary, f"no summary, exit {run.returncode}:\n{report}"
    total, ran, passed, failed = map(int, summary.groups())
    assert (total, ran, passed, failed) == (1, 1, 1, 0), report
    body = report[report.find("Suite:"):report.find("Run Summary")]
    skipped = re.search(r"\[SKIPPED\](.*)", body)
    if skipped:
        assert name in EXPECTED_SKIPS, report
        pytest.skip(f"{EXPECTED_SKIPS[name]} (libiscsi: {skipped.group(1).strip()})")
