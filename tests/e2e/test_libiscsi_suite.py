"""All of libiscsi's conformance tests against Mariner's disks: plain, with mutual CHAP, with both digests, with
4,096-byte blocks, with sockets that are lent to threads. Without --long all but the first run a part of them."""

import shutil
import struct

import pytest

import iscsi_pdu
import libiscsi_suite
import mariner
from libiscsi_expectations import FAULTS, FAULTS_OF, SKIPS, SKIPS_OF, expected
from libiscsi_suite import PASSED, VARIANTS, MarinerDisks, Runner, family_of, listed_tests

pytestmark = pytest.mark.slow

# What a variant may break: logins, large transfers in both directions, residuals, several sessions.
SELECTION = {"Inquiry", "Read10", "Write10", "iSCSIdatasn", "iSCSIResiduals", "MultipathIO", "ProutRegister"}


def pytest_generate_tests(metafunc):
    if "name" not in metafunc.fixturenames:
        return
    whole = metafunc.config.getoption("--long")
    cases = [(variant, name) for variant in VARIANTS for name in listed_tests()
             if whole or variant == "plain" or family_of(name) in SELECTION]
    metafunc.parametrize(("runner", "name"), cases, indirect=["runner"], scope="module",
                         ids=["-".join(case) for case in cases])


@pytest.fixture(scope="module")
def runner(request):
    """Runs the tests of one variant that were collected."""
    variant = VARIANTS[request.param]
    names = [item.callspec.params["name"] for item in request.session.items
             if getattr(item, "callspec", None) and item.callspec.params.get("runner") == request.param]
    folder = mariner.BUILD / "e2e" / f"libiscsi-{variant.name}"
    shutil.rmtree(folder, ignore_errors=True)
    with MarinerDisks(folder, variant) as disks, Runner(disks, names) as running:
        yield variant, running
    shutil.rmtree(folder, ignore_errors=True)


def test_libiscsi(runner, name):
    variant, running = runner
    outcome = running.outcome(name)
    why = expected(variant.name, outcome)
    assert why is not None, f"{outcome.verdict}: {outcome.why}\n" + "\n".join(outcome.report.splitlines()[-40:])
    if outcome.verdict != PASSED:
        pytest.skip(f"{why} (libiscsi {outcome.verdict}: {outcome.why})")


def test_what_is_expected_of_a_test_names_one_that_exists():
    names = set(listed_tests())
    for expectations in (SKIPS, FAULTS, *SKIPS_OF.values(), *FAULTS_OF.values()):
        assert set(expectations) <= names


def test_what_a_run_said_is_judged():
    def said(failed: int, body: str) -> str:
        return (f"Suite: A\n  Test: B ...{body}    Send PRIN/READ_KEYS\n    [SKIPPED] of the cleaning up\n\nRun Summary:\n"
                f"   suites 1 1 n/a 0 0\n    tests 1 1 {1 - failed} {failed} 0\n")

    def verdict(report: str) -> tuple[str, str]:
        outcome = libiscsi_suite.judge("A.B", report)
        return outcome.verdict, outcome.why

    assert verdict(said(0, "\n    [OK] all\npassed")) == ("passed", "")
    assert verdict(said(0, "\n    [SKIPPED] Not here.\npassed")) == ("skipped", "Not here.")
    assert verdict(said(1, "FAILED\n    1. a.c:7  - CU_FAIL(x)\n    2. b\n")) == ("failed", "a.c:7  - CU_FAIL(x)")
    broke_down = "    1. a.c:7  - CU_FAIL(x)    Send PRIN/READ_KEYS\nmalloc(): corrupted\n"
    assert verdict(broke_down) == ("failed", "a.c:7  - CU_FAIL(x)")
    assert verdict("Login Failed\nFailed to connect\n")[0] == "failed"
    assert verdict(said(0, "passed").replace("tests 1 1", "tests 0 0"))[0] == "failed", "no such test"


def test_both_digests_are_there(folder):
    name = "Read10.Simple"
    with MarinerDisks(folder, VARIANTS["digests"]) as disks:
        with disks.disk(name) as urls:
            assert libiscsi_suite.run_test(name, urls).verdict == PASSED
        headers, data = disks.digests()
    assert headers > 1000 and data > 500


def test_without_the_secret_nothing_runs(folder):
    name = "Read10.Simple"
    with MarinerDisks(folder, VARIANTS["chap"]) as disks:
        with disks.disk(name) as urls:
            wrong = [url.replace(libiscsi_suite.MUTUAL_SECRET, "another") for url in urls]
            assert libiscsi_suite.run_test(name, wrong).why.startswith("it did not run")
            assert libiscsi_suite.run_test(name, urls).verdict == PASSED


def test_a_lun_reset_is_answered(daemon):
    """With a write outstanding, as iSCSITMF.LUNResetSimpleAsync means it."""
    target = daemon.create("db1", "16M")["iqn"]
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
