"""Windows brings up a disk, trims it, copies within it, and finds it again on a second path.

What a standard or Microsoft's documents fix is compared byte by byte; what is not listed has to be refused."""

import struct
import zlib

import pytest

from libiscsi import GOOD, RESERVATION_CONFLICT
from windows_cluster import PREEMPT, RELEASE, RESERVE, Node
from windows_disk import (ALL_PAGES, INVALID_FIELD, INVALID_OPCODE, MODE_BYTES, TOKEN_BYTES, TOKEN_IN, Disk, Offload,
                          designators, inquiry, log_sense, mode_sense6, mode_sense10, protective_mbr, read10,
                          unmap_list, write10)
from windows_fixtures import (BLOCK, POWER_ON, REGISTRATIONS_PREEMPTED, disk, server, session,  # noqa: F401  (fixtures)
                              target)

pytestmark = pytest.mark.slow

RELATIVE_PORT, TARGET_PORT_GROUP = 4, 5


def test_the_first_commands(session):
    disk = Disk(session())
    assert disk.ask(struct.pack(">BBBBBBIBB", 0xA0, 0, 0, 0, 0, 0, 4096, 0, 0), 4096)[8:16] == bytes(8), "LUN 0"
    unit = disk.ask(inquiry(length=36), 36)
    assert len(unit) == 36 and unit[0] == 0 and unit[1] & 0x80 == 0, "a fixed disk"
    assert unit[2] >= 5, "SPC-3 at least"
    assert unit[3] & 0x0F == 2 and unit[4] >= 31
    assert unit[7] & 2, "commands are queued"
    assert unit[8:16].strip() and unit[16:32].strip() and all(0x20 <= c < 0x7F for c in unit[8:36])
    assert disk.attentions() == [POWER_ON], "INQUIRY and REPORT LUNS do not take it away"
    assert disk.refusal(inquiry(page=0xFF), 255) == INVALID_FIELD
    without_evpd = bytearray(inquiry(page=0x80))
    without_evpd[1] = 0
    assert disk.refusal(bytes(without_evpd), 255) == INVALID_FIELD
    sense = disk.ask(bytes([0x03, 0, 0, 0, 0xFC, 0]), 0xFC)
    assert sense[0] & 0x7F == 0x70 and sense[2] & 0x0F == 0, "REQUEST SENSE: nothing"


def test_pages_of_vital_product_data(disk):
    listed = disk.pages()
    assert listed == [0x00, 0x80, 0x83, 0x86, 0x87, 0x88, 0x8F, 0xB0, 0xB1, 0xB2]
    for page in range(0x80, 0x100):
        if page in listed:
            whole = disk.page(page)
            assert disk.page(page, 4) == whole[:4], "PAGE LENGTH does not depend on the allocation length"
        elif page in (0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8F, 0xB6, 0xFF):
            assert disk.refusal(inquiry(page), 255) == INVALID_FIELD
    assert disk.page(0x80)[4:].decode().strip().isprintable()
    blocks, _, capacity = disk.capacity()
    limits = disk.page(0xB0)
    assert len(limits) == 64
    unmap_blocks, unmap_descriptors, granularity, alignment = struct.unpack_from(">IIII", limits, 20)
    assert unmap_blocks > 0 and unmap_descriptors > 0, "DEVICE_LB_PROVISIONING_DESCRIPTOR"
    assert granularity > 0 and alignment == 0x80000000, "slabs begin at LBA 0"
    transfer_max = int.from_bytes(limits[8:12], "big")
    assert transfer_max == 0 or transfer_max * BLOCK >= 64 << 10, "Windows' requests of 64 KiB pass"
    assert disk.page(0xB1)[4:6] == b"\0\1", "no seek penalty"
    provisioning = disk.page(0xB2)
    assert provisioning[5] & 0x80 and provisioning[6] & 7 == 2, "thin, with UNMAP"
    assert bool(provisioning[5] & 0x04) == bool(capacity[14] & 0x40), "LBPRZ is said twice"
    if provisioning[4]:
        assert disk.supports(0x4D), "a threshold set size needs log page 0Ch"
    extended = disk.page(0x86)
    assert len(extended) == 64
    assert extended[5] & 0x07 == 0x07, "all task attributes but ACA: msdsm sends head of queue"
    port = next(d.value for d in designators(disk.page(0x83)) if (d.association, d.type) == (1, RELATIVE_PORT))
    assert [entry[:2] for entry in scsi_ports(disk.page(0x88))] == [port[2:4]]


