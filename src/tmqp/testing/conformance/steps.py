"""The steps of a case: the messages sent on a line, and the acceptable answers.

A *line* is one connection, named by a letter; its client id is ``$a`` for the line ``a``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol, TypeAlias

from tmqp.constants import (
    DEFAULT_TTL,
    SERVER_HELLO,
    TYPE_PING,
    TYPE_PONG,
    TYPE_SERVER,
    TYPE_TERMINATE,
)
from tmqp.testing.conformance.patterns import Expected, Names, describe_value, type_name
from tmqp.testing.conformance.verdicts import Verdict
from tmqp.testing.reference import header_block_bytes, write_frame

__all__ = [
    "AUTO",
    "Answer",
    "Close",
    "End",
    "Fence",
    "Hear",
    "Item",
    "Message",
    "Open",
    "Pairs",
    "Restart",
    "Said",
    "Say",
    "Step",
    "Wait",
]

#: A message id that the player makes, another one for each message.
AUTO: Final = "\0auto"
_WITHOUT_ID: Final = (TYPE_PING, TYPE_PONG, TYPE_TERMINATE)
Pairs: TypeAlias = Sequence[tuple[str, str]]


class End(Enum):
    """How the connection must be after an answer."""

    OPEN = "the connection stays open"
    CLOSED = "the connection ends"
    EITHER = "the connection may stay open or end"


class Fence(Enum):
    """How the player learns that nothing more arrives."""

    AUTO = "a ping once the client is accepted; waiting for the end or a moment otherwise"
    PING = "a ping: what was sent before its pong is there when the pong is"
    ASK = "a request that is always answered; for cases about pings"
    QUIET = "a moment of silence"
    FIRST = "none: the first answer that fits is taken"
    END = "the end of the stream"


class Said(Protocol):
    """Something to send that is not just fixed bytes."""

    def encode(self, names: Names, next_id: str, token: str = "") -> bytes:
        """Return its bytes.

        :param next_id: for a message without an id of its own.
        :param token: for a hello without one.
        """

    def describe(self) -> str:
        """Describe it in one line."""


class Message:
    """A message to send, valid or not.

    Texts may contain ``$name``.  ``tier``, ``announced_payload_bytes``, ``announced_block_bytes``
    and ``header_block`` make invalid messages, as in :func:`tmqp.testing.write_frame`.

    :param flags: letters of ``F``, ``H``, ``R`` and ``A``.
    """

    __slots__ = (
        "announced_block_bytes",
        "announced_payload_bytes",
        "content_type",
        "flags",
        "header_block",
        "headers",
        "kind",
        "message_id",
        "payload",
        "source",
        "target",
        "tier",
        "ttl",
    )

    def __init__(
        self,
        kind: int,
        target: str | bytes = "",
        content_type: int = 0,
        payload: bytes = b"",
        *,
        flags: str = "",
        message_id: str | bytes | None = None,
        source: str | bytes = "",
        headers: Pairs = (),
        ttl: int = DEFAULT_TTL,
        header_block: bytes | None = None,
        tier: int | None = None,
        announced_payload_bytes: int | None = None,
        announced_block_bytes: int | None = None,
    ) -> None:
        assert set(flags) <= set("FHRA"), flags
        self.kind = kind
        self.target = target
        self.content_type = content_type
        self.payload = payload
        self.flags = flags
        self.message_id: str | bytes = "" if kind in _WITHOUT_ID else AUTO
        if message_id is not None:
            self.message_id = message_id
        self.source = source
        self.headers = tuple(headers)
        self.ttl = ttl
        self.header_block = header_block
        self.tier = tier
        self.announced_payload_bytes = announced_payload_bytes
        self.announced_block_bytes = announced_block_bytes

    def encode(self, names: Names, next_id: str, token: str = "") -> bytes:
        """Return the message's bytes.

        :param next_id: for a message without an id of its own.
        :param token: added to a hello that has none.
        """
        block = self.header_block
        payload = names.data(self.payload)
        is_hello = self.kind == TYPE_SERVER and self.content_type == SERVER_HELLO
        if token and is_hello and payload.endswith(b"\r\n") and b"Client-Token" not in payload:
            payload += f"Client-Token: {token}\r\n".encode()
        if self.headers:
            pairs = [(names.text(key), names.text(value)) for key, value in self.headers]
            block = header_block_bytes([(key.encode(), value.encode()) for key, value in pairs])
        given = next_id if self.message_id == AUTO else self.message_id
        return write_frame(
            self.kind,
            first_acquirer="F" in self.flags,
            high_priority="H" in self.flags,
            pending_response="R" in self.flags,
            pending_acknowledge="A" in self.flags,
            ttl=self.ttl,
            message_id=_name(given, names),
            source=_name(self.source, names),
            target=_name(self.target, names),
            content_type=self.content_type,
            header_block=block,
            payload=payload,
            tier=self.tier,
            announced_payload_bytes=self.announced_payload_bytes,
            announced_block_bytes=self.announced_block_bytes,
        )

    def describe(self) -> str:
        """Describe the message in one line."""
        parts = [type_name(self.kind), *([self.flags] if self.flags else [])]
        if self.message_id != AUTO and self.message_id:
            parts.append(f"message_id={describe_value(self.message_id)}")
        for field, default in (
            ("content_type", 0),
            ("source", ""),
            ("target", ""),
            ("ttl", DEFAULT_TTL),
            ("payload", b""),
            ("header_block", None),
            ("tier", None),
            ("announced_payload_bytes", None),
            ("announced_block_bytes", None),
        ):
            value = getattr(self, field)
            if value != default:
                parts.append(f"{field}={describe_value(value)}")
        parts += [f"{key}:{value}" for key, value in self.headers]
        return " ".join(parts)


def _name(value: str | bytes, names: Names) -> bytes:
    return value if isinstance(value, bytes) else names.text(value).encode()


#: What can be sent: a message, or fixed bytes.
Item: TypeAlias = "Said | bytes"


class Answer:
    """One acceptable answer.

    :param expected: the messages that must have arrived, all of them.
    :param end: how the connection must be.
    :param ordered: in this order; otherwise in any order.
    :param more: other messages may have arrived, too.
    :param verdict: the verdict of the case.
    :param message: the explanation for the implementer, if the verdict is not PASS.
    """

    __slots__ = ("end", "expected", "message", "more", "ordered", "verdict")

    def __init__(
        self,
        *expected: Expected,
        end: End = End.OPEN,
        ordered: bool = True,
        more: bool = False,
        verdict: Verdict = Verdict.PASS,
        message: str = "",
    ) -> None:
        assert verdict is Verdict.PASS or message, "say what is not as it should be"
        self.expected = expected
        self.end = end
        self.ordered = ordered
        self.more = more
        self.verdict = verdict
        self.message = message

    def describe(self) -> str:
        """Describe the answer in one line."""
        joint = ", then " if self.ordered else " and "
        parts = [each.describe() for each in self.expected]
        text = joint.join(parts) or "nothing"
        text += " (among others)" if self.more else ""
        text += "" if self.end is End.OPEN else f"; {self.end.value}"
        return text if self.verdict is Verdict.PASS else f"{text} -> {self.verdict}: {self.message}"


class Open:
    """Open a line; in a case for clients, wait until the client opens it.

    :param again: the client is expected to connect again on its own (reconnecting).
    :param at: the address of the peer, if it has several; empty for the first.
    """

    __slots__ = ("again", "at", "line")

    def __init__(self, line: str, *, again: bool = False, at: str = "") -> None:
        self.line = line
        self.again = again
        self.at = at

    def describe(self) -> str:
        """Describe the step in one line."""
        return f"{self.line}: open ({self.at})" if self.at else f"{self.line}: open"


class Say:
    """Send messages or bytes on a line, in one write.

    :param chop: instead, pieces of this number of bytes, or cut at these offsets.
    """

    __slots__ = ("chop", "items", "line")

    def __init__(self, line: str, *items: Item, chop: int | tuple[int, ...] | None = None) -> None:
        self.line = line
        self.items = items
        self.chop = chop

    def describe(self) -> str:
        """Describe the step in one line."""
        parts = [
            f"bytes {_hex(item)}" if isinstance(item, bytes) else item.describe()
            for item in self.items
        ]
        how = "" if self.chop is None else f" (cut: {self.chop})"
        return f"{self.line}: send {'; '.join(parts)}{how}"


def _hex(data: bytes) -> str:
    shown = data[:40].hex(" ")
    return shown if len(data) <= 40 else f"{shown} ... ({len(data)} bytes)"


class Hear:
    """Collect the messages that arrive on a line, and compare them with the acceptable answers; the
    first that fits counts.

    :param within: seconds that the peer may take, if it waits for a timeout of its own.
    """

    __slots__ = ("answers", "fence", "line", "within")

    def __init__(
        self,
        line: str,
        *answers: Answer,
        fence: Fence = Fence.AUTO,
        within: float | None = None,
    ) -> None:
        assert answers
        self.line = line
        self.answers = answers
        self.fence = fence
        self.within = within

    def describe(self) -> str:
        """Describe the step in one line."""
        return f"{self.line}: expect {' | '.join(each.describe() for each in self.answers)}"


class Close:
    """End a line.

    :param how: ``"end"`` closes it, ``"half"`` ends the sending direction, ``"abort"`` resets it if
        the transport can.
    """

    __slots__ = ("how", "line")

    def __init__(self, line: str, how: str = "end") -> None:
        assert how in ("end", "half", "abort"), how
        self.line = line
        self.how = how

    def describe(self) -> str:
        """Describe the step in one line."""
        return f"{self.line}: {self.how}"


class Wait:
    """Let this number of seconds pass, for cases about timeouts."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def describe(self) -> str:
        """Describe the step in one line."""
        return f"wait {self.seconds:g} s"


class Restart:
    """Kill the server and start it again; all lines are lost."""

    __slots__ = ()

    def describe(self) -> str:
        """Describe the step in one line."""
        return "kill the server and start it again"


Step: TypeAlias = "Open | Say | Hear | Close | Wait | Restart"
