"""Sessions of several connections, and recovery from data that was damaged on its way."""

import random

import pytest

from multi_session import Command, MultiSession

VOLUME = "db1"
BLOCK = 4096
BLOCKS = 1024


def stir(session: MultiSession, chance: random.Random, batches: int) -> tuple[int, int]:
    """Writes and reads back in batches of commands that touch different blocks."""
    model = bytearray(BLOCK * BLOCKS)
    for _ in range(batches):
        places = chance.sample(range(0, BLOCKS, 16), 12)
        writes, reads = [], []
        for at in (place * BLOCK for place in places[:6]):
            data = chance.randbytes(chance.choice([512, 4096, 20480, 65536]))
            writes.append(Command(at, len(data), data))
        for at in (place * BLOCK for place in places[6:]):
            reads.append(Command(at, chance.choice([512, 16384, 65536])))
        for command in session.run(writes + reads):
            assert command.status == 0, command
        for write in writes:
            model[write.at:write.at + write.length] = write.data
        for read in reads:
            found = b"".join(read.received[offset] for offset in sorted(read.received))
            assert found == model[read.at:read.at + read.length]
    whole = [Command(at, 65536) for at in range(0, len(model), 65536)]
    for read in session.run(whole):
        found = b"".join(read.received[offset] for offset in sorted(read.received))
        assert found == model[read.at:read.at + read.length], read.at
    return session.repeated, session.rejected


@pytest.mark.parametrize("connections", [1, 4])
@pytest.mark.parametrize("damage", [0.0, 0.1])
def test_commands_in_any_order_over_several_connections(daemon, seed, connections, damage):
    chance = random.Random(seed)
    target = daemon.create(VOLUME, "64M")["iqn"]
    with MultiSession(daemon, target, connections, chance, damage) as session:
        listed = daemon.ask("session", "list")["sessions"]
        assert len(listed) == 1
        repeated, rejected = stir(session, chance, 12)
        assert (repeated > 0) == (rejected > 0) == (damage > 0)


def test_no_more_connections_than_were_agreed(daemon, seed):
    target = daemon.create(VOLUME, "64M")["iqn"]
    with MultiSession(daemon, target, 4, random.Random(seed)) as session:
        assert session.join(4) == 0x0206
        # The same CID again: the old connection makes way, and the session goes on.
        assert session.join(2) == 0
        assert session.links[2].recv(1) == b""
        session.links[2].close()
        session.leave(2)
        assert session.run([Command(0, 4096)])[0].status == 0


def test_a_lost_connection_takes_its_session_along(daemon, seed):
    target = daemon.create(VOLUME, "64M")["iqn"]
    with MultiSession(daemon, target, 2, random.Random(seed)) as session:
        session.links[0].close()
        session.links[1].settimeout(10)
        assert session.links[1].recv(1) == b""
        assert daemon.ask("session", "list")["sessions"] == []
