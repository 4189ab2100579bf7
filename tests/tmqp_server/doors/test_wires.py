"""The keys of messages, as doors read them."""

from __future__ import annotations

import pytest

from tmqp.constants import TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame
from tmqp_server.doors.letters import Letter, Letters
from tmqp_server.doors.wires import LetterWires
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message


class Owner:
    """A protocol whose wire form is a letter."""

    name = "letters"

    def letter(self, wire: object) -> Letter:
        assert isinstance(wire, Letter)
        return wire

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        return wire, 0


def key_of(wire: object, door: str = "tmqp") -> str:
    message = Message("m", Origin(1, "p", None, None, door), "c", 1, 10, wire, 0, 1)
    return LetterWires(Letters([Owner()])).key_of(message)


def pushed(*headers: tuple[str, str]) -> Frame:
    return Frame.build(TYPE_QUEUE_MESSAGE, "c", 1, b"x", message_id="m", headers=headers)


def test_a_header_in_any_case() -> None:
    assert key_of(pushed(("Group-Key", "customer-7"))) == "customer-7"
    assert key_of(pushed(("a", "b"), ("GROUP-key", "größe"))) == "größe"
    assert key_of(pushed(("Group-Key", "first"), ("Group-Key", "second"))) == "first"


def test_none() -> None:
    assert key_of(pushed()) == ""
    assert key_of(pushed(("Group-Key", ""))) == ""
    assert key_of(pushed(("X-Group-Key", "customer-7"))) == ""


def test_a_message_of_another_protocol() -> None:
    letter = Letter(b"x")
    assert key_of(letter, "letters") == ""
    letter.group_key = "customer-7"
    assert key_of(letter, "letters") == "customer-7"
    with pytest.raises(LookupError):
        key_of(letter, "nobody")