def scsi_ports(page: bytes) -> list[bytes]:
    """The descriptors of page 88h (SPC-4 7.8.15): the relative port identifier, and the rest."""
    found = []
    at = 4
    while at < len(page):
        transport = int.from_bytes(page[at + 6:at + 8], "big")
        designation = at + 8 + transport
        end = designation + 4 + int.from_bytes(page[designation + 2:designation + 4], "big")
        assert end <= len(page)
        found.append(page[at + 2:end])
        at = end
    return found


def test_capacity(disk):
    blocks, block_bytes, data = disk.capacity()
    assert block_bytes == BLOCK and blocks * block_bytes == 64 << 20
    assert disk.ask(bytes([0x25]) + bytes(9), 8) == struct.pack(">II", blocks - 1, block_bytes)
    assert data[14] & 0x80, "LBPME"
    assert BLOCK << (data[13] & 0x0F) == 4096, "bytes of a physical sector, as fsutil shows them"


def test_mode_pages(disk):
    for cdb, header_bytes, parameter_at in ((mode_sense6(ALL_PAGES), 4, 2), (mode_sense10(ALL_PAGES), 8, 3)):
        everything = disk.ask(cdb, MODE_BYTES)
        assert everything[parameter_at] == 0x10, "DPO and FUA, not write-protected"
        length = everything[0] + 1 if header_bytes == 4 else int.from_bytes(everything[:2], "big") + 2
        assert len(everything) == min(length, MODE_BYTES)
        short = bytearray(cdb)
        short[-2] = 4
        assert disk.ask(bytes(short), 4) == everything[:4], "the lengths do not depend on the allocation length"
    caching = disk.mode_page(0x08)
    assert caching == disk.mode_page(0x08, control=1) == bytes([0x08, 0x12]) + bytes(18), "no write cache, for ever"
    # "Enable write caching on the device": MODE SELECT, with what MODE SENSE said and the other WCE.
    other = bytearray(caching)
    other[0] &= 0x3F
    other[2] ^= 0x04
    select = bytes([0x15, 0x10, 0, 0, 4 + len(other), 0])
    assert disk.refusal(select, data=bytes(4) + bytes(other)) == (5, 0x26, 0x00)
    assert disk.mode_page(0x08) == caching
    # Failure prediction, told when it is asked for (MRIE 6), once (SPC-4, informational exceptions control).
    assert disk.mode_page(0x1C) == bytes.fromhex("1c 0a 00 06 00 00 00 00 00 00 00 01")
    assert disk.mode_page(0x1E) is None, "no such page"


def log_page(code: int, parameters: list[tuple[int, int, bytes]]) -> bytes:
    """A page whose parameters (code, control byte, value) are not saved (SPC-4 7.3.2: DS)."""
    body = b"".join(struct.pack(">HBB", number, control, len(value)) + value for number, control, value in parameters)
    return struct.pack(">BBH", 0x80 | code, 0, len(body)) + body


def test_log_pages(disk):
    """Failure prediction (page 2Fh), and what else is listed, byte by byte; there is no page 0Ch ("GetFreeSpace" of a thin
    disk), since there are no thresholds."""
    # The control byte (SPC-4 7.3.2): TSD, no thresholds (TMC, ETC), and the FORMAT AND LINKING of counters and lists.
    bounded, unbounded, listed = 0x20, 0x22, 0x23
    zero = bytes(8)
    disk.ask(bytes([0x4C, 0x02, 0x40]) + bytes(7))  # LOG SELECT, PCR: all of them begin anew
    disk.attentions()
    errors = [(5, bounded, zero), (6, bounded, zero)]
    expected = {
        0x00: bytes.fromhex("00 00 00 08 00 02 03 05 06 10 19 2f"),
        0x02: log_page(0x02, errors),
        0x03: log_page(0x03, errors),
        0x05: log_page(0x05, errors),
        0x06: log_page(0x06, [(0, bounded, zero)]),
        0x10: log_page(0x10, [(number, listed, bytes(16)) for number in range(1, 21)]),
        0x2F: log_page(0x2F, [(0, listed, bytes.fromhex("00 00 ff 00"))]),  # no exception; no temperature
    }
    for page, data in expected.items():
        assert disk.ask(log_sense(page), 0xFFFF) == data, f"{page:02X}h"
        assert disk.ask(log_sense(page, 4), 4) == data[:4]
    performance = disk.ask(log_sense(0x19), 0xFFFF)
    assert performance[:8] == bytes.fromhex("99 00 00 5c 00 01 22 40") and performance[8:72] == bytes(64)
    assert performance[72:76] == bytes.fromhex("00 02 22 08"), "the idle time"
    assert performance[84:] == bytes.fromhex("00 03 23 08 00 00 00 06 00 00 00 01"), "in microseconds"
    for page in set(range(0x40)) - {*expected, 0x19}:
        assert disk.refusal(log_sense(page), 0xFFFF) == INVALID_FIELD, f"{page:02X}h is not listed"


