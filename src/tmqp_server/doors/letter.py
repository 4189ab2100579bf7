"""``Letter``: the contents of a message in a neutral form, and its text fields."""

from __future__ import annotations

from typing import Final, TypeAlias, final

__all__ = [
    "BOOLEAN",
    "BYTE",
    "DOUBLE",
    "FLOAT",
    "INT",
    "LONG",
    "REGULAR_PRIORITY",
    "SHORT",
    "TOP_PRIORITY",
    "Letter",
    "Property",
    "PropertyValue",
    "read_text_field",
    "text_fields",
]

PropertyValue: TypeAlias = bool | int | float

#: Kinds of properties: the letters of ``Property-Types``.
BOOLEAN: Final = "z"
BYTE: Final = "b"
SHORT: Final = "h"
INT: Final = "i"
LONG: Final = "l"
FLOAT: Final = "f"
DOUBLE: Final = "d"

#: Priorities go from 0 to 9; these are those of regular and of high-priority TMQP messages.
REGULAR_PRIORITY: Final = 4
TOP_PRIORITY: Final = 9


@final
class Property:
    """A typed property of a letter: ``kind`` is one of BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT,
    DOUBLE."""

    __slots__ = ("kind", "name", "value")

    def __init__(self, name: str, kind: str, value: PropertyValue) -> None:
        self.name = name
        self.kind = kind
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Property):
            return NotImplemented
        mine, others = (self.name, self.kind), (other.name, other.kind)
        # By their texts: a NaN equals itself, and 1 is not True.
        return mine == others and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((self.name, self.kind, repr(self.value)))

    def __repr__(self) -> str:
        return f"Property({self.name!r}, {self.kind!r}, {self.value!r})"


#: What a letter prints; compiled classes have no ``__slots__``.
_FIELDS: Final = (
    "message_id", "source", "channel", "queue_id", "content_type", "correlation_id", "reply_to",
    "kind", "priority", "timestamp_ms", "expires_ms", "group_key", "traceparent", "tracestate",
    "headers", "properties", "body",
)  # fmt: skip


@final
class Letter:
    """A message in the neutral form.

    An empty text means that a field is not given, and so does 0 for a time.  ``channel`` is the
    producer's spelling; of a direct message it is the client that the message is for.  ``kind`` is
    what the producer calls the type of the message.  Times are in milliseconds since 1970.
    ``headers`` are texts, in order, and may repeat names; ``properties`` are typed.  ``is_view``
    says that the body was made for other protocols, because only the producer's own protocol can
    read what it sent.
    """

    __slots__ = (
        "body",
        "channel",
        "content_type",
        "correlation_id",
        "expires_ms",
        "group_key",
        "headers",
        "is_view",
        "kind",
        "message_id",
        "priority",
        "properties",
        "queue_id",
        "reply_to",
        "source",
        "timestamp_ms",
        "traceparent",
        "tracestate",
    )

    def __init__(
        self,
        body: bytes,
        message_id: str = "",
        source: str = "",
        channel: str = "",
        queue_id: int = 0,
    ) -> None:
        self.body = body
        self.message_id = message_id
        self.source = source
        self.channel = channel
        self.queue_id = queue_id
        self.content_type = ""
        self.correlation_id = ""
        self.reply_to = ""
        self.kind = ""
        self.priority = REGULAR_PRIORITY
        self.timestamp_ms = 0
        self.expires_ms = 0
        self.group_key = ""
        self.traceparent = ""
        self.tracestate = ""
        self.headers: list[tuple[str, str]] = []
        self.properties: list[Property] = []
        self.is_view = False

    @property
    def high_priority(self) -> bool:
        """Whether its priority counts as high in TMQP."""
        return self.priority > REGULAR_PRIORITY

    def __repr__(self) -> str:
        parts = [f"{name}={getattr(self, name)!r}" for name in _FIELDS]
        return f"Letter({', '.join(parts)})"


# --- Fields that are texts -----------------------------------------------------------------------


def read_text_field(letter: Letter, name: str, text: str) -> bool:
    """Set the text field of this name; False if there is no such field.

    The names are those of TMQP's headers in lower case: ``content-type``, ``correlation-id``,
    ``reply-to``, ``type``, ``group-key``, ``traceparent`` and ``tracestate``.
    """
    if name == "content-type":
        letter.content_type = text
    elif name == "correlation-id":
        letter.correlation_id = text
    elif name == "reply-to":
        letter.reply_to = text
    elif name == "type":
        letter.kind = text
    elif name == "group-key":
        letter.group_key = text
    elif name == "traceparent":
        letter.traceparent = text
    elif name == "tracestate":
        letter.tracestate = text
    else:
        return False
    return True


def text_fields(letter: Letter) -> list[tuple[str, str]]:
    """The text fields that are not empty, under the names of :func:`read_text_field`."""
    return [
        pair
        for pair in (
            ("content-type", letter.content_type),
            ("correlation-id", letter.correlation_id),
            ("reply-to", letter.reply_to),
            ("type", letter.kind),
            ("group-key", letter.group_key),
            ("traceparent", letter.traceparent),
            ("tracestate", letter.tracestate),
        )
        if pair[1]
    ]
