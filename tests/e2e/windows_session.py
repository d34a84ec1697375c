"""An initiator that logs in as Windows does, PDU by PDU.

What it says, and in which order, was measured at a real Windows (files of a public iSCSI bridge of 2026 by
"Dingtaiqi": nvmeof_iscsi.h, tools_login_probe.ps1): two stages, ISID 40 00 01 37 00 xx, CID 1, CmdSN 1. That ISID
format also shows in https://learn.microsoft.com/windows-hardware/drivers/ddi/iscsimgt and NetApp's
Get-NcIscsiInitiator. The values that an administrator sets are those of the registry as Microsoft names them:
https://learn.microsoft.com/azure/storage/elastic-san/elastic-san-best-practices,
https://learn.microsoft.com/windows-hardware/drivers/ddi/iscsimgt/ns-iscsimgt-_msiscsi_hbasessionconfig.
CHAP is MD5, with secrets of 12 to 16 bytes and the initiator's name as the user:
https://studylib.net/doc/8975615/microsoft-iscsi-initiator-service ("Users Guide").
"""

import dataclasses
import hashlib
import re
import socket
import struct

import iscsi_pdu

INITIATOR = "iqn.1991-05.com.microsoft:{}"
ENTERPRISE = 311  # Microsoft's number (IANA), in the ISID
SECURITY, OPERATIONAL, FULL_FEATURE = 0, 1, 3
TRANSIT = 0x80
LOGIN_RESPONSE = 0x23
NO_SESSION = 0

DISCOVERY_KEYS = {"HeaderDigest": "None,CRC32C", "DataDigest": "None,CRC32C", "MaxRecvDataSegmentLength": "65536",
                  "DefaultTime2Wait": "0", "DefaultTime2Retain": "60"}
NORMAL_KEYS = {"HeaderDigest": "None,CRC32C", "DataDigest": "None,CRC32C", "ErrorRecoveryLevel": "2",
               "InitialR2T": "No", "ImmediateData": "Yes", "MaxRecvDataSegmentLength": "65536",
               "MaxBurstLength": "262144", "FirstBurstLength": "65536", "MaxConnections": "32",
               "DataPDUInOrder": "Yes", "DataSequenceInOrder": "Yes", "DefaultTime2Wait": "0",
               "DefaultTime2Retain": "60", "MaxOutstandingR2T": "16"}


def isid(number: int = 0) -> bytes:
    return bytes([0x40]) + ENTERPRISE.to_bytes(3, "big") + number.to_bytes(2, "big")


@dataclasses.dataclass(frozen=True)
class LoginAnswer:
    stages: int  # byte 1: T, current stage, next stage
    status: int
    tsih: int
    stat_sn: int
    exp_cmd_sn: int
    max_cmd_sn: int
    keys: dict[str, str]

    @property
    def next_stage(self) -> int | None:
        return self.stages & 3 if self.stages & TRANSIT else None


class Refused(Exception):
    """The login ended with this status."""

    def __init__(self, status: int):
        super().__init__(f"status {status:#06x}")
        self.status = status


