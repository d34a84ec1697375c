"""The storage tests of a Windows failover cluster's validation, from two nodes."""

import pytest

from libiscsi import GOOD, RESERVATION_CONFLICT
from windows_cluster import (APTPL, CLEAR, PREEMPT_ABORT, RELEASE, RESERVE, WRITE_EXCLUSIVE_REGISTRANTS_ONLY, Node)
from windows_disk import read10
from windows_fixtures import (BLOCK, REGISTRATIONS_PREEMPTED, RESERVATIONS_PREEMPTED, RESET, server,  # noqa: F401
                              session, target)

pytestmark = pytest.mark.slow


@pytest.fixture
def nodes(session) -> tuple[Node, Node]:
    return Node(1, [session("node1")]), Node(2, [session("node2")])


def test_validate_persistent_reservations(nodes):
    one, two = nodes
    assert one.register() == GOOD
    assert one.out(CLEAR) == GOOD, "what was left of others"
    assert one.keys() == [] and one.reservation() is None
    generation = one.generation()
    assert one.register() == two.register() == GOOD
    assert one.generation() == generation + 2
    assert one.keys() == two.keys() == [one.key, two.key]
    assert one.out(RESERVE) == GOOD
    assert two.reservation() == (one.key, WRITE_EXCLUSIVE_REGISTRANTS_ONLY), '"Attempting to read PR"'
    assert one.write() == two.write() == GOOD, "registrants only"
    assert two.out(RESERVE) == RESERVATION_CONFLICT, "it is held"
    assert two.out(RESERVE, key=one.key) == RESERVATION_CONFLICT, "with a key that is not its own"
    assert two.unregister() == GOOD and two.write() == RESERVATION_CONFLICT
    assert two.paths[0].session.command(read10(0, 1), expected=BLOCK).status == GOOD, "reading is free"
    assert one.out(RESERVE) == GOOD, "again by its holder: nothing happens"
    assert one.out(RELEASE) == GOOD and one.reservation() is None
    assert two.write() == GOOD
    assert one.unregister() == GOOD and one.keys() == []
    assert one.unregister() == GOOD, "once more: nothing to do"


def test_capabilities(nodes):
    capabilities = nodes[0].capabilities()
    assert len(capabilities) == 8 and int.from_bytes(capabilities[:2], "big") == 8
    assert capabilities[3] & 0x80, "the type mask is valid"
    assert capabilities[4] & 0x20, "write exclusive, registrants only"
    assert capabilities[2] & 0x01, "APTPL"


def test_an_owner_that_defends_its_disk_keeps_it(nodes):
    owner, challenger = nodes
    assert owner.register() == GOOD and owner.out(RESERVE) == GOOD
    assert not challenger.arbitrate(wait=owner.defend)
    assert owner.reservation() == (owner.key, 5) and owner.keys() == [owner.key]
    assert challenger.met == [REGISTRATIONS_PREEMPTED]
    assert challenger.write() == RESERVATION_CONFLICT and owner.write() == GOOD


def test_a_silent_owner_loses_its_disk(nodes):
    owner, challenger = nodes
    assert owner.register() == GOOD and owner.out(RESERVE) == GOOD
    assert challenger.arbitrate(wait=lambda: None)
    assert challenger.keys() == [challenger.key] and challenger.write() == GOOD
    attentions = owner.paths[0].attentions()
    assert attentions and set(attentions) <= {REGISTRATIONS_PREEMPTED, RESERVATIONS_PREEMPTED}
    assert owner.write() == RESERVATION_CONFLICT
    assert owner.out(RESERVE) == RESERVATION_CONFLICT, "it is not registered any more"


def test_preempt_and_abort(nodes):
    owner, challenger = nodes
    assert owner.register() == challenger.register() == GOOD and owner.out(RESERVE) == GOOD
    assert challenger.out(PREEMPT_ABORT, action_key=owner.key) == GOOD
    assert challenger.reservation() == (challenger.key, 5) and challenger.keys() == [challenger.key]
    assert challenger.write() == GOOD


def test_a_reset_leaves_reservations_alone(nodes):
    """Validation: "the disk's persistent reservation survives a LUN reset" (SPC-4 5.12.5)."""
    owner, other = nodes
    assert owner.register() == GOOD and owner.out(RESERVE) == GOOD
    other.paths[0].session.reset_lun()
    assert owner.paths[0].attentions() == [RESET]
    assert owner.reservation() == (owner.key, 5) and owner.write() == GOOD
    other.paths[0].attentions()
    assert other.write() == RESERVATION_CONFLICT


def test_both_nodes_go_to_the_same_disk_after_a_restart(server, session, target):
    """APTPL: registrations and reservation survive, whoever comes back first."""
    first = session("node1")
    owner = Node(1, [first])
    assert owner.register(flags=APTPL) == GOOD and owner.out(RESERVE) == GOOD
    first.close()
    server.stop()
    server.start()
    other = Node(2, [session("node2")])
    assert other.write() == RESERVATION_CONFLICT
    back = Node(1, [session("node1")])
    assert back.keys() == [back.key] and back.reservation() == (back.key, 5) and back.write() == GOOD
    assert back.out(CLEAR) == GOOD
