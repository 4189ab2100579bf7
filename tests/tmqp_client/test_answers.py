"""Whose answer counts: the server's, a consumer's to a push, and the client's that was asked."""

from __future__ import annotations

import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_client.machine_pair import Pair
from tmqp import Frame, MessageType
from tmqp_client._core import requests
from tmqp_client._core.ids import IdSource
from tmqp_client._core.letters import DirectRequest, RouterRequest
from tmqp_client._core.pending import Kind, Pending
from tmqp_client.custom import CustomRequest

RESPONSE = MessageType.RESPONSE
ACKNOWLEDGE = MessageType.ACKNOWLEDGE
KINDS = ["operation", "push", "cache", "direct", "request", "by name", "router", "custom"]


def asked(pair: Pair, what: str) -> Pending:
    """Ask something of a kind; its queue is orders/1, its client "clerk"."""
    machine = pair.machine
    if what == "push":
        return machine.push("orders", 1, b"x", (), 0.0, confirm=True)
    if what == "cache":
        request = requests.PullRequest("orders", 1)
        return machine.read_cache(request, 0.0, None)
    kind = Kind.DIRECT if what == "direct" else Kind.REQUEST
    letter = ("clerk", 0, b"?", (), False, False)
    if what in ("direct", "request"):
        return machine.request(DirectRequest(kind, *letter), 0.0)
    if what == "by name":
        return machine.request(DirectRequest(kind, "@name:clerks", *letter[1:]), 0.0)
    if what == "router":
        return machine.request(RouterRequest(kind, "orders", 0, b"?", (), False), 0.0)
    if what == "custom":
        return machine.request(CustomRequest(kind, "orders", 0, b"?", (), False), 0.0)
    return machine.request(requests.remove_queue("orders", 1), 0.0)


def counts(what: str, source: str, kind: MessageType) -> bool:
    """Whether a positive answer of that client settles it, as a table says it."""
    if what == "direct":
        return source == "clerk" and kind == ACKNOWLEDGE
    if what == "request":
        return source == "clerk" and kind == RESPONSE
    if what in ("by name", "router"):
        return kind == RESPONSE
    return False


@given(
    what=st.sampled_from(KINDS),
    source=st.sampled_from(["clerk", "thief"]),
    kind=st.sampled_from([RESPONSE, ACKNOWLEDGE]),
    high=st.booleans(),
)
def test_only_who_was_asked_answers(what: str, source: str, kind: MessageType, high: bool) -> None:
    pair = Pair()
    pending = asked(pair, what)
    frame = Frame.build(
        kind, "c1", 0, message_id=pending.message_id, source=source, high_priority=high
    )
    pair.say(frame)
    assert pending.done == counts(what, source, kind)


@pytest.mark.parametrize("what", [each for each in KINDS if each not in ("push", "direct")])
def test_the_servers_word_counts(what: str) -> None:
    pair = Pair()
    pending = asked(pair, what)
    pair.say(Frame.build(RESPONSE, "c1", 404, message_id=pending.message_id))
    assert pending.done


def test_a_consumers_acknowledge_confirms_a_push() -> None:
    """The server passes it on as it came, with the consumer's name (F79)."""
    pair = Pair()
    pending = asked(pair, "push")
    frame = Frame.build(
        ACKNOWLEDGE, "Orders", 1, message_id=pending.message_id, source="a consumer"
    )
    pair.say(frame)
    assert pending.done
    assert pending.error is None


def test_a_refused_operation_cannot_be_answered_before_the_server() -> None:
    pair = Pair()
    pending = asked(pair, "operation")
    forged = Frame.build(RESPONSE, "c1", 0, message_id=pending.message_id, source="thief")
    pair.say(forged, Frame.build(RESPONSE, "c1", 401, message_id=pending.message_id))
    assert "401" in str(pending.error)


def test_ids_cannot_be_predicted() -> None:
    """They had 64 fixed bits and counted."""
    source = IdSource(secrets.token_hex)
    ids = [source() for _ in range(1_000)]
    assert len({*ids}) == 1_000
    assert all(len(each) == 32 and int(each, 16) >= 0 for each in ids)
    for place in range(0, 32, 4):
        # Four digits of a thousand random ids hardly ever agree; a fixed part would.
        assert len({each[place : place + 4] for each in ids}) > 900
    assert IdSource(secrets.token_hex)() not in ids
