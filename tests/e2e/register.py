"""A block of a cluster's volume as a register: one writes ascending numbers, others read it at every node, all the time.

Run by itself it does that until it is told to end (SIGTERM), and prints what it saw; `Register` runs it and judges. Reads go out on
time whether the ones before were answered or not, so that a node that stood still finds them when it wakes up."""

import dataclasses
import itertools
import json
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import iscsi_pdu as pdu

BLOCK = 512
READ_EVERY_S = 0.05
OUTSTANDING_MAX = 96  # that a silent node may find when it wakes up; within what a target lets an initiator send
LOGIN_S_MAX = 0.5  # of a node that stands still: there is another one
GOOD, CHECK_CONDITION, UNIT_ATTENTION = 0, 2, 6
COMMAND, RESPONSE, DATA_IN = 0x01, 0x21, 0x25
INITIATOR = "iqn.2026-11.org.mariner:register"


@dataclasses.dataclass(frozen=True)
class Seen:
    """A command that ended with GOOD: when it was sent and answered, by the monotonic clock, and the number."""
    node: str
    sent: float
    answered: float
    number: int


class Pipe:
    """A session on which commands are sent without waiting."""

    def __init__(self, address: tuple[str, int], target: str, who: str):
        isid = b"\x80" + who.encode()[-5:].rjust(5, b"\0")
        self._socket = pdu.log_in(address, target, f"{INITIATOR}-{who}", isid, timeout_s=LOGIN_S_MAX)
        self._socket.settimeout(0.2)
        self._sn = itertools.count(1)
        self._expected_status = 0
        self._buffer = b""

    def send(self, cdb: bytes, data: bytes = b"", expected: int = 0) -> int:
        """Its tag."""
        sn = next(self._sn)
        flags = 0x80 | (0x40 if expected else 0) | (0x20 if data else 0) | 1
        rest = struct.pack(">III", len(data) or expected, sn, self._expected_status) + cdb.ljust(16, b"\0")
        self._socket.sendall(pdu.header(COMMAND, flags=flags, length=len(data), tag=sn, rest=rest) + data)
        return sn

    def receive(self) -> tuple[int, int, bytes] | None:
        """Tag, status, and data or (behind a length) sense of a command that has ended; None: none has for a while."""
        received = b""
        while True:
            bhs, data = self._next()
            if bhs is None:
                return None
            if bhs[0] == DATA_IN:
                received += data
            if bhs[0] == RESPONSE or bhs[0] == DATA_IN and bhs[1] & 1:
                self._expected_status = (int.from_bytes(bhs[24:28], "big") + 1) & 0xFFFFFFFF
                return int.from_bytes(bhs[16:20], "big"), bhs[3], received or data

    def _next(self) -> tuple[bytes | None, bytes]:
        while True:
            length = int.from_bytes(self._buffer[5:8], "big") if len(self._buffer) >= pdu.BHS_BYTES else 0
            whole = pdu.BHS_BYTES + length + (-length % 4)
            if len(self._buffer) >= whole:
                one, self._buffer = self._buffer[:whole], self._buffer[whole:]
                return one[:pdu.BHS_BYTES], one[pdu.BHS_BYTES:][:length]
            try:
                more = self._socket.recv(65536)
            except TimeoutError:
                return None, b""
            if not more:
                raise ConnectionError("closed")
            self._buffer += more

    def close(self):
        self._socket.close()