def test_a_disk_is_initialised(session, disk):
    """A protective MBR and GPT headers, flushed; the other host sees them."""
    blocks, _, _ = disk.capacity()
    mbr = protective_mbr(blocks, BLOCK)
    table = bytes(128 * 128)
    header = struct.pack("<8sIIIIQQQQ16sQIII", b"EFI PART", 0x10000, 92, 0, 0, 1, blocks - 1, 34, blocks - 34,
                         bytes(range(16)), 2, 128, 128, zlib.crc32(table))
    header = header[:16] + struct.pack("<I", zlib.crc32(header)) + header[20:]
    assert disk.ask(read10(0, 1), BLOCK) == bytes(BLOCK), "nothing yet"
    disk.ask(write10(2, 32, fua=True), data=table)
    disk.ask(write10(1, 1, fua=True), data=header.ljust(BLOCK, b"\0"))
    disk.ask(write10(blocks - 33, 32, fua=True), data=table)
    disk.ask(write10(0, 1, fua=True), data=mbr)
    disk.ask(bytes([0x35]) + bytes(9))
    disk.ask(struct.pack(">BBIBHB", 0x2F, 0, 0, 0, 64, 0))  # IOCTL_DISK_VERIFY
    other = Disk(session("win2"))
    other.attentions()
    assert other.ask(read10(0, 2), 2 * BLOCK) == mbr + header.ljust(BLOCK, b"\0")
    assert disk.refusal(read10(blocks, 1), BLOCK) == (5, 0x21, 0x00), "beyond the end"


