"""Reads long lists of queues in requests: the items of operations 711, 718 and 720.

The models (``GroupOffsets``, ``KnownOffsets``) take 2 to 4 us an item, so 10,000 of them would keep
other clients waiting (reliability.md, F8).  This reads the same lists in a tenth of that.  A test
compares both on unusual items; the error about an invalid item comes from the models.
"""

from __future__ import annotations

from typing import Final

from tmqp import models
from tmqp.constants import MAX_QUEUE_ID
from tmqp.frames import Frame
from tmqp.models import ModelError
from tmqp.models._kinds import MAX_TEXT_CHARACTERS
from tmqp.models._model import parse_items
from tmqp_server.doors.native.parameters import MOST, BadRequestError

__all__ = ["group_places", "known_places"]

#: A channel, a queue of it, a sequence and an incarnation.
_Place = tuple[str, int, int, str]
_NOT_GIVEN: Final = 0


def group_places(frame: Frame) -> list[_Place]:
    """The position of a group in each queue (718, 720).

    :raises BadRequestError: when the payload is not such a list.
    """
    return _places(frame, models.GroupOffsets, "Sequence")


def known_places(frame: Frame) -> list[_Place]:
    """The latest sequence of each queue that a client already knows while it waits for changes
    (711).

    :raises BadRequestError: when the payload is not such a list.
    """
    return _places(frame, models.KnownOffsets, "Latest")


def _places(
    frame: Frame, model: type[models.GroupOffsets | models.KnownOffsets], number: str
) -> list[_Place]:
    most_bytes = max(frame.payload_size, model.max_bytes)
    try:
        items = parse_items(model, frame.payload, max_bytes=most_bytes)
    except ModelError as error:
        raise BadRequestError(str(error)) from error
    places: list[_Place] = []
    for item in items:
        place = _read(item, number)
        if place is None:
            raise _fault(model, item, len(places))
        places.append(place)
    return places


def _read(item: object, number: str) -> _Place | None:
    """Read one item; None if it is invalid."""
    if not isinstance(item, dict):
        return None
    channel: object = item.get("Channel")
    queue: object = item.get("Queue")
    sequence: object = item.get(number)
    incarnation: object = item.get("Incarnation")
    found = 4
    if channel is None:
        found -= 1
    if queue is None:
        found -= 1
    if sequence is None:
        found -= 1
    if incarnation is None:
        found -= 1
    if found < 4 and found < len(item):
        # Names are read in any case; those that are spelt as the specification does win.
        folded: dict[str, object] = {}
        for key, value in item.items():
            if value is not None:
                folded[key.lower()] = value
        if channel is None:
            channel = folded.get("channel")
        if queue is None:
            queue = folded.get("queue")
        if sequence is None:
            sequence = folded.get(number.lower())
        if incarnation is None:
            incarnation = folded.get("incarnation")
    if sequence is None:
        sequence = _NOT_GIVEN
    if incarnation is None:
        incarnation = ""
    if not isinstance(channel, str) or not isinstance(incarnation, str):
        return None
    if not isinstance(queue, int) or not isinstance(sequence, int):
        return None
    if isinstance(queue, bool) or isinstance(sequence, bool):
        return None
    if not (0 <= queue <= MAX_QUEUE_ID and 0 <= sequence <= MOST):
        return None
    if not (_is_sound(channel) and _is_sound(incarnation)):
        return None
    return channel, queue, sequence, incarnation


def _is_sound(value: str) -> bool:
    """Whether a text is short enough, and UTF-8 can encode it."""
    if len(value) > MAX_TEXT_CHARACTERS:
        return False
    if value.isascii():
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True


def _fault(
    model: type[models.GroupOffsets | models.KnownOffsets], item: object, index: int
) -> BadRequestError:
    try:
        model.from_object(item)
    except ModelError as error:
        told = ModelError(error.model, error.property_name, error.expected, error.got, index)
        return BadRequestError(str(told))
    raise AssertionError(f"the model reads what the list does not: {item!r}")
