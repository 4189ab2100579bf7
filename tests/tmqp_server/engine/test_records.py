"""Records print all their fields, in order, the same in every build."""

from __future__ import annotations

import pytest

from tmqp_server.engine import commands, effects, events, options
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message, Rare
from tmqp_server.engine.records import Record, field_names

MODULES = (commands, effects, events, options)
#: What doors make, to be carried by records.
CARRIED = {
    commands.Credentials,
    commands.Envelope,
    commands.HttpMessage,
    commands.RunNotes,
    commands.RunWire,
}
RECORDS = [
    getattr(module, name)
    for module in MODULES
    for name in module.__all__
    if isinstance(getattr(module, name), type) and getattr(module, name) not in CARRIED
]


def test_credentials_print_no_secret() -> None:
    connect = commands.Connect(
        1, None, "id", credentials=commands.Credentials("password", "secret", "ann")
    )
    assert "credentials=Credentials('password', user='ann')," in repr(connect)
    assert "secret" not in repr(connect)


def test_a_push_prints_everything() -> None:
    push = commands.Push(7, "id", "ch", 1, True, False, 9, b"wire")
    assert repr(push) == (
        "Push(session=7, message_id='id', channel='ch', queue_id=1, high_priority=True,"
        " wants_confirm=False, size=9, wire=b'wire', extras=None)"
    )


def test_a_delivery_prints_everything() -> None:
    producer = Origin(1, "p", None, None, "")
    message = Message("id", producer, "ch", 1, 9, b"w", 3, 5)
    delivery = effects.Deliver([1, 2], message, "Ch", True, False, True, False)
    assert repr(delivery) == (
        "Deliver(sessions=[1, 2], message=Message('id' of 'p' in 'ch'/1, sequence=5, attempts=0,"
        " size=9, marks=3, wire=b'w'), channel='Ch', first_acquirer=True,"
        " wants_acknowledge=False, redelivered=True, hide_source=False, attempt=1)"
    )


def test_fields_in_the_order_of_init() -> None:
    assert field_names(commands.Join) == (
        "session",
        "request",
        "channel",
        "credit",
        "filter",
        "terms",
        "creates",
        "hears_lapses",
    )
    assert field_names(commands.Block) == ("session",)
    assert field_names(effects.Erase) == ("ticket", "key", "sequence", "depends")
    assert field_names(Record) == ()
    assert field_names(Rare) == (
        "put_backs",
        "hops",
        "expires_at",
        "due_at",
        "ticket",
        "stored",
        "old_key",
        "old",
        "between",
        "key",
        "held_confirm",
        "receivers",
        "timing",
        "settling",
    )


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_every_record_has_its_story(kind: type) -> None:
    assert issubclass(kind, Record)
    names = field_names(kind)
    assert len(set(names)) == len(names)
