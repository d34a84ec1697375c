"""A relay that gives an initiator digests: between it and the target every header and every data segment has one.

iscsi-test-cu has none: libiscsi 1.19 knows no data digests, and the program always offers None first for the headers.
The relay offers CRC32C alone in its place, adds the digests (RFC 7143 11.2.3, 13.1) to what the initiator sends, and
verifies and takes off the target's.
"""

import ctypes
import re
import socket
import struct
import threading

import iscsi_pdu

KEYS = (b"HeaderDigest", b"DataDigest")
LOGIN_REQUEST, LOGIN_RESPONSE = 0x03, 0x23
FULL_FEATURE = 0x83  # flags of a login response: T, and full feature phase next
DIGEST_BYTES = 4
ISAL = ctypes.CDLL("libisal.so.2")
ISAL.crc32_iscsi.restype = ctypes.c_uint32
ISAL.crc32_iscsi.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_uint32]


def crc32c(data: bytes) -> bytes:
    """As it stands on the wire."""
    return struct.pack("<I", ISAL.crc32_iscsi(data, len(data), 0xFFFFFFFF) ^ 0xFFFFFFFF)


def with_value(text: bytes, value: bytes) -> bytes:
    """The login's text with this value of the digest keys that stand in it."""
    for key in KEYS:
        text = re.sub(rb"(?<![^\0])" + key + rb"=[^\0]*\0", key + b"=" + value + b"\0", text)
    return text


class DigestRelay:
    """Listens on a port of its own at `address` and relays to `port` there."""

    def __init__(self, address: str, port: int):
        self._to = (address, port)
        self._listener = socket.create_server((address, 0))
        self.port = self._listener.getsockname()[1]
        self.header_digests = 0
        self.data_digests = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                initiator, _ = self._listener.accept()
                target = socket.create_connection(self._to)
            except OSError:
                return
            for end in (initiator, target):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_Relayed(self, initiator, target).run, daemon=True).start()

    def count(self, data: bool):
        """One PDU went by, with data or without."""
        with self._lock:
            self.header_digests += 1
            self.data_digests += data


class _Relayed:
    """One connection."""

    def __init__(self, relay: DigestRelay, initiator: socket.socket, target: socket.socket):
        self._relay = relay
        self._initiator = initiator
        self._target = target

    def run(self):
        try:
            while not self._log_in():
                pass
            threading.Thread(target=self._pump, args=(self._from_target, self._initiator), daemon=True).start()
            self._pump(self._from_initiator, self._target)
        except OSError:
            self._close()

    def _close(self):
        for end in (self._initiator, self._target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # closed already
            end.close()

    def _log_in(self) -> bool:
        """One login request and its answer; whether that was the last."""
        self._relay_login(self._initiator, self._target, b"CRC32C")
        bhs, text = self._relay_login(self._target, self._initiator, b"None")
        if any(key + b"=None\0" in text for key in KEYS):
            raise ConnectionError(f"the target refuses digests: {text}")
        return bhs[0] != LOGIN_RESPONSE or bhs[1] & FULL_FEATURE == FULL_FEATURE

    @staticmethod
    def _relay_login(source: socket.socket, sink: socket.socket, value: bytes) -> tuple[bytes, bytes]:
        bhs, text = iscsi_pdu.receive_pdu(source)
        said = text
        if bhs[0] & 0x3F in (LOGIN_REQUEST, LOGIN_RESPONSE):
            said = with_value(text, value)
        sink.sendall(bhs[:5] + len(said).to_bytes(3, "big") + bhs[8:] + iscsi_pdu.pad(said))
        return bhs, text

    def _from_initiator(self) -> bytes:
        bhs = iscsi_pdu.receive_exactly(self._initiator, iscsi_pdu.BHS_BYTES)
        head = bhs + iscsi_pdu.receive_exactly(self._initiator, bhs[4] * 4)
        data = self._data(self._initiator, bhs)
        self._relay.count(len(data) > 0)
        return head + crc32c(head) + (data + crc32c(data) if data else b"")

    def _from_target(self) -> bytes:
        bhs = iscsi_pdu.receive_exactly(self._target, iscsi_pdu.BHS_BYTES)
        head = bhs + iscsi_pdu.receive_exactly(self._target, bhs[4] * 4)
        self._verify(head)
        data = self._data(self._target, bhs)
        if data:
            self._verify(data)
        self._relay.count(len(data) > 0)
        return head + data

    @staticmethod
    def _data(source: socket.socket, bhs: bytes) -> bytes:
        length = int.from_bytes(bhs[5:8], "big")
        return iscsi_pdu.receive_exactly(source, length + -length % 4)

    def _verify(self, segment: bytes):
        if iscsi_pdu.receive_exactly(self._target, DIGEST_BYTES) != crc32c(segment):
            raise ConnectionError("a digest of the target's is wrong")

    def _pump(self, receive, sink: socket.socket):
        try:
            while True:
                sink.sendall(receive())
        except OSError:
            self._close()