class Watch:
    """The threads, and what they saw."""

    def __init__(self, portals: dict[str, tuple[str, int]], target: str, block: int):
        self.portals, self.target, self.block = portals, target, block
        self.end = threading.Event()
        self.reads: list[Seen] = []
        self.writes: list[Seen] = []
        self.issued = 0

    def run(self):
        threads = [threading.Thread(target=self._read, args=(node,)) for node in self.portals]
        threads.append(threading.Thread(target=self._write))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _connected(self, node: str, who: str) -> Pipe | None:
        try:
            return Pipe(self.portals[node], self.target, who)
        except OSError:
            self.end.wait(0.1)
            return None

    def _read(self, node: str):
        cdb = struct.pack(">BBQIBB", 0x88, 0, self.block, 1, 0, 0)
        while not self.end.is_set():
            pipe = self._connected(node, f"r{node}")
            if pipe is None:
                continue
            sent: dict[int, float] = {}
            stop = threading.Event()
            sender = threading.Thread(target=self._send_reads, args=(pipe, cdb, sent, stop))
            sender.start()
            try:
                while not (self.end.is_set() and not sent):
                    ended = pipe.receive()
                    if ended is None:
                        if self.end.is_set():
                            break
                        continue
                    tag, status, data = ended
                    began = sent.pop(tag)
                    if status == GOOD and len(data) == BLOCK:
                        self.reads.append(Seen(node, began, time.monotonic(), int.from_bytes(data[:8], "big")))
            except OSError:
                pass
            stop.set()
            sender.join()
            pipe.close()

    def _send_reads(self, pipe: Pipe, cdb: bytes, sent: dict[int, float], stop: threading.Event):
        try:
            for tag in itertools.count(1):
                while not stop.wait(READ_EVERY_S) and len(sent) >= OUTSTANDING_MAX:
                    pass
                if stop.is_set() or self.end.is_set():
                    return
                sent[tag] = time.monotonic()
                pipe.send(cdb, expected=BLOCK)
        except OSError:
            pass  # who receives finds out, too

    def _write(self):
        """At whoever takes it: a number is written once, and given up when its answer does not come."""
        cdb = struct.pack(">BBQIBB", 0x8A, 0, self.block, 1, 0, 0)
        for node in itertools.cycle(self.portals):
            if self.end.is_set():
                return
            pipe = self._connected(node, "w")
            if pipe is None:
                continue
            try:
                while not self.end.wait(0.02) and self._wrote(pipe, node, cdb):
                    pass
            except OSError:
                pass
            pipe.close()

    def _wrote(self, pipe: Pipe, node: str, cdb: bytes) -> bool:
        self.issued += 1
        number, sent = self.issued, time.monotonic()
        pipe.send(cdb, number.to_bytes(8, "big").ljust(BLOCK, b"\0"))
        ended = pipe.receive()
        while ended is None:
            if time.monotonic() - sent > 1:
                return False
            ended = pipe.receive()
        if ended[1] == GOOD:
            self.writes.append(Seen(node, sent, time.monotonic(), number))
            return True
        return ended[1] == CHECK_CONDITION and sense_key(ended[2][2:]) == UNIT_ATTENTION


def sense_key(sense: bytes) -> int:
    """SPC-4 4.5: of fixed or descriptor format."""
    return (sense[2] if sense[0] & 0x7F in (0x70, 0x71) else sense[1]) & 0x0F


class Register:
    """A watch in a process of its own, in the network namespace of `prefix`."""

    def __init__(self, portals: dict[str, tuple[str, int]], target: str, block: int, prefix: list[str]):
        self._process = subprocess.Popen([*prefix, sys.executable, "-B", __file__, json.dumps([portals, target, block])],
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.reads: list[Seen] = []
        self.writes: list[Seen] = []

    def stop(self):
        self._process.terminate()
        out, error = self._process.communicate(timeout=30)
        assert self._process.returncode == 0, error
        said = json.loads(out)
        self.reads = [Seen(*each) for each in said["reads"]]
        self.writes = [Seen(*each) for each in said["writes"]]

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def stale(self) -> list[str]:
        """Reads that were sent when a newer number had been acknowledged already."""
        faults = []
        writes = iter(sorted(self.writes, key=lambda seen: seen.answered))
        ahead, newest = next(writes, None), 0
        for read in sorted(self.reads, key=lambda seen: seen.sent):
            while ahead is not None and ahead.answered < read.sent:
                newest, ahead = max(newest, ahead.number), next(writes, None)
            if read.number < newest:
                faults.append(f"{read.node} answered {read.number} to a read sent at {read.sent:.3f}; {newest} was acknowledged before")
        return faults

    def changes_of_server(self) -> int:
        """How often, at least, another node served than before: by reads each of which was sent when the one before it was
        answered. Each takes an epoch of its own."""
        changes, node, since = 0, "", 0.0
        for read in sorted(self.reads, key=lambda seen: seen.answered):
            if read.node != node and read.sent > since:
                changes, node, since = changes + 1, read.node, read.answered
        return max(0, changes - 1)


def main():
    portals, target, block = json.loads(sys.argv[1])
    watch = Watch({node: tuple(address) for node, address in portals.items()}, target, block)
    signal.signal(signal.SIGTERM, lambda *_: watch.end.set())
    watch.run()
    print(json.dumps({"reads": [dataclasses.astuple(seen) for seen in watch.reads],
                      "writes": [dataclasses.astuple(seen) for seen in watch.writes]}))


if __name__ == "__main__":
    main()
