"""A server with a volume, and hosts that are logged in as Windows is: fixtures for the tests of Windows' sessions."""

import contextlib

import pytest

import mariner
from libiscsi import Session
from windows_disk import Disk
from windows_session import ENTERPRISE, INITIATOR

ADDRESSES = ("127.0.0.1", "127.0.0.2")  # of the two paths
BLOCK = 512
SIZE = "64M"
SECRET, MUTUAL = "winsecret12345", "targetsecret12"  # 12 to 16 bytes
# Unit attentions.
POWER_ON, RESET = (0x29, 0x00), (0x29, 0x03)
RESERVATIONS_PREEMPTED, REGISTRATIONS_PREEMPTED = (0x2A, 0x03), (0x2A, 0x05)
CHAP_CONFIG = """
[auth.win1]
user = "{user}"
secret_file = "{folder}/secret"
mutual_user = "mariner"
mutual_secret_file = "{folder}/mutual"
[[volume]]
name = "safe"
size = "16M"
auth = "win1"
"""


@pytest.fixture(scope="module")
def server(module_folder):
    """Its volume `safe` needs CHAP."""
    folder = module_folder
    for name, secret in (("secret", SECRET), ("mutual", MUTUAL)):
        (folder / name).write_text(secret)
        (folder / name).chmod(0o600)
    config = CHAP_CONFIG.format(user=INITIATOR.format("win1"), folder=folder)
    with mariner.Daemon(folder / "d", more_config=config, more_addresses=ADDRESSES[1:]) as running:
        yield running.start()


@pytest.fixture
def target(server):
    """The name of a fresh volume's target."""
    yield server.create("db1", SIZE)["iqn"]
    server.ask("volume", "delete", "db1", "--force")


@pytest.fixture
def session(server, target):
    """Makes sessions of hosts over a path; they are closed at the end."""
    with contextlib.ExitStack() as stack:
        def make(host: str = "win1", path: int = 0, iqn: str = target) -> Session:
            return stack.enter_context(Session(f"{ADDRESSES[path]}:{server.port}", iqn, INITIATOR.format(host),
                                               ENTERPRISE, path))
        yield make


@pytest.fixture
def disk(session) -> Disk:
    """A disk without unit attentions."""
    ready = Disk(session())
    ready.attentions()
    return ready
