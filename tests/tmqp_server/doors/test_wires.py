"""What doors know of messages for the engine: their keys, and what they say as dead letters."""

from __future__ import annotations

import pytest

from tmqp.codec import FrameDecoder
from tmqp.constants import MAX_HEADER_BLOCK_BYTES, TYPE_QUEUE_MESSAGE
from tmqp.frames import Frame
from tmqp.testing import write_frame
from tmqp_server.doors.letter import Letter
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import OwnBodies
from tmqp_server.doors.wires import LetterWires
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message


class Owner(OwnBodies):
    """A protocol whose wire form is a letter."""

    name = "letters"
    number = 200

    def letter(self, wire: object) -> Letter:
        assert isinstance(wire, Letter)
        return wire


def key_of(wire: object, door: str = "tmqp") -> str:
    message = Message("m", Origin(1, "p", None, None, door), "c", 1, 10, wire, 0, 1)
    return LetterWires(Letters([Owner()])).key_of(message)


def pushed(*headers: tuple[str, str]) -> Frame:
    return Frame.build(TYPE_QUEUE_MESSAGE, "c", 1, b"x", message_id="m", headers=headers)


@pytest.mark.parametrize(
    ("language", "text", "accepted"),
    [
        ("sql92", "kind = 'order' AND JMSPriority = 4", True),
        ("sql92", "number > 3", False),
        ("sql92-converting", "number > 3", True),
        ("sql92-converting", "number > 5", False),
    ],
)
def test_a_selector_is_a_filter_as_others_are(language: str, text: str, accepted: bool) -> None:
    chosen = LetterWires(Letters()).filter_of(language, text)
    wire = pushed(("kind", "order"), ("number", "4"))
    message = Message("m", Origin(1, "p", None, None, "tmqp"), "c", 1, 10, wire, 0, 1)
    assert chosen.accepts(message) is accepted
    assert chosen.identity() == (language, text)


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


def as_dead_letter(wire: object, door: str = "tmqp") -> tuple[object, int]:
    message = Message("m", Origin(1, "p", None, None, door), "c", 1, 10, wire, 0, 1)
    return LetterWires(Letters([Owner()])).with_reason(message, "expired", "c;1")


@pytest.mark.parametrize("spare", [0, 1, 2, 60])
def test_a_full_header_block_without_its_last_line_end_failed_at_every_deadline(spare: int) -> None:
    """Written anew it ends with one, which is too much: such a message says nothing more."""
    block = b"k:" + b"v" * (MAX_HEADER_BLOCK_BYTES - 2 - spare)
    (frame,) = FrameDecoder().feed(write_frame(message_id=b"m", header_block=block))
    wire, more = as_dead_letter(frame)
    assert isinstance(wire, Frame)
    assert wire.headers == frame.headers
    assert len(wire.raw) == len(frame.raw) + more


def test_a_full_header_block_does_not_keep_what_a_producer_forged() -> None:
    forged = b"Dead-Letter-Reason:full\r\n"
    block = forged + b"k:" + b"v" * (MAX_HEADER_BLOCK_BYTES - len(forged) - 2)
    (frame,) = FrameDecoder().feed(write_frame(message_id=b"m", header_block=block))
    wire, _ = as_dead_letter(frame)
    assert isinstance(wire, Frame)
    assert [key for key, _ in wire.headers] == ["k"]


def test_a_dead_letter_that_nobody_reads_stays_as_it_is() -> None:
    letter = Letter(b"x")
    assert as_dead_letter(letter, "nobody") == (letter, 0)
