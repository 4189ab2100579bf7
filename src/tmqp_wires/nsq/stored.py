"""The stored form of a message of NSQ: a head, followed by the body as it was published.

The head begins with the version of the form; then come the sizes of the topic and of the source in
one byte each, the time of publication, the id, the topic and the source.  The body extends to the
end.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, final

from tmqp_wires.nsq.writing import MESSAGE_HEAD_BYTES, MESSAGE_ID_AT, MESSAGE_TIME_AT

__all__ = ["HEAD_BYTES", "ID_AT", "StoredMessage", "read", "stored_frame", "stored_head"]

_VERSION: Final = 1
_HEAD: Final = Struct(">BBBq16s")
#: Bytes of the head without topic and source.
HEAD_BYTES: Final = _HEAD.size
#: Where in the head the id begins.
ID_AT: Final = 11
_MAX_TEXT_BYTES: Final = 255
#: How the head begins without a topic, by the size of the source.
_BEGINNINGS: Final = [bytes((_VERSION, 0, size)) for size in range(_MAX_TEXT_BYTES + 1)]


@final
class StoredMessage:
    """A message read from its stored form.  ``topic`` is the topic that it was published to, empty
    if it is that of its queue; ``source`` is who published it."""

    __slots__ = ("timestamp_ns", "message_id", "topic", "source", "body")

    def __init__(
        self, timestamp_ns: int, message_id: bytes, topic: bytes, source: bytes, body: bytes
    ) -> None:
        self.timestamp_ns = timestamp_ns
        self.message_id = message_id
        self.topic = topic
        self.source = source
        self.body = body

    def __repr__(self) -> str:
        return (
            f"StoredMessage({self.timestamp_ns}, {self.message_id!r}, {self.topic!r},"
            f" {self.source!r}, {self.body!r})"
        )


def stored_head(timestamp_ns: int, message_id: bytes, topic: bytes, source: bytes) -> bytes:
    """The head, which is stored in front of the body; its size depends only on topic and source.

    :raises ValueError: when topic or source has more than 255 bytes, or the id not 16.
    """
    if len(topic) > _MAX_TEXT_BYTES or len(source) > _MAX_TEXT_BYTES or len(message_id) != 16:
        raise ValueError("topic and source have at most 255 bytes, an id has 16")
    head = _HEAD.pack(_VERSION, len(topic), len(source), timestamp_ns, message_id)
    return head + topic + source


def stored_frame(frame: bytes, source: bytes) -> bytes:
    """The stored form of the message in a frame, without a topic.

    :param source: at most 255 bytes.
    """
    return b"".join(
        (
            _BEGINNINGS[len(source)],
            frame[MESSAGE_TIME_AT : MESSAGE_TIME_AT + 8],
            frame[MESSAGE_ID_AT:MESSAGE_HEAD_BYTES],
            source,
            frame[MESSAGE_HEAD_BYTES:],
        )
    )


def read(data: bytes) -> StoredMessage:
    """Read a message from its stored form.

    :raises ValueError: when it cannot be read.
    """
    if len(data) < _HEAD.size:
        raise ValueError(f"{len(data)} bytes are not a message of NSQ")
    version, topic_size, source_size, timestamp_ns, message_id = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise ValueError(f"version {version} of a message of NSQ is unknown")
    topic_at = _HEAD.size
    source_at = topic_at + topic_size
    body_at = source_at + source_size
    if body_at > len(data):
        raise ValueError(f"a message of NSQ of {len(data)} bytes ends in its head")
    return StoredMessage(
        timestamp_ns, message_id, data[topic_at:source_at], data[source_at:body_at], data[body_at:]
    )