class Connection:
    """One connection of a session; `number` is of its ISID, `cid` of it within the session."""

    def __init__(self, address: tuple[str, int], host: str = "win1", number: int = 0, cid: int = 1):
        self.socket = socket.create_connection(address, timeout=10)
        self.initiator = INITIATOR.format(host)
        self.answers: list[LoginAnswer] = []
        self.tsih = NO_SESSION
        self.sn = 0  # of the last command
        self._isid = isid(number)
        self._cid = cid
        self._exp_stat_sn = 1

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def log_in_step(self, keys: dict[str, str], stage: int, next_stage: int | None) -> LoginAnswer:
        """One login request and its answer; raises Refused."""
        flags = stage << 2 | (0 if next_stage is None else TRANSIT | next_stage)
        request = bytearray(iscsi_pdu.login(keys, stage_flags=flags, isid=self._isid, cmd_sn=self.sn + 1))
        request[14:16] = self.tsih.to_bytes(2, "big")
        request[20:22] = self._cid.to_bytes(2, "big")
        request[28:32] = self._exp_stat_sn.to_bytes(4, "big")
        self.socket.sendall(request)
        bhs, text = iscsi_pdu.receive_pdu(self.socket)
        status = int.from_bytes(bhs[36:38], "big")
        if bhs[0] != LOGIN_RESPONSE or status != 0:
            raise Refused(status)
        stat_sn, exp_cmd_sn, max_cmd_sn = struct.unpack_from(">III", bhs, 24)
        said = dict(item.split("=", 1) for item in text.decode().split("\0") if item)
        answer = LoginAnswer(bhs[1], status, int.from_bytes(bhs[14:16], "big"), stat_sn, exp_cmd_sn, max_cmd_sn, said)
        self._exp_stat_sn = (stat_sn + 1) & 0xFFFFFFFF
        self.answers.append(answer)
        return answer

    def log_in(self, target: str = "", tsih: int = NO_SESSION, changes: dict[str, str] | None = None) -> "Connection":
        """In two stages, without authentication; without a target a discovery session."""
        names = {"InitiatorName": self.initiator, "SessionType": "Normal" if target else "Discovery"}
        if target:
            names["TargetName"] = target
        self.tsih = tsih
        self.log_in_step(names | {"AuthMethod": "None"}, SECURITY, OPERATIONAL)
        keys = (NORMAL_KEYS if target else DISCOVERY_KEYS) | (changes or {})
        self.tsih = self.log_in_step(keys, OPERATIONAL, FULL_FEATURE).tsih
        return self

    def log_in_with_chap(self, target: str, user: str, secret: str, mutual_secret: str = "") -> "Connection":
        """With MD5; with a mutual secret the target has to prove itself, too."""
        names = {"InitiatorName": self.initiator, "SessionType": "Normal", "TargetName": target}
        self.log_in_step(names | {"AuthMethod": "CHAP"}, SECURITY, None)
        asked = self.log_in_step({"CHAP_A": "5"}, SECURITY, None).keys
        proof = {"CHAP_N": user, "CHAP_R": "0x" + chap_md5(int(asked["CHAP_I"]), secret, asked["CHAP_C"])}
        if mutual_secret:
            proof |= {"CHAP_I": "7", "CHAP_C": "0x" + bytes(range(1, 17)).hex()}
        answer = self.log_in_step(proof, SECURITY, OPERATIONAL).keys
        if mutual_secret and answer["CHAP_R"].lower() != "0x" + chap_md5(7, mutual_secret, proof["CHAP_C"]):
            raise AssertionError("the target does not know its secret")
        self.tsih = self.log_in_step(NORMAL_KEYS, OPERATIONAL, FULL_FEATURE).tsih
        return self

    def text(self, keys: dict[str, str]) -> str:
        """A text request and what is answered."""
        data = "".join(f"{key}={value}\0" for key, value in keys.items()).encode()
        self.sn += 1
        rest = struct.pack(">III", 0xFFFFFFFF, self.sn, self._exp_stat_sn)
        request = iscsi_pdu.header(iscsi_pdu.TEXT, length=len(data), tag=self.sn, rest=rest)
        self.socket.sendall(request + iscsi_pdu.pad(data))
        bhs, answer = iscsi_pdu.receive_pdu(self.socket)
        assert bhs[0] == 0x24, bhs.hex()
        return answer.decode()

    def log_out(self) -> int:
        """Ends the session; what the target answers (RFC 7143 11.15.1)."""
        self.sn += 1
        rest = struct.pack(">III", self._cid << 16, self.sn, self._exp_stat_sn)
        self.socket.sendall(iscsi_pdu.header(iscsi_pdu.LOGOUT, tag=self.sn, rest=rest))
        bhs, _ = iscsi_pdu.receive_pdu(self.socket)
        assert bhs[0] == 0x26, bhs.hex()
        return bhs[2]

    def command(self, cdb: bytes, data: bytes = b"", expected: int = 0, sn: int | None = None) -> tuple[int, bytes]:
        """As iscsi_pdu.command; `sn` where several connections count together."""
        self.sn = sn or self.sn + 1
        return iscsi_pdu.command(self.socket, cdb, data, sn=self.sn, expected=expected)

    def write_in_bursts(self, cdb: bytes, data: bytes):
        """A write with the first burst as immediate data, and the rest as R2Ts ask for it (RFC 7143 11.7, 11.8)."""
        agreed = self.answers[-1].keys
        pdu_max = int(agreed["MaxRecvDataSegmentLength"])
        first = min(int(agreed["FirstBurstLength"]), pdu_max, len(data))
        self.sn += 1
        rest = struct.pack(">III", len(data), self.sn, self._exp_stat_sn) + cdb.ljust(16, b"\0")
        self.socket.sendall(iscsi_pdu.header(iscsi_pdu.SCSI_COMMAND, flags=0xA1, length=first, tag=self.sn, rest=rest) +
                            iscsi_pdu.pad(data[:first]))
        sent = first
        for r2t_sn in range(len(data)):
            bhs, _ = iscsi_pdu.receive_pdu(self.socket)
            if bhs[0] == 0x21:
                assert bhs[2] == 0 and bhs[3] == 0 and sent == len(data), f"status {bhs[3]:#04x} after {sent} bytes"
                return
            tag, transfer_tag = struct.unpack_from(">II", bhs, 16)
            number, offset, length = struct.unpack_from(">III", bhs, 36)
            assert (bhs[0], bhs[1], bhs[5:8]) == (0x31, 0x80, bytes(3)), bhs.hex()
            assert tag == self.sn and transfer_tag != 0xFFFFFFFF and bhs[8:16] == bytes(8)
            assert number == r2t_sn and offset == sent and 0 < length <= int(agreed["MaxBurstLength"])
            self._send_burst(data[offset:offset + length], offset, transfer_tag, pdu_max)
            sent += length

    def _send_burst(self, burst: bytes, offset: int, transfer_tag: int, pdu_max: int):
        for data_sn, at in enumerate(range(0, len(burst), pdu_max)):
            part = burst[at:at + pdu_max]
            rest = struct.pack(">IIIIIII", transfer_tag, 0, self._exp_stat_sn, 0, data_sn, offset + at, 0)
            last = at + pdu_max >= len(burst)
            self.socket.sendall(iscsi_pdu.header(iscsi_pdu.DATA_OUT, flags=0x80 if last else 0, length=len(part),
                                                 tag=self.sn, rest=rest) + iscsi_pdu.pad(part))

    def ping(self, data: bytes) -> bytes:
        """An immediate NOP-Out, and what comes back."""
        rest = struct.pack(">III", 0xFFFFFFFF, self.sn + 1, self._exp_stat_sn)
        request = iscsi_pdu.header(iscsi_pdu.NOP_OUT | iscsi_pdu.IMMEDIATE, length=len(data), tag=0x1234, rest=rest)
        self.socket.sendall(request + iscsi_pdu.pad(data))
        bhs, back = iscsi_pdu.receive_pdu(self.socket)
        assert bhs[0] == 0x20 and bhs[16:20] == b"\0\0\x12\x34", bhs.hex()
        return back


def chap_md5(identifier: int, secret: str, challenge: str) -> str:
    """RFC 1994 4.1. A challenge is hexadecimal here."""
    match = re.fullmatch(r"0x([0-9a-fA-F]+)", challenge)
    assert match, challenge
    return hashlib.md5(bytes([identifier]) + secret.encode() + bytes.fromhex(match.group(1))).hexdigest()
