"""A thousand idle sessions: what they cost, that they are pinged and live, that others are unharmed."""

import asyncio
import resource
import struct
import time

import pytest

import iscsi_pdu
import mariner

pytestmark = pytest.mark.slow

SESSIONS = 1000
VOLUMES = 4
HOSTS = 8
# Per session: places for 144 commands (their tags and a chunk of 8 tasks), the first slots of the output
# queues, names and addresses, the socket: 11 KiB measured. A buffer of 64 KiB for each would show.
BYTES_PER_SESSION_MAX = 16 * 1024
NOP_IN, RESERVED = 0x20, 0xFFFFFFFF


class IdleSession:
    """Logs in, answers pings, logs out when it is told to."""

    def __init__(self):
        self.pings = 0
        self.ended = False

    async def open(self, address, target: str, number: int):
        self.reader, self.writer = await asyncio.open_connection(*address)
        isid = b"\x80" + number.to_bytes(5, "big")
        self.writer.write(iscsi_pdu.login(
            {"InitiatorName": f"iqn.2026-11.org.mariner:idle{number % HOSTS}", "TargetName": target,
             "SessionType": "Normal"}, isid=isid))
        bhs = await self.receive()
        assert bhs[0] == 0x23 and bhs[36:38] == b"\0\0", bhs.hex()
        self.task = asyncio.create_task(self.serve())

    async def receive(self) -> bytes:
        bhs = await self.reader.readexactly(iscsi_pdu.BHS_BYTES)
        length = int.from_bytes(bhs[5:8], "big")
        await self.reader.readexactly(length + (-length % 4))
        return bhs

    async def serve(self):
        try:
            while True:
                bhs = await self.receive()
                if bhs[0] == NOP_IN:
                    self.pings += 1
                    ttt, = struct.unpack(">I", bhs[20:24])
                    stat_sn, = struct.unpack(">I", bhs[24:28])
                    rest = struct.pack(">III", ttt, 1, stat_sn)
                    self.writer.write(iscsi_pdu.header(iscsi_pdu.NOP_OUT | iscsi_pdu.IMMEDIATE, tag=RESERVED, rest=rest))
                elif bhs[0] == 0x26:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended = True

    async def close(self):
        self.writer.write(iscsi_pdu.header(iscsi_pdu.LOGOUT | iscsi_pdu.IMMEDIATE, tag=1,
                                           rest=struct.pack(">III", 0, 1, 0)))
        await asyncio.wait_for(self.task, 30)
        self.writer.close()


@pytest.fixture
def descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_idle_sessions(descriptors, tmp_path):
    if descriptors < 3 * SESSIONS:
        pytest.skip(f"the system allows {descriptors} file descriptors")
    with mariner.Daemon(tmp_path) as daemon:
        daemon.start()
        targets = [daemon.create(f"db{i}", "16M")["iqn"] for i in range(VOLUMES)]
        asyncio.run(campaign(daemon, targets))


async def until(condition, what: str):
    """mariner.wait_until() beside the sessions' own work."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.1)


async def campaign(daemon, targets):
    address = (daemon.address, daemon.port)
    # What the first of all takes once (libraries, caches) is not counted.
    warm = [IdleSession() for _ in range(10)]
    for number, session in enumerate(warm):
        await session.open(address, targets[number % VOLUMES], SESSIONS + number)
    for session in warm:
        await session.close()
    worker = iscsi_pdu.log_in(address, targets[0], initiator="iqn.2026-11.org.mariner:worker")
    before = daemon.rss_bytes()
    sessions = [IdleSession() for _ in range(SESSIONS)]
    began = time.monotonic()
    for first in range(0, SESSIONS, 100):
        await asyncio.gather(*(session.open(address, targets[first % VOLUMES], first + number)
                               for number, session in enumerate(sessions[first:first + 100])))
    took = time.monotonic() - began
    await until(lambda: f"mariner_iscsi_sessions {SESSIONS + 1}" in daemon.http("/metrics")[1], "all are logged in")
    idle = daemon.rss_bytes()
    each = (idle - before) / SESSIONS
    print(f"{SESSIONS} logins in {took:.1f} s, {each:.0f} bytes a session")
    assert each < BYTES_PER_SESSION_MAX

    # Silence for longer than the interval of pings; somebody else works meanwhile.
    latencies = []
    for sn in range(1, 3300):
        began = time.monotonic()
        status, _ = iscsi_pdu.command(worker, struct.pack(">BBIBHB", 0x2A, 0, sn % 1000, 0, 8, 0), bytes(4096), sn=sn)
        assert status == 0 or sn < 4, "unit attentions come first"
        latencies.append(time.monotonic() - began)
        await asyncio.sleep(0.01)
    latencies.sort()
    print(f"a write beside them: median {latencies[len(latencies) // 2] * 1e3:.2f} ms, "
          f"worst {latencies[-1] * 1e3:.1f} ms")
    assert latencies[-1] < 2, "a second for all thousand, and slack for a busy machine"
    await until(lambda: all(session.pings >= 1 for session in sessions), "each is pinged")
    assert not any(session.ended for session in sessions), "and none was closed"
    pinged = (daemon.rss_bytes() - before) / SESSIONS
    print(f"{pinged:.0f} bytes a session after the pings and the writes")
    assert pinged < 2 * BYTES_PER_SESSION_MAX, "with what the writes need"

    await asyncio.gather(*(session.close() for session in sessions))
    mariner.wait_until(lambda: "mariner_iscsi_sessions 1\n" in daemon.http("/metrics")[1], 10, "all are closed")
    assert iscsi_pdu.command(worker, bytes(6), sn=3300)[0] == 0
