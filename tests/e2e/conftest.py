import contextlib
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import lab as linux_lab  # noqa: E402  (the path comes first)
import mariner  # noqa: E402
import taking_turns  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="everything, at full length")
    parser.addoption("--write-expected", action="store_true",
                     help="write what sg3-utils print to tests/e2e/expected instead of comparing with it")
    parser.addoption("--share", default=None, metavar="NUMBER/COUNT:FOLDER",
                     help="this is one of COUNT runs that share the tests: each takes the next file that none has taken")
    parser.addoption("--seed", type=int, default=None, help="repeat a run of random choices")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: not part of run.sh --quick")
    config.addinivalue_line("markers", "long: only with --long")
    if share := config.getoption("--share"):
        turns = taking_turns.TakingTurns(share)
        config.pluginmanager.register(turns)
        mariner.share_ports(turns.number, turns.count)


def pytest_collection_modifyitems(config, items):
    if config.getoption("--long"):
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def long_run(request) -> bool:
    return request.config.getoption("--long")


@pytest.fixture
def seed(request) -> int:
    import random
    value = request.config.getoption("--seed")
    value = random.SystemRandom().randrange(1 << 32) if value is None else value
    print(f"seed {value}")
    return value


@contextlib.contextmanager
def own_folder(request):
    """A folder on a real disk (the log is written with O_DIRECT), kept only if the test fails."""
    base = mariner.BUILD / "e2e"
    base.mkdir(parents=True, exist_ok=True)
    name = pathlib.Path(request.node.name).stem.split("[")[0]
    path = pathlib.Path(tempfile.mkdtemp(prefix=name + "-", dir=base))
    failed_before = request.session.testsfailed
    yield path
    if request.session.testsfailed == failed_before:
        shutil.rmtree(path, ignore_errors=True)
    else:
        print(f"kept: {path}")


@pytest.fixture
def folder(request):
    with own_folder(request) as path:
        yield path


@pytest.fixture
def tmp_path(folder):
    """pytest's own would keep the logs of three whole runs."""
    return folder


@pytest.fixture(scope="module")
def module_folder(request):
    with own_folder(request) as path:
        yield path


@pytest.fixture
def daemon(folder):
    """A running daemon without volumes."""
    with mariner.Daemon(folder) as running:
        running.start()
        yield running


@pytest.fixture
def daemon_off(folder, long_run):
    """A daemon that is not started yet. Nothing is reclaimed: a long run needs a log that holds it."""
    log = {"max_size": "16G" if long_run else "8G"}
    with mariner.Daemon(folder, log=log, index=mariner.BUSY_INDEX) as daemon:
        yield daemon


@pytest.fixture(scope="session")
def lab_shelf(request):
    with linux_lab.Shelf("8G" if request.config.getoption("--long") else "2G") as shelf:
        yield shelf


@pytest.fixture
def lab(lab_shelf, request):
    """The full Linux guest beside a daemon, booted once for all tests; a test that fails leaves it to nobody."""
    failed_before = request.session.testsfailed
    yield lab_shelf.take()
    if request.session.testsfailed != failed_before:
        print(f"kept: {lab_shelf.throw_away()}")
    else:
        lab_shelf.give_back()
