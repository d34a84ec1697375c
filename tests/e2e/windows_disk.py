"""A disk as Windows brings it up: the commands of storport, disk.sys and classpnp, and what they need of the answers.

The commands and their lengths are those of Microsoft's published driver sources
(https://github.com/microsoft/Windows-driver-samples: storage/class/disk/src/disk.c, storage/class/classpnp/src/class.c,
utils.c, xferpkt.c and classp.h), of the SCSI Compliance Test's logs
(http://lists.openfabrics.org/pipermail/nvmewin/attachments/20130603/17bd6301/attachment.txt and
.../20130612/ae8873af/attachment.txt) and requirements
(https://learn.microsoft.com/windows-hardware/test/hlk/testref/d1f2fbbe-d5e4-439d-819a-dc100df0e9ba). That pages are
asked for only if page 00h lists them is in https://github.com/virtio-win/kvm-guest-drivers-windows/pull/537.
"""

import dataclasses
import struct

from libiscsi import CHECK_CONDITION, GOOD, Session

ILLEGAL_REQUEST = 5
INVALID_OPCODE = (ILLEGAL_REQUEST, 0x20, 0x00)
INVALID_FIELD = (ILLEGAL_REQUEST, 0x24, 0x00)
UNIT_ATTENTION = 6
VPD_BYTES = 0xFF  # VPD_MAX_BUFFER_SIZE
MODE_BYTES = 192  # MODE_DATA_SIZE
ALL_PAGES = 0x3F
# Service actions that Windows has names for, by opcode.
MAINTENANCE_IN, SERVICE_ACTION_IN16, TOKEN_OUT, TOKEN_IN = 0xA3, 0x9E, 0x83, 0x84
TOKEN_BYTES = 512


def inquiry(page: int | None = None, length: int = VPD_BYTES) -> bytes:
    """Of the unit, or of a page."""
    return struct.pack(">BBBHB", 0x12, page is not None, page or 0, length, 0)


def mode_sense6(page: int, control: int = 0, length: int = MODE_BYTES) -> bytes:
    return bytes([0x1A, 0, control << 6 | page, 0, length, 0])


def mode_sense10(page: int, length: int = MODE_BYTES) -> bytes:
    return struct.pack(">BBBBBBBHB", 0x5A, 0, page, 0, 0, 0, 0, length, 0)


def log_sense(page: int, length: int = 0xFFFF) -> bytes:
    """Cumulative values."""
    return struct.pack(">BBBBBHHB", 0x4D, 0, 0x40 | page, 0, 0, 0, length, 0)


def read10(lba: int, blocks: int) -> bytes:
    return struct.pack(">BBIBHB", 0x28, 0, lba, 0, blocks, 0)


def write10(lba: int, blocks: int, fua: bool = False) -> bytes:
    return struct.pack(">BBIBHB", 0x2A, 8 if fua else 0, lba, 0, blocks, 0)


def unmap_list(extents: list[tuple[int, int]]) -> bytes:
    descriptors = b"".join(struct.pack(">QI4x", lba, blocks) for lba, blocks in extents)
    return struct.pack(">HH4x", 6 + len(descriptors), len(descriptors)) + descriptors


class Refusal(Exception):
    """A command that had to be carried out was not."""


class Disk:
    """LUN 0 of a session."""

    def __init__(self, session: Session):
        self.session = session

    def ask(self, cdb: bytes, expected: int = 0, data: bytes = b"") -> bytes:
        """The data of a command that has to succeed."""
        answer = self.session.command(cdb, data, expected)
        if answer.status != GOOD:
            raise Refusal(f"{cdb.hex()}: status {answer.status:#04x}, sense {answer.sense}")
        return answer.data

    def refusal(self, cdb: bytes, expected: int = 0, data: bytes = b"") -> tuple[int, int, int]:
        """The sense of a command that must not succeed."""
        answer = self.session.command(cdb, data, expected)
        assert answer.status == CHECK_CONDITION, f"{cdb.hex()}: status {answer.status:#04x}"
        return answer.sense

    def attentions(self) -> list[tuple[int, int]]:
        """TEST UNIT READY until it is: the unit attentions (ASC, ASCQ) until then."""
        met = []
        while (answer := self.session.command(bytes(6))).status != GOOD:
            assert answer.sense[0] == UNIT_ATTENTION and len(met) < 8, answer
            met.append(answer.sense[1:])
        return met

    def page(self, page: int, length: int = VPD_BYTES) -> bytes:
        """A VPD page, whole."""
        data = self.ask(inquiry(page, length), length)
        assert data[0] == 0 and data[1] == page, data.hex()
        assert length < VPD_BYTES or len(data) == min(4 + int.from_bytes(data[2:4], "big"), length), "PAGE LENGTH"
        return data

    def pages(self) -> list[int]:
        return list(self.page(0x00)[4:])

    def supports(self, opcode: int, action: int | None = None) -> bool:
        """Whether the target says so (REPORT SUPPORTED OPERATION CODES)."""
        cdb = struct.pack(">BBBBHIBB", 0xA3, 0x0C, 1 if action is None else 2, opcode, action or 0, 64, 0, 0)
        answer = self.session.command(cdb, expected=64)
        if answer.status != GOOD:  # an opcode with service actions where none was named, or the other way round
            assert answer.sense == INVALID_FIELD, answer
            return False
        return answer.data[1] & 7 == 3

    def mode_page(self, page: int, control: int = 0) -> bytes | None:
        """The page alone, by MODE SENSE(6) without block descriptors; None: there is none."""
        cdb = bytearray(mode_sense6(page, control))
        cdb[1] = 0x08
        answer = self.session.command(bytes(cdb), expected=MODE_BYTES)
        if answer.status != GOOD:
            assert answer.sense in (INVALID_FIELD, (ILLEGAL_REQUEST, 0x39, 0x00)), answer
            return None
        assert answer.data[0] == len(answer.data) - 1, "MODE DATA LENGTH"
        assert answer.data[4] & 0x3F == page
        return answer.data[4:]

    def capacity(self) -> tuple[int, int, bytes]:
        """Blocks, bytes of one, and all of READ CAPACITY(16)'s answer."""
        data = self.ask(struct.pack(">BBQIBB", SERVICE_ACTION_IN16, 0x10, 0, 32, 0, 0), 32)
        last, block_bytes = struct.unpack_from(">QI", data)
        return last + 1, block_bytes, data

    def lba_status(self, lba: int, length: int = 8 + 16 * 64) -> list[tuple[int, int, int]]:
        """Extents from there on: LBA, blocks, 0 mapped or 1 deallocated."""
        data = self.ask(struct.pack(">BBQIBB", SERVICE_ACTION_IN16, 0x12, lba, length, 0, 0), length)
        assert int.from_bytes(data[:4], "big") >= len(data) - 4
        return [(at, blocks, status & 0x0F) for at, blocks, status in struct.iter_unpack(">QIB3x", data[8:])]


