"""An initiator whose session has several connections, and which damages data on the way and asks for it again (RFC 7143,
error recovery level 1). One batch of commands at a time, sent out of order."""

import dataclasses
import random
import select
import socket
import struct

import iscsi_pdu
import mariner
from test_digests import crc32c

SECTOR = 512
DATA_IN, RESPONSE, R2T, REJECT, NOP_IN = 0x25, 0x21, 0x31, 0x3F, 0x20
SNACK = 0x10
KEYS = {"InitiatorName": "iqn.2026-11.org.mariner:multi", "SessionType": "Normal", "HeaderDigest": "None",
        "DataDigest": "CRC32C", "InitialR2T": "Yes", "ImmediateData": "Yes", "FirstBurstLength": "8192",
        "MaxBurstLength": "32768"}
SEGMENT = 4096


@dataclasses.dataclass
class Command:
    at: int
    length: int
    data: bytes | None = None  # of a write
    tag: int = 0
    sn: int = 0
    link: int = 0
    received: dict = dataclasses.field(default_factory=dict)  # by offset
    answered: tuple[int, int] | None = None  # its status and StatSN
    status: int | None = None  # once all of its data is there, too

    def whole(self) -> bool:
        return self.data is not None or sum(map(len, self.received.values())) == self.length


class MultiSession:
    def __init__(self, daemon: mariner.Daemon, target: str, connections: int, chance: random.Random,
                 damage: float = 0.0):
        self._address = (daemon.address, daemon.port)
        self._keys = KEYS | {"TargetName": target}
        self._chance, self._damage = chance, damage
        self.links: list[socket.socket] = []
        self._stat_sn: list[int] = []  # expected next
        self._had: list[set[int]] = []  # of those after it
        self.tsih, self.sn, self.tag = 0, 1, 0
        self.repeated = 0  # PDUs that came again because we asked
        self.rejected = 0  # of ours
        for _ in range(connections):
            self.join(len(self.links))
        for _ in range(3):
            if self.run([Command(0, 0)])[0].status == 0:  # TEST UNIT READY: unit attentions
                break

    def join(self, cid: int) -> int:
        """Another connection; returns the login's status."""
        link = socket.create_connection(self._address, timeout=20)
        keys = self._keys if self.tsih else self._keys | {"MaxConnections": "4", "ErrorRecoveryLevel": "1"}
        bhs = bytearray(iscsi_pdu.login(keys, cmd_sn=self.sn))
        bhs[14:16] = struct.pack(">H", self.tsih)
        bhs[20:22] = struct.pack(">H", cid)
        link.sendall(bhs)
        answer, text = iscsi_pdu.receive_pdu(link)
        status = int.from_bytes(answer[36:38], "big")
        if status != 0:
            link.close()
            return status
        if not self.tsih:
            self.tsih = int.from_bytes(answer[14:16], "big")
            assert b"ErrorRecoveryLevel=1" in text and b"MaxConnections=4" in text, text
        self.links.append(link)
        self._stat_sn.append(int.from_bytes(answer[24:28], "big") + 1)
        self._had.append(set())
        return 0

    def leave(self, number: int):
        """Forgets a connection that the target has closed."""
        for kept in (self.links, self._stat_sn, self._had):
            del kept[number]

    def close(self):
        for link in self.links:
            link.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def run(self, commands: list[Command]) -> list[Command]:
        """Sends them all, in any order and on any connection, and waits for all answers."""
        for command in commands:
            self.tag += 1
            command.tag, command.sn = self.tag, self.sn
            command.link = self._chance.randrange(len(self.links))
            self.sn += 1
        shuffled = self._chance.sample(commands, len(commands))
        for command in shuffled:
            self._send_command(command, self._chance.random() < self._damage)
        waiting = {command.tag: command for command in commands}
        while any(command.status is None for command in commands):
            ready, _, _ = select.select(self.links, [], [], 20)
            assert ready, f"no answer for {[c for c in commands if c.status is None]}"
            for link in ready:
                self._receive(self.links.index(link), waiting)
        return commands

    def _send(self, number: int, bhs: bytes, data: bytes, damaged: bool):
        padded = iscsi_pdu.pad(data)
        digest = struct.pack("<I", crc32c(padded) ^ (1 if damaged else 0)) if data else b""
        self.links[number].sendall(bhs + padded + digest)

    def _send_command(self, command: Command, damaged: bool):
        immediate = (command.data or b"")[:SEGMENT]
        cdb = bytes(6)
        if command.length:
            cdb = struct.pack(">BBIBHB", 0x28 if command.data is None else 0x2A, 0, command.at // SECTOR, 0,
                              command.length // SECTOR, 0)
        flags = 0x80 | (0 if not command.length else 0x40 if command.data is None else 0x20)
        rest = struct.pack(">III", command.length, command.sn, self._stat_sn[command.link]) + cdb.ljust(16, b"\0")
        self._send(command.link, iscsi_pdu.header(iscsi_pdu.SCSI_COMMAND, flags=flags, length=len(immediate),
                                                  lun=mariner.LUN << 48, tag=command.tag, rest=rest),
                   immediate, damaged and bool(immediate))

    def _send_data(self, command: Command, ttt: int, offset: int, length: int):
        end, number = offset + length, 0
        while offset < end:
            part = command.data[offset:min(end, offset + SEGMENT)]
            last = 0x80 if offset + len(part) == end else 0
            rest = struct.pack(">IIIIII", ttt, 0, self._stat_sn[command.link], 0, number, offset)
            self._send(command.link, iscsi_pdu.header(iscsi_pdu.DATA_OUT, flags=last, length=len(part),
                                                      lun=mariner.LUN << 48, tag=command.tag, rest=rest),
                       part, self._chance.random() < self._damage)
            offset, number = offset + len(part), number + 1

    def snack(self, number: int, kind: int, tag: int, first: int, count: int):
        rest = struct.pack(">IIIIIII", 0xFFFFFFFF, 0, self._stat_sn[number], 0, 0, first, count)
        self._send(number, iscsi_pdu.header(SNACK, flags=0x80 | kind, tag=tag, rest=rest), b"", False)

    def _acknowledge(self, number: int, stat_sn: int):
        self._had[number].add(stat_sn)
        while self._stat_sn[number] in self._had[number]:
            self._had[number].remove(self._stat_sn[number])
            self._stat_sn[number] += 1

    def _receive(self, number: int, waiting: dict[int, Command]):
        bhs, data = iscsi_pdu.receive_pdu(self.links[number])
        if data:
            assert iscsi_pdu.receive_exactly(self.links[number], 4) == struct.pack("<I", crc32c(iscsi_pdu.pad(data)))
        opcode, tag = bhs[0], int.from_bytes(bhs[16:20], "big")
        stat_sn = int.from_bytes(bhs[24:28], "big")
        lost = self._chance.random() < self._damage  # as if it had been damaged
        if opcode == DATA_IN:
            command, sn, offset = waiting[tag], *struct.unpack(">II", bhs[36:44])
            if lost and offset not in command.received:
                self.repeated += 1
                return self.snack(number, 0, tag, sn, 1)
            command.received[offset] = data
            if bhs[1] & 1:
                command.answered = (bhs[3], stat_sn)
            if command.answered and command.whole():
                command.status = command.answered[0]
                self._acknowledge(number, command.answered[1])
        elif opcode == RESPONSE:
            if lost:
                self.repeated += 1
                return self.snack(number, 1, 0xFFFFFFFF, stat_sn, 1)
            waiting[tag].status = bhs[3]
            self._acknowledge(number, stat_sn)
        elif opcode == R2T:
            offset, length = struct.unpack(">II", bhs[40:48])
            self._send_data(waiting[tag], int.from_bytes(bhs[20:24], "big"), offset, length)
        elif opcode == REJECT:
            assert bhs[2] == 2, f"rejected for {bhs[2]}: {data.hex()}"
            self.rejected += 1
            self._acknowledge(number, stat_sn)
            if data[0] & 0x3F == iscsi_pdu.SCSI_COMMAND:
                self._send_command(waiting[int.from_bytes(data[16:20], "big")], False)
        elif opcode == NOP_IN:
            rest = bhs[20:24] + struct.pack(">II", self.sn, self._stat_sn[number])
            self._send(number, iscsi_pdu.header(iscsi_pdu.NOP_OUT | iscsi_pdu.IMMEDIATE, tag=0xFFFFFFFF, rest=rest),
                       b"", False)
        else:
            raise AssertionError(f"opcode {opcode:#x}")
        return None
