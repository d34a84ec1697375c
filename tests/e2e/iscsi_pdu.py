"""iSCSI PDUs by hand (RFC 7143), as wrong as a test wants them."""

import socket
import struct

BHS_BYTES = 48
LOGIN, TEXT, LOGOUT, SCSI_COMMAND, NOP_OUT, DATA_OUT = 0x03, 0x04, 0x06, 0x01, 0x00, 0x05
IMMEDIATE = 0x40


def pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def header(opcode: int, *, flags: int = 0x80, ahs_words: int = 0, length: int = 0, lun: int = 0,
           tag: int = 1, rest: bytes = b"") -> bytes:
    """A basic header segment: the fields that all requests share, then `rest` from byte 20 on."""
    start = struct.pack(">BBHB3sQI", opcode, flags, 0, ahs_words, length.to_bytes(3, "big"), lun, tag)
    return (start + rest).ljust(BHS_BYTES, b"\0")[:BHS_BYTES]


def login(keys: dict[str, str], *, stage_flags: int = 0x87, cmd_sn: int = 1,
          isid: bytes = b"\x80\x12\x34\x56\x00\x01") -> bytes:
    """A login request; by default from the operational stage to full feature phase."""
    text = b"".join(f"{key}={value}".encode() + b"\0" for key, value in keys.items())
    bhs = bytearray(header(LOGIN | IMMEDIATE, flags=stage_flags, length=len(text)))
    bhs[8:14] = isid
    bhs[14:16] = b"\0\0"
    bhs[24:28] = struct.pack(">I", cmd_sn)
    return bytes(bhs) + pad(text)


def receive_exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError(f"closed after {len(data)} of {count} bytes")
        data += part
    return data


def receive_pdu(connection: socket.socket) -> tuple[bytes, bytes]:
    bhs = receive_exactly(connection, BHS_BYTES)
    length = int.from_bytes(bhs[5:8], "big")
    data = receive_exactly(connection, bhs[4] * 4 + length + (-length % 4))
    return bhs, data[bhs[4] * 4:][:length]


def command(connection: socket.socket, cdb: bytes, data: bytes = b"", *, sn: int, expected: int = 0) -> tuple[int, bytes]:
    """One SCSI command to LUN 0: its status, and its data or (behind a length) its sense. `data` goes with it."""
    flags = 0x80 | (0x40 if expected else 0) | (0x20 if data else 0) | 1
    rest = struct.pack(">III", len(data) or expected, sn, 0) + cdb.ljust(16, b"\0")
    connection.sendall(header(SCSI_COMMAND, flags=flags, length=len(data), tag=sn, rest=rest) + pad(data))
    received = b""
    while True:
        bhs, part = receive_pdu(connection)
        if bhs[0] == 0x25:
            received += part
            if bhs[1] & 1:  # with status
                return bhs[3], received
        elif bhs[0] == 0x21:
            return bhs[3], received or part


def log_in(address: tuple[str, int], target: str, initiator: str = "iqn.2026-11.org.mariner:raw",
           isid: bytes = b"\x80\x12\x34\x56\x00\x01", timeout_s: float = 10, **keys: str) -> socket.socket:
    """A connection in full feature phase; `keys` are offered, too."""
    connection = socket.create_connection(address, timeout=timeout_s)
    connection.sendall(login({"InitiatorName": initiator, "TargetName": target,
                              "SessionType": "Normal", "HeaderDigest": "None",
                              "DataDigest": "None"} | keys, isid=isid))
    bhs, _ = receive_pdu(connection)
    if bhs[0] == 0x23 and bhs[36:38] == b"\0\0" and not bhs[1] & 0x80:  # a target that has offers of its own
        connection.sendall(login({}, isid=isid))
        bhs, _ = receive_pdu(connection)
    if bhs[0] != 0x23 or bhs[36:38] != b"\0\0":
        raise ConnectionError(f"login refused: {bhs.hex()}")
    return connection


def log_in_discovery(address: tuple[str, int], initiator: str = "iqn.2026-11.org.mariner:raw") -> socket.socket:
    connection = socket.create_connection(address, timeout=10)
    connection.sendall(login({"InitiatorName": initiator, "SessionType": "Discovery"}))
    bhs, _ = receive_pdu(connection)
    if bhs[0] != 0x23 or bhs[36:38] != b"\0\0":
        raise ConnectionError(f"login refused: {bhs.hex()}")
    return connection


def keys_of(text: bytes) -> list[tuple[str, str]]:
    return [tuple(pair.decode().split("=", 1)) for pair in text.split(b"\0") if pair]


def send_targets(connection: socket.socket, which: str = "All", *, sn: int = 1) -> list[tuple[str, str]]:
    """What SendTargets answers, if it fits one PDU."""
    text = f"SendTargets={which}\0".encode()
    rest = struct.pack(">III", 0xFFFFFFFF, sn, 0)
    connection.sendall(header(TEXT, length=len(text), tag=sn, rest=rest) + pad(text))
    bhs, data = receive_pdu(connection)
    assert bhs[0] == 0x24 and bhs[1] & 0x80, bhs.hex()
    return keys_of(data)


def login_answer(address: tuple[str, int], target: str, initiator: str = "iqn.2026-11.org.mariner:raw",
                 isid: bytes = b"\x80\x12\x34\x56\x00\x01") -> tuple[int, dict[str, str], socket.socket]:
    """The status of one login, with what came with it."""
    connection = socket.create_connection(address, timeout=10)
    connection.sendall(login({"InitiatorName": initiator, "TargetName": target, "SessionType": "Normal"}, isid=isid))
    bhs, data = receive_pdu(connection)
    return int.from_bytes(bhs[36:38], "big"), dict(keys_of(data)), connection


def async_event(connection: socket.socket) -> tuple[int, int, int, int]:
    """The next PDU, which is an Async Message: its event and parameters."""
    bhs, _ = receive_pdu(connection)
    assert bhs[0] == 0x32, bhs.hex()
    return (bhs[36], *struct.unpack(">HHH", bhs[38:44]))


def logout(connection: socket.socket, *, sn: int = 1) -> None:
    connection.sendall(header(LOGOUT | IMMEDIATE, flags=0x80, tag=sn, rest=struct.pack(">III", 0, sn, 0)))
    bhs, _ = receive_pdu(connection)
    assert bhs[0] == 0x26 and bhs[2] == 0, bhs.hex()