@dataclasses.dataclass(frozen=True)
class Designator:
    """One of page 83h (SPC-4 7.8.5.1)."""
    association: int
    type: int
    code_set: int
    value: bytes


def designators(page: bytes) -> list[Designator]:
    found = []
    at = 4
    while at < len(page):
        code_set, kind, _, length = page[at:at + 4]
        assert at + 4 + length <= len(page), "a designator goes beyond the page"
        found.append(Designator(kind >> 4 & 3, kind & 0x0F, code_set & 0x0F, page[at + 4:at + 4 + length]))
        at += 4 + length
    return found


class Offload:
    """Offloaded data transfer (https://learn.microsoft.com/windows-hardware/drivers/storage/offloaded-data-transfer;
    SBC-3, POPULATE TOKEN and WRITE USING TOKEN; SPC-4, RECEIVE ROD TOKEN INFORMATION): a token for some blocks,
    written elsewhere. Lists as classpnp's xferpkt.c sends them."""

    POPULATE, WRITE, INFORMATION = 0x10, 0x11, 0x07
    DONE = 0x01  # COPY OPERATION STATUS

    def __init__(self, disk: Disk):
        self._disk = disk
        self._list = 0

    def supported(self) -> bool:
        return self._disk.supports(TOKEN_OUT, self.POPULATE)

    def populate(self, lba: int, blocks: int) -> bytes:
        """A token for these blocks."""
        ranges = struct.pack(">QI4x", lba, blocks)
        self._send(self.POPULATE, struct.pack(">HBxIIHH", 14 + len(ranges), 0, 0, 0, 0, len(ranges)) + ranges)
        data = self._information(self.POPULATE, blocks)
        sense_bytes = data[13]
        at = 32 + sense_bytes
        assert int.from_bytes(data[at:at + 4], "big") == 2 + TOKEN_BYTES
        return data[at + 6:at + 6 + TOKEN_BYTES]

    def write(self, token: bytes, lba: int, blocks: int):
        """What the token stands for."""
        ranges = struct.pack(">QI4x", lba, blocks)
        self._send(self.WRITE, struct.pack(">HBxIQ", 534 + len(ranges), 0, 0, 0) + token +
                   struct.pack(">6xH", len(ranges)) + ranges)
        self._information(self.WRITE, blocks)

    def refusal(self, token: bytes, lba: int, blocks: int, ranges: int = 1) -> tuple[int, int, int]:
        """The sense of a write that has to fail."""
        table = struct.pack(">QI4x", lba, blocks) * ranges
        data = struct.pack(">HBxIQ", 534 + len(table), 0, 0, 0) + token + struct.pack(">6xH", len(table)) + table
        self._list += 1
        cdb = struct.pack(">BB4xIIBB", TOKEN_OUT, self.WRITE, self._list, len(data), 0, 0)
        return self._disk.refusal(cdb, data=data)

    def information(self) -> bytes:
        """Of the last one, whole."""
        return self._disk.ask(struct.pack(">BBI4xIBB", TOKEN_IN, self.INFORMATION, self._list, 1024, 0, 0), 1024)

    def _send(self, action: int, parameters: bytes):
        self._list += 1
        self._disk.ask(struct.pack(">BB4xIIBB", TOKEN_OUT, action, self._list, len(parameters), 0, 0), data=parameters)

    def _information(self, action: int, blocks: int) -> bytes:
        length = 32 + 252 + 4 + 2 + TOKEN_BYTES
        cdb = struct.pack(">BBI4xIBB", TOKEN_IN, self.INFORMATION, self._list, length, 0, 0)
        data = self._disk.ask(cdb, length)
        assert data[4] & 0x1F == action and data[5] & 0x7F == self.DONE, data[:32].hex()
        assert data[15] == 0xF1 and int.from_bytes(data[16:24], "big") == blocks, "TRANSFER COUNT, in blocks"
        return data


def protective_mbr(blocks: int, block_bytes: int) -> bytes:
    """LBA 0 of a GPT disk (UEFI 5.2.3)."""
    entry = struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff\xff\xff", 1, min(blocks - 1, 0xFFFFFFFF))
    return (bytes(446) + entry + bytes(48) + b"\x55\xaa").ljust(block_bytes, b"\0")

