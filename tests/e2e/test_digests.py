"""Data digests: what they verify is what the log stores, so it must be right for segments of any length."""

import random
import socket
import struct

import pytest

import iscsi_pdu
import mariner
from mariner import sequence_of

KIB = 1024
SECTOR = 512
VOLUME = "db1"
KEYS = {"InitiatorName": "iqn.2026-11.org.mariner:raw", "SessionType": "Normal", "HeaderDigest": "None",
        "DataDigest": "CRC32C", "InitialR2T": "No", "ImmediateData": "Yes",
        "FirstBurstLength": str(256 * KIB), "MaxRecvDataSegmentLength": str(256 * KIB)}
SCSI_RESPONSE, DATA_IN, REJECT = 0x21, 0x25, 0x3F
DATA_DIGEST_ERROR = 0x02
GOOD = 0


def crc_table() -> list[int]:
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


CRC_TABLE = crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class Session:
    """An initiator with data digests, one command at a time."""

    def __init__(self, daemon: mariner.Daemon, target: str):
        self.connection = socket.create_connection((daemon.address, daemon.port), timeout=10)
        self.connection.sendall(iscsi_pdu.login(KEYS | {"TargetName": target}))
        bhs, text = iscsi_pdu.receive_pdu(self.connection)
        assert bhs[0] == 0x23 and bhs[36:38] == b"\0\0" and b"DataDigest=CRC32C" in text, (bhs, text)
        self.sn = 1
        while self.command(0x00, bytes(9), b"", [])[0] != GOOD:  # TEST UNIT READY: unit attentions
            assert self.sn < 10

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def receive(self) -> tuple[bytes, bytes]:
        bhs, data = iscsi_pdu.receive_pdu(self.connection)
        if data:
            assert iscsi_pdu.receive_exactly(self.connection, 4) == struct.pack("<I", crc32c(iscsi_pdu.pad(data)))
        return bhs, data

    def command(self, operation: int, rest_of_cdb: bytes, data: bytes, segments: list[int], *,
                flags: int = 0, expected: int = 0, damage: int = 0) -> tuple[int, bytes]:
        """Sends a command and its data in these segments, and returns status and data-in. `damage`: of the last digest."""
        self.sn += 1
        wire, offset = b"", 0
        for i, length in enumerate(segments or [0]):
            last = 0x80 if i + 1 >= len(segments) else 0
            segment = data[offset:offset + length]
            if i == 0:
                numbers = struct.pack(">III", expected or len(data), self.sn - 1, 0)
                wire += iscsi_pdu.header(iscsi_pdu.SCSI_COMMAND, flags=last | flags, length=length, lun=mariner.LUN << 48,
                                         tag=self.sn, rest=numbers + bytes([operation]) + rest_of_cdb)
            else:
                numbers = struct.pack(">IIIIII", 0xFFFFFFFF, 0, 0, 0, i - 1, offset)
                wire += iscsi_pdu.header(iscsi_pdu.DATA_OUT, flags=last, length=length, lun=mariner.LUN << 48,
                                         tag=self.sn, rest=numbers)
            if length:
                padded = iscsi_pdu.pad(segment)
                wire += padded + struct.pack("<I", crc32c(padded) ^ (damage if last else 0))
            offset += length
        self.connection.sendall(wire)
        data_in = b""
        while True:
            bhs, segment = self.receive()
            if bhs[0] == REJECT:
                return -bhs[2], segment
            if bhs[0] == DATA_IN:
                data_in += segment
                if bhs[1] & 1:
                    return bhs[3], data_in
            if bhs[0] == SCSI_RESPONSE:
                return bhs[3], data_in

    @staticmethod
    def extent(at: int, length: int) -> bytes:
        return struct.pack(">BIBHB", 0, at // SECTOR, 0, length // SECTOR, 0)

    def write(self, at: int, data: bytes, segments: list[int], damage: int = 0) -> int:
        return self.command(0x2A, self.extent(at, len(data)), data, segments, flags=0x20, damage=damage)[0]

    def read(self, at: int, length: int) -> bytes:
        status, data = self.command(0x28, self.extent(at, length), b"", [], flags=0x40, expected=length)
        assert status == GOOD
        return data


# Where, and the lengths of its segments.
WRITES = [
    (0, [4 * KIB]),
    (1024 * KIB, [256 * KIB]),
    (2048 * KIB, [64 * KIB, 64 * KIB, 128 * KIB]),
    (3072 * KIB, [1 * KIB, 3 * KIB]),
    (4096 * KIB, [10 * KIB, 6 * KIB]),
    (5120 * KIB, [1000, 5000, 20000, 39536]),
    (6144 * KIB + SECTOR, [16 * KIB]),
    (7168 * KIB + 4 * KIB, [8 * KIB - SECTOR]),
    (8192 * KIB + 3 * SECTOR, [777, 2 * KIB - 777]),
    (1024 * KIB + 8 * KIB, [4 * KIB]),
    (1024 * KIB + 20 * KIB, [SECTOR]),
]


def test_every_write_reads_back_from_memory_and_from_the_log(daemon, seed):
    chance = random.Random(seed)
    target = daemon.create(VOLUME, "64M")["iqn"]
    model = bytearray(16 << 20)
    with Session(daemon, target) as session:
        for at, segments in WRITES:
            data = chance.randbytes(sum(segments))
            assert session.write(at, data, segments) == GOOD
            model[at:at + len(data)] = data
            assert session.read(at, len(data)) == data
    newest = sequence_of(daemon.ask("volume", "show", VOLUME)["newest"])
    view = daemon.expose(VOLUME, f"#{newest}")["iqn"]
    with Session(daemon, target) as current, Session(daemon, view) as history:
        for at, segments in WRITES:
            first, length = at // 4096 * 4096, (sum(segments) + 8191) // 4096 * 4096
            assert current.read(first, length) == model[first:first + length]
            assert history.read(first, length) == model[first:first + length]


@pytest.mark.parametrize("segments", [[4 * KIB], [1000, 3096], [16 * KIB, 240 * KIB]])
def test_a_wrong_digest_ends_the_connection_and_writes_nothing(daemon, segments):
    target = daemon.create(VOLUME, "64M")["iqn"]
    size = sum(segments)
    with Session(daemon, target) as session:
        assert session.write(0, b"\x5a" * size, segments) == GOOD
        assert session.write(0, b"\x77" * size, segments, damage=1 << 7) == -DATA_DIGEST_ERROR
        with pytest.raises(ConnectionError):
            session.receive()
    with Session(daemon, target) as session:
        assert session.read(0, size) == b"\x5a" * size
