import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import mariner  # noqa: E402  (the path comes first)


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="everything, at full length")
    parser.addoption("--seed", type=int, default=None, help="repeat a run of random choices")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: not part of run.sh --quick")


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


@pytest.fixture
def folder(request):
    """A folder on a real disk (the log is written with O_DIRECT), kept only if the test fails."""
    base = mariner.BUILD / "e2e"
    base.mkdir(parents=True, exist_ok=True)
    path = pathlib.Path(tempfile.mkdtemp(prefix=request.node.name.split("[")[0] + "-", dir=base))
    failed_before = request.session.testsfailed
    yield path
    if request.session.testsfailed == failed_before:
        shutil.rmtree(path, ignore_errors=True)
    else:
        print(f"kept: {path}")


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
