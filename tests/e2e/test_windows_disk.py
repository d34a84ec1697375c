"""Windows brings up a disk, trims it, copies within it, and finds it again on a second path.

Where Mariner may learn more (LOG SENSE, mode pages, ALUA, offloaded data transfer) the checks hold for what it says
that it supports: what it lists has to be right, what it does not list has to be refused."""

import struct
import zlib

import pytest

from libiscsi import GOOD, RESERVATION_CONFLICT
from windows_cluster import PREEMPT, RELEASE, RESERVE, Node
from windows_disk import (ALL_PAGES, INVALID_FIELD, INVALID_OPCODE, MODE_BYTES, TOKEN_OUT, Disk, Offload, designators,
                          inquiry, log_sense, mode_sense6, mode_sense10, protective_mbr, read10, unmap_list, write10)
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
    assert listed == sorted(listed) and {0x00, 0x80, 0x83, 0xB0, 0xB1, 0xB2} <= set(listed)
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
    if 0x86 in listed:
        extended = disk.page(0x86)
        assert len(extended) == 64
        # Ordered tasks are not offered: attributes do not reach the device.
        assert extended[5] & 0x07 == 0x05, "head of queue and simple tasks: msdsm sends head of queue"
    if 0x88 in listed:
        port = next(d.value for d in designators(disk.page(0x83)) if (d.association, d.type) == (1, RELATIVE_PORT))
        assert port[2:4] in [entry[:2] for entry in scsi_ports(disk.page(0x88))]


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
    assert caching[1] == 0x12 and len(caching) == 20
    changeable = disk.mode_page(0x08, control=1)
    # "Enable write caching on the device": MODE SELECT, with what MODE SENSE said and the other WCE.
    other = bytearray(caching)
    other[0] &= 0x3F
    other[2] ^= 0x04
    select = bytes([0x15, 0x10, 0, 0, 4 + len(other), 0])
    if changeable[2] & 0x04:
        disk.ask(select, data=bytes(4) + bytes(other))
        assert disk.mode_page(0x08)[2] == other[2]
        disk.ask(select, data=bytes(4) + bytes([caching[0] & 0x3F]) + caching[1:])
    else:
        assert disk.refusal(select, data=bytes(4) + bytes(other)) == (5, 0x26, 0x00)
    assert disk.mode_page(0x08) == caching
    exceptions = disk.mode_page(0x1C)  # failure prediction: there may be none
    assert exceptions is None or exceptions[1] == 0x0A and len(exceptions) == 12
    assert disk.mode_page(0x1E) is None, "no such page"


def test_log_pages(disk):
    """Failure prediction, and "GetFreeSpace" of a thin disk; what page 00h lists is there."""
    if not disk.supports(0x4D):
        assert disk.refusal(log_sense(0x00), 0xFFFF) == INVALID_OPCODE
        return
    listed = disk.ask(log_sense(0x00), 0xFFFF)
    assert listed[0] & 0x3F == 0 and int.from_bytes(listed[2:4], "big") == len(listed) - 4
    for page in listed[4:]:
        data = disk.ask(log_sense(page), 0xFFFF)
        assert data[0] & 0x3F == page and int.from_bytes(data[2:4], "big") == len(data) - 4
        assert disk.ask(log_sense(page, 4), 4) == data[:4]
        if page != 0x00:
            check_log_parameters(data)
    if 0x0C not in listed[4:]:
        assert disk.refusal(log_sense(0x0C), 0xFFFF) == INVALID_FIELD


def check_log_parameters(page: bytes):
    at = 4
    while at < len(page):
        code, length = int.from_bytes(page[at:at + 2], "big"), page[at + 3]
        assert at + 4 + length <= len(page), "a parameter goes beyond the page"
        if page[0] & 0x3F == 0x0C and code in (1, 2):
            assert length == 8, "resource counts have eight bytes (SBC-3 6.4.5)"
        at += 4 + length


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


def test_offloaded_data_transfer(disk):
    """ODX, if it is said to be there."""
    offload = Offload(disk)
    limits = [kind for kind in third_party_copy_descriptors(disk) if kind == 0x0000]
    if not offload.supported():
        assert not limits, "without tokens no limits of them"
        assert disk.refusal(struct.pack(">BB4xIIBB", TOKEN_OUT, Offload.POPULATE, 1, 32, 0, 0),
                            data=bytes(32))[0] == 5
        return
    assert limits, "classpnp needs the Block Device ROD Token Limits descriptor"
    data = bytes(range(256)) * 64
    blocks = len(data) // BLOCK
    disk.ask(write10(1000, blocks), data=data)
    token = offload.populate(1000, blocks)
    disk.ask(write10(1000, blocks), data=bytes(len(data)))
    offload.write(token, 3001, blocks)
    assert disk.ask(read10(3001, blocks), len(data)) == data, "as it was when the token was made"


def third_party_copy_descriptors(disk: Disk) -> list[int]:
    """The types of the descriptors of page 8Fh (SPC-4 7.8.17)."""
    if 0x8F not in disk.pages():
        return []
    page = disk.ask(inquiry(0x8F, 4096), 4096)
    found = []
    at = 4
    while at < len(page):
        kind, length = struct.unpack_from(">HH", page, at)
        assert length % 4 == 0 and at + 4 + length <= len(page)
        found.append(kind)
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


def test_target_port_groups(session, disk):
    """Only if INQUIRY says ALUA msdsm asks, and then it takes no other answer than this."""
    alua = disk.ask(inquiry(length=36), 36)[5] >> 4 & 3
    length = 4 + 32 * (8 + 32 * 4)
    report = struct.pack(">BB4xIBB", 0xA3, 0x0A, length, 0, 0)
    assert bool(alua) == disk.supports(0xA3, 0x0A)
    ports = [d for d in designators(disk.page(0x83)) if d.association == 1]
    relative = next(int.from_bytes(d.value, "big") for d in ports if d.type == RELATIVE_PORT)
    if not alua:
        assert disk.refusal(report, length) in (INVALID_OPCODE, INVALID_FIELD)
        assert not [d for d in ports if d.type == TARGET_PORT_GROUP]
        return
    group = next(int.from_bytes(d.value, "big") for d in ports if d.type == TARGET_PORT_GROUP)
    data = disk.ask(report, length)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    groups = {}
    at = 4
    while at < len(data):
        count = data[at + 7]
        groups[int.from_bytes(data[at + 2:at + 4], "big")] = (
            data[at] & 0x0F, [port for port, in struct.iter_unpack(">2xH", data[at + 8:at + 8 + 4 * count])])
        at += 8 + 4 * count
    state, members = groups[group]
    assert state in (0, 1), "active: its commands are carried out"
    assert relative in members


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
