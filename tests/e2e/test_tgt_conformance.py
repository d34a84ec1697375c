"""libiscsi's conformance tests against a stock tgtd, with its own store of files and with bs_mariner.so: what passes with the
one passes with the other. Without --long a part of them."""

import contextlib
import shutil

import pytest

import libiscsi_suite
import mariner
import tgt_front  # also shows Python where the benchmarks are
import conformance_tgt
from libiscsi_expectations import WSNZ
from libiscsi_suite import ADDRESSES, OF_REMOVABLE_MEDIA, PASSED, VARIANTS, Runner, family_of, listed_tests

pytestmark = [pytest.mark.slow,
              pytest.mark.skipif(shutil.which("tgtd") is None or not tgt_front.MODULE.exists(),
                                 reason="built or installed without tgt")]

SELECTION = {"CompareAndWrite", "GetLBAStatus", "iSCSIResiduals", "MultipathIO", "OrWrite", "Prefetch10", "Read10", "Read16",
             "ReadCapacity16", "Reserve6", "Unmap", "Verify10", "Verify16", "Write10", "Write16", "WriteSame16", "WriteVerify10"}
EXCEPTIONS = {"WriteSame10.ZeroBlocks": WSNZ, "WriteSame16.ZeroBlocks": WSNZ}
# tgt refuses COMPARE AND WRITE, because its own stores cannot do it at once.
ONLY_OF_MARINER = {"CompareAndWrite.Simple", "CompareAndWrite.Miscompare", "MultipathIO.CompareAndWrite"}


class FrontDisks:
    """A volume of marinerd's behind tgtd for each test."""

    def __init__(self, folder):
        self._folder = folder
        self._left = contextlib.ExitStack()

    def __enter__(self):
        self._daemon = self._left.enter_context(mariner.Daemon(self._folder / "marinerd")).start()
        self._front = self._left.enter_context(
            tgt_front.TgtFront(self._folder / "front", self._daemon, more_addresses=ADDRESSES[1:]))
        return self

    def __exit__(self, *_):
        self._left.close()

    @contextlib.contextmanager
    def disk(self, name: str):
        volume = name.lower().replace(".", "-").replace("_", "-")
        self._daemon.ask("volume", "create", volume, "--size", libiscsi_suite.DISK_SIZE, "--window", libiscsi_suite.WINDOW)
        parameters = (conformance_tgt.REMOVABLE,) if family_of(name) in OF_REMOVABLE_MEDIA else ()
        url = self._front.disk(volume, thin=True, parameters=parameters)
        yield [url.replace(ADDRESSES[0], address, 1) for address in ADDRESSES]


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        whole = metafunc.config.getoption("--long")
        metafunc.parametrize("name", [name for name in listed_tests() if whole or family_of(name) in SELECTION])


@pytest.fixture(scope="module")
def runners(request, module_folder):
    """Of files and of volumes, for what was collected."""
    names = [item.callspec.params["name"] for item in request.session.items
             if item.module is request.module and getattr(item, "callspec", None)]
    files = module_folder / "files"
    files.mkdir()
    with conformance_tgt.TgtDisks(files, VARIANTS["plain"]) as of_files, FrontDisks(module_folder) as of_volumes, \
            Runner(of_files, names, 2) as first, Runner(of_volumes, names, 2) as second:
        yield first, second


def test_conformance(runners, name):
    with_files, with_volumes = (runner.outcome(name) for runner in runners)
    if with_volumes.verdict == PASSED:
        return
    what = f"with a volume {with_volumes.verdict}: {with_volumes.why}"
    assert with_files.verdict != PASSED or name in EXCEPTIONS, f"{what}\n{with_volumes.report[-3000:]}"
    assert name not in ONLY_OF_MARINER, f"{what}\n{with_volumes.report[-3000:]}"
    pytest.skip(EXCEPTIONS.get(name, f"with a file {with_files.verdict}, too ({with_files.why}); {what}"))


def test_what_is_excepted_exists():
    assert set(EXCEPTIONS) | ONLY_OF_MARINER <= set(listed_tests())
    assert SELECTION <= {family_of(name) for name in listed_tests()}