def test_retrim_and_slab_consolidation(disk):
    """UNMAP of several extents as defrag /L sends it, and which slabs are allocated, as defrag /K asks."""
    blocks, _, _ = disk.capacity()
    slab = int.from_bytes(disk.page(0xB0)[28:32], "big")
    assert disk.lba_status(0) == [(0, blocks, 1)], "deallocated"
    disk.ask(write10(0, 16 * slab), data=b"\xA5" * 16 * slab * BLOCK)
    trims = [(2 * slab, slab), (5 * slab, 3 * slab), (12 * slab, 4 * slab)]
    data = unmap_list(trims)
    disk.ask(struct.pack(">BBIBHB", 0x42, 0, 0, 0, len(data), 0), data=data)
    mapped = [(lba // slab, count // slab) for lba, count, state in disk.lba_status(0) if state == 0]
    assert mapped == [(0, 2), (3, 2), (8, 4)]
    assert disk.lba_status(5 * slab)[0] == (5 * slab, 3 * slab, 1), "from the middle of the disk"
    assert disk.ask(read10(2 * slab, 2 * slab), 2 * slab * BLOCK) == bytes(slab * BLOCK) + b"\xA5" * slab * BLOCK
    assert disk.refusal(struct.pack(">BBQIBB", 0x9E, 0x12, blocks, 24, 0, 0), 24) == (5, 0x21, 0x00)


RANGES_MAX, TOKEN_BLOCKS_MAX, TOKEN_BLOCKS_BEST = 256, (256 << 20) // BLOCK, (64 << 20) // BLOCK
TOKEN_UNKNOWN, INVALID_TOKEN_LENGTH, TOO_MANY_SEGMENTS = (5, 0x23, 0x04), (5, 0x23, 0x0A), (5, 0x26, 0x08)
# What stands for zeros without having been asked for (SBC-3, ROD type FFFF 0001h;
# https://learn.microsoft.com/windows-hardware/drivers/storage/offloaded-data-transfer: "well-known token").
ZERO_TOKEN = bytes.fromhex("ffff0001 0000 01f8") + bytes(504)
# ROD type "point in time copy - default", and the length of what follows (SPC-4 5.17).
TOKEN_HEADER = bytes.fromhex("00800000 0000 01f8")


def test_offloaded_data_transfer(disk):
    """ODX: the answers to a copy of Windows, byte by byte (SPC-4, RECEIVE ROD TOKEN INFORMATION)."""
    offload = Offload(disk)
    assert offload.supported()
    data = bytes(range(256)) * 64
    blocks = len(data) // BLOCK
    disk.ask(write10(1000, blocks), data=data)
    token = offload.populate(1000, blocks)
    assert token[:8] == TOKEN_HEADER and len(token) == TOKEN_BYTES
    answer = offload.information()
    # AVAILABLE DATA; POPULATE TOKEN, done; no operations, nothing to wait for; GOOD without sense; in blocks.
    assert answer == (struct.pack(">IBBHI", 546, 0x10, 0x01, 0, 0xFFFFFFFE) + bytes([0, 0, 0, 0xF1]) +
                      struct.pack(">QH6xIH", blocks, 0, 2 + TOKEN_BYTES, 0) + token)
    disk.ask(write10(1000, blocks), data=bytes(len(data)))
    offload.write(token, 3001, blocks)
    answer = offload.information()
    assert answer[:6] + answer[8:] == (struct.pack(">IBBI", 32, 0x11, 0x01, 0xFFFFFFFE) + bytes([0, 0, 0, 0xF1]) +
                                       struct.pack(">QH6xI", blocks, 0, 0))
    assert disk.ask(read10(3001, blocks), len(data)) == data, "as it was when the token was made"
    offload.write(ZERO_TOKEN, 3001, blocks)
    assert disk.ask(read10(3001, blocks), len(data)) == bytes(len(data))
    changed = token[:200] + bytes([token[200] ^ 1]) + token[201:]
    assert offload.refusal(changed, 3001, blocks) == TOKEN_UNKNOWN
    assert offload.refusal(b"\xA5" * TOKEN_BYTES, 3001, blocks) == INVALID_TOKEN_LENGTH
    assert offload.refusal(token, 3001, blocks, ranges=RANGES_MAX + 1) == TOO_MANY_SEGMENTS


def test_the_limits_of_offloading(disk):
    """Page 8Fh (SPC-4 7.8.17): which descriptors there are, and the one that classpnp reads (SBC-3, Block Device ROD
    Token Limits), byte by byte."""
    found = third_party_copy_descriptors(disk)
    assert list(found) == [0x0000, 0x0001, 0x0004, 0x0008, 0x000C, 0x0106, 0x0108, 0x8001], "in order, each once"
    assert found[0x0000] == struct.pack(">6xHIIQQ", RANGES_MAX, 600, 60, TOKEN_BLOCKS_MAX, TOKEN_BLOCKS_BEST)
    # Supported commands: each opcode with the number of its service actions and these.
    assert found[0x0001] == bytes.fromhex("0e 83 04 00 10 11 1c 84 06 00 03 04 05 07 08 00")
    for opcode, actions in ((0x83, "00 10 11 1c"), (0x84, "00 03 04 05 07 08")):
        for action in range(32):
            assert disk.supports(opcode, action) == (action in bytes.fromhex(actions)), f"{opcode:02x}/{action:02x}"


def third_party_copy_descriptors(disk: Disk) -> dict[int, bytes]:
    """The descriptors of page 8Fh by their types."""
    page = disk.ask(inquiry(0x8F, 4096), 4096)
    assert page[:2] == b"\0\x8f" and int.from_bytes(page[2:4], "big") == len(page) - 4
    found = {}
    at = 4
    while at < len(page):
        kind, length = struct.unpack_from(">HH", page, at)
        assert length % 4 == 0 and at + 4 + length <= len(page)
        found[kind] = page[at + 4:at + 4 + length]
        at += 4 + length
    return found


# -- several paths

def test_paths_are_recognised_as_of_one_disk(server, session, target):
    paths = [Disk(session(path=0)), Disk(session(path=1))]
    for path in paths:
        path.attentions()
    identities = [path.page(0x83) for path in paths]
    names = [[d for d in designators(identity) if d.association == 0] for identity in identities]
    assert names[0] == names[1]
    assert paths[0].page(0x80) == paths[1].page(0x80)
    # Clusters need one of these types
    # (https://learn.microsoft.com/previous-versions/windows/desktop/mscs/diskuniqueids).
    unique = [d for d in names[0] if d.type in (1, 2, 3, 8)]
    assert any(d.type in (2, 3, 8) for d in unique)
    assert all(d.value.isascii() for d in unique if d.code_set in (2, 3))
    naa = next(d.value for d in unique if d.type == 3)
    assert (naa[0] >> 4, len(naa)) in ((3, 8), (5, 8), (6, 16), (2, 8))
    view = server.expose("db1", "-0s")
    others = [Disk(session(iqn=view["iqn"])), Disk(session(iqn=server.create("db2", "16M")["iqn"]))]
    for other in others:
        other.attentions()
        assert not {d.value for d in designators(other.page(0x83)) if d.association == 0} & {d.value for d in unique}
        assert other.page(0x80) != paths[0].page(0x80)
        other.session.close()
    server.ask("view", "unexpose", view["name"])
    server.ask("volume", "delete", "db2", "--force")


def test_target_port_groups(session):
    """What msdsm asks of a disk whose INQUIRY says ALUA (SPC-4, REPORT TARGET PORT GROUPS): one group, active and
    optimized and never anything else, on either path; implicit only, so nobody can set it."""
    answers = []
    for path in range(2):
        disk = Disk(session(path=path))
        disk.attentions()
        assert disk.ask(inquiry(length=36), 36)[5] & 0x30 == 0x10, "TPGS: implicit"
        ports = [d for d in designators(disk.page(0x83)) if d.association == 1]
        assert [d.value for d in ports if d.type == RELATIVE_PORT] == [bytes.fromhex("00 00 00 01")]
        assert [d.value for d in ports if d.type == TARGET_PORT_GROUP] == [bytes.fromhex("00 00 00 01")]
        length = 4 + 32 * (8 + 32 * 4)
        # RETURN DATA LENGTH; active/optimized, AO_SUP, group 1, no status, 1 port; relative port 1.
        expected = bytes.fromhex("00 00 00 0c  00 01 00 01 00 00 00 01  00 00 00 01")
        assert disk.ask(struct.pack(">BB4xIBB", 0xA3, 0x0A, length, 0, 0), length) == expected
        assert disk.ask(struct.pack(">BB4xIBB", 0xA3, 0x0A, 4, 0, 0), 4) == expected[:4]
        extended = disk.ask(struct.pack(">BB4xIBB", 0xA3, 0x2A, length, 0, 0), length)
        assert extended == bytes.fromhex("00 00 00 10  10 00 00 00") + expected[4:], "no time of a transition"
        assert disk.refusal(struct.pack(">BB4xIBB", 0xA4, 0x0A, 8, 0, 0), data=bytes(8)) == INVALID_OPCODE
        answers.append((disk.ask(inquiry(length=96), 96), disk.page(0x83), disk.page(0x88), expected))
    assert answers[0] == answers[1], "one portal group is one target port"


def test_a_token_is_used_over_the_other_path(session):
    """Lists of copies are an I_T nexus's own (SPC-4 5.17), tokens are the disk's."""
    paths = [Disk(session(path=path)) for path in range(2)]
    for path in paths:
        path.attentions()
    data = b"over the other path.".ljust(BLOCK, b"\xA5") * 16
    paths[0].ask(write10(0, 16), data=data)
    first, second = Offload(paths[0]), Offload(paths[1])
    token = first.populate(0, 16)
    asked = struct.pack(">BBI4xIBB", TOKEN_IN, Offload.INFORMATION, 1, 1024, 0, 0)
    assert paths[0].ask(asked, 1024)[38:38 + TOKEN_BYTES] == token
    assert paths[1].refusal(asked, 1024) == INVALID_FIELD
    second.write(token, 2000, 16)
    assert paths[0].ask(read10(2000, 16), len(data)) == data


def test_a_path_that_arrives_is_registered(session):
    node = Node(1, [session("win1", 0), session("win1", 1)])
    other = Node(2, [session("win2")])
    assert node.register(path=0) == GOOD and node.out(RESERVE) == GOOD
    assert node.write(path=1) == RESERVATION_CONFLICT, "not registered yet"
    assert node.register(path=1) == GOOD
    assert node.keys() == [node.key, node.key]
    assert node.write(path=1) == GOOD and node.write(path=0) == GOOD
    assert node.out(RELEASE, path=1) == GOOD and node.reservation() == (node.key, 5), "the other path holds it"
    assert other.register() == GOOD
    assert other.out(PREEMPT, action_key=node.key) == GOOD
    assert other.keys() == [other.key], "both paths at once"
    assert [path.attentions() for path in node.paths] == [[REGISTRATIONS_PREEMPTED]] * 2
    assert node.write(path=0) == node.write(path=1) == RESERVATION_CONFLICT
