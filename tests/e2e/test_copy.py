"""EXTENDED COPY between the LUNs of two targets: nothing of it goes over the network."""

import struct

import pytest

import iscsi_pdu
import mariner

GOOD, CHECK_CONDITION = 0x00, 0x02
BLOCK = 512
CONFIG = """
[auth.alice]
secret_file = "{folder}/alice"
[[volume]]
name = "safe"
size = "16M"
auth = "alice"
"""


class Host:
    def __init__(self, daemon, target: str, initiator: str = "iqn.2026-11.org.mariner:raw"):
        self.connection = iscsi_pdu.log_in((daemon.address, daemon.port), target, initiator=initiator)
        self.sn = 0
        while self.command(bytes(6))[0] != GOOD:  # unit attentions
            assert self.sn < 10

    def command(self, cdb: bytes, data: bytes = b"", expected: int = 0) -> tuple[int, bytes]:
        self.sn += 1
        return iscsi_pdu.command(self.connection, cdb, data, sn=self.sn, expected=expected)

    def naa(self) -> bytes:
        """The first designator of the device identification page."""
        status, page = self.command(bytes([0x12, 1, 0x83, 0, 0xFF, 0]), expected=255)
        assert status == GOOD and page[5] & 0x0F == 3
        return page[8:8 + page[7]]

    def write(self, lba: int, data: bytes):
        assert self.command(struct.pack(">BBIBHB", 0x2A, 0, lba, 0, len(data) // BLOCK, 0), data)[0] == GOOD

    def read(self, lba: int, blocks: int) -> bytes:
        status, data = self.command(struct.pack(">BBIBHB", 0x28, 0, lba, 0, blocks, 0), expected=blocks * BLOCK)
        assert status == GOOD
        return data

    def copy(self, source: bytes, destination: bytes, from_lba: int, to_lba: int, blocks: int) -> int:
        targets = b"".join(struct.pack(">BBHBBBB20sI", 0xE4, 0, 0, 1, 3, 0, len(naa), naa, BLOCK)
                           for naa in (source, destination))
        segment = struct.pack(">BBHHHHHQQ", 2, 0, 24, 0, 1, 0, blocks, from_lba, to_lba)
        data = struct.pack(">BBHIII", 1, 0, len(targets), 0, len(segment), 0) + targets + segment
        return self.command(struct.pack(">BB8xI2x", 0x83, 0, len(data)), data)[0]


@pytest.fixture
def daemon(tmp_path):
    (tmp_path / "alice").write_text("alice's own secret")
    (tmp_path / "alice").chmod(0o600)
    with mariner.Daemon(tmp_path / "d", more_config=CONFIG.format(folder=tmp_path)) as running:
        yield running.start()


def test_from_one_target_to_another(daemon):
    here = Host(daemon, daemon.create("a", "16M")["iqn"])
    there = Host(daemon, daemon.create("b", "16M")["iqn"])
    data = bytes(i * 7 % 256 for i in range(64 * BLOCK))
    here.write(8, data)
    assert there.copy(here.naa(), there.naa(), 8, 1000, 64) == GOOD
    assert there.read(1000, 64) == data
    assert here.copy(there.naa(), here.naa(), 1001, 0, 2) == GOOD, "either may be asked"
    assert here.read(0, 2) == data[BLOCK:3 * BLOCK]
    # The past of the destination is kept as of any write.
    view = daemon.expose("b", "#1")
    past = Host(daemon, view["iqn"])
    assert past.read(1000, 64) == data
    assert here.copy(past.naa(), here.naa(), 1000, 500, 64) == GOOD, "from a view, too"
    assert here.read(500, 64) == data


def test_a_copy_reaches_no_further_than_its_initiator(daemon):
    here = Host(daemon, daemon.create("a", "16M")["iqn"])
    naa = here.naa()
    protected = daemon.ask("volume", "show", "safe")
    designator = bytes.fromhex(protected["naa"].removeprefix("naa.")) if "naa" in protected else None
    if designator is None:
        pytest.fail(f"the volume's identity is not told: {protected}")
    assert here.copy(designator, naa, 0, 0, 8) == CHECK_CONDITION
    assert here.copy(naa, designator, 0, 0, 8) == CHECK_CONDITION
    assert here.copy(naa, naa, 0, 8, 8) == GOOD
