"""Places in queues, and their forms in Spark's checkpoints and the user's options.

A place is the sequence of the *next* message to read; the reader's cursor at the broker, the last
processed sequence, is one less.  In a checkpoint the places of all queues are one JSON object::

    {"q": {"orders/7": {"i": "<incarnation>", "s": 12345}}, "v": 1}

``i`` is the incarnation of the queue.  ``b`` is only present in the batch in which a queue was new,
and is the place where it began.  Keys are sorted, because Spark compares the text.  Unknown keys
are ignored, so that a later version can add some.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from tmqp_spark.errors import InvalidOption, SparkError

__all__ = [
    "EARLIEST",
    "LATEST",
    "Place",
    "Places",
    "parse_key",
    "parse_places",
    "queue_key",
    "read_checkpoint",
    "write_checkpoint",
]

_VERSION: Final = 1
#: Instead of a sequence, as in Kafka's connector.
LATEST: Final = -1
EARLIEST: Final = -2


class Place:
    """The place of a reader in a queue: ``next`` is the first sequence that it has not read.

    ``begin`` is where it began, only in the batch in which the queue was new; otherwise None.
    """

    __slots__ = ("begin", "incarnation", "next")

    def __init__(self, incarnation: str, next: int, begin: int | None = None) -> None:
        self.incarnation = incarnation
        self.next = next
        self.begin = begin

    def __repr__(self) -> str:
        begun = "" if self.begin is None else f" begun at {self.begin}"
        return f"<Place {self.next} of {self.incarnation}{begun}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Place):
            return NotImplemented
        mine = (self.incarnation, self.next, self.begin)
        return mine == (other.incarnation, other.next, other.begin)

    __hash__ = None  # type: ignore[assignment]  # mutable


#: Places by ``channel/queue``.
Places = dict[str, Place]


def queue_key(channel: str, queue: int) -> str:
    """Return the name of a queue in offsets and options: ``orders/7``."""
    return f"{channel}/{queue}"


def parse_key(text: str) -> tuple[str, int]:
    """Read the channel and queue of ``orders/7``.

    :raises ValueError: if the text has another form.
    """
    channel, slash, queue = text.strip().rpartition("/")
    if not slash or not channel or not (queue.isascii() and queue.isdigit()):
        raise ValueError(f"{text!r} is not channel/queue, such as orders/7")
    number = int(queue)
    if number > 65_535:
        raise ValueError(f"{text!r}: a queue id is 0 to 65535")
    return channel, number


def write_checkpoint(places: Places) -> dict[str, Any]:
    """Return places as plain data with sorted keys, for Spark's checkpoint."""
    queues: dict[str, Any] = {}
    for key in sorted(places):
        place = places[key]
        entry: dict[str, Any] = {} if place.begin is None else {"b": place.begin}
        queues[key] = {**entry, "i": place.incarnation, "s": place.next}
    return {"q": queues, "v": _VERSION}


def read_checkpoint(data: Mapping[str, Any]) -> Places:
    """Read places from Spark's checkpoint.

    :raises SparkError: if another format, or a later version of this one, wrote it.
    """
    version, queues = data.get("v"), data.get("q")
    if not isinstance(version, int) or not isinstance(queues, Mapping):
        raise SparkError(
            "the checkpoint holds offsets of another source; give the query its own checkpoint"
        )
    if version > _VERSION:
        raise SparkError(
            f"the checkpoint was written by a later version of tmqp (offsets version {version},"
            f" this one knows {_VERSION}): install that"
        )
    places: Places = {}
    for key, entry in queues.items():
        try:
            parse_key(key)
            begin = entry.get("b")
            places[key] = Place(
                str(entry["i"]), int(entry["s"]), None if begin is None else int(begin)
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            raise SparkError(
                f"the checkpoint's offset of {key!r} is unreadable: {entry!r}"
            ) from None
    return places


def parse_places(name: str, text: str, least: int = EARLIEST) -> dict[str, int]:
    """Read an option with numbers by queue: ``{"orders/7": 120, "orders/8": -2}``.

    The nested form of the Kafka connector, ``{"orders": {"7": 120}}``, is accepted, too.

    :param name: the option's name.
    :param least: the smallest valid number.
    :raises InvalidOption: if the text has another form.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InvalidOption(
            f'option {name} must be JSON such as {{"orders/7":120}}: {error}'
        ) from None
    if not isinstance(data, dict) or not data:
        raise InvalidOption(f'option {name} must be a JSON object such as {{"orders/7":120}}')
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            flat.update({f"{key}/{queue}": number for queue, number in value.items()})
        else:
            flat[key] = value
    found: dict[str, int] = {}
    for key, value in flat.items():
        try:
            channel, queue = parse_key(key)
        except ValueError as error:
            raise InvalidOption(f"option {name}: {error}") from None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**63:
            raise InvalidOption(
                f"option {name}: {key} needs a number from {least} on, got {value!r}"
            )
        found[queue_key(channel, queue)] = value
    return found
