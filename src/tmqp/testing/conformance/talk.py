"""The words of scripts: connect, ask, push, deliver, refuse.

Each returns a step, a list of steps, a message to send or a pattern to expect.  A script reads from
top to bottom::

    case(
        "server.channel.join-creates",
        "Join creates a missing channel",
        "A consumer must not depend on an administrator to begin.",
        "F48",
        connect("a"),
        ask("a", Operation.JOIN, "$ch"),
        say("a", queue_message("$ch", 1, b"x", message_id="m1")),
        hear("a", Answer(delivery("$ch", 1, b"x"))),
    )
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tmqp.constants import (
    PING_BYTES,
    PREAMBLE,
    SERVER_ACCEPTED,
    SERVER_HELLO,
    TYPE_ACKNOWLEDGE,
    TYPE_DIRECT_MESSAGE,
    TYPE_EVENT,
    TYPE_PONG,
    TYPE_PULL_REQUEST,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
    TYPE_ROUTER,
    TYPE_SERVER,
    TYPE_TERMINATE,
    Operation,
)
from tmqp.testing.conformance.patterns import ANY, SENT, NoHeader, Pattern, Preamble
from tmqp.testing.conformance.steps import (
    Answer,
    End,
    Fence,
    Hear,
    Message,
    Open,
    Pairs,
    Say,
    Step,
)
from tmqp.testing.conformance.verdicts import Verdict

__all__ = [
    "ACCEPTED",
    "CLOSED_SILENTLY",
    "NOTHING",
    "PING",
    "PREAMBLE_ANSWER",
    "acknowledge",
    "acknowledgement",
    "ask",
    "connect",
    "create_queue",
    "delivery",
    "direct",
    "event",
    "greet",
    "hear",
    "hello",
    "nack",
    "non_strict",
    "operation",
    "pong",
    "pull",
    "push",
    "queue_message",
    "refusal",
    "response",
    "route",
    "say",
    "strict_response",
    "subscribe",
    "terminate",
    "with_fields",
]

say: Final = Say
hear: Final = Hear
PREAMBLE_ANSWER: Final = Preamble(PREAMBLE)
PING: Final = PING_BYTES
#: Nothing arrived, and the connection is open.
NOTHING: Final = Answer()
#: The connection ended without a message.
CLOSED_SILENTLY: Final = Answer(end=End.CLOSED)
#: The server's answer to a client that it accepts.
ACCEPTED: Final = Pattern(TYPE_SERVER, content_type=SERVER_ACCEPTED)
_QUEUE_ID: Final = "Queue-Id"


# -- what is sent ---------------------------------------------------------------------------------


def hello(
    client_id: str = "",
    *,
    name: str = "",
    type: str = "",
    token: str = "",
    payload: bytes | None = None,
    **fields: Any,
) -> Message:
    """The message with which a client introduces itself (F26, F27).

    :param payload: the whole information; then the other arguments are ignored.
    """
    if payload is None:
        properties = {"Client-Name": name, "Client-Type": type, "Client-Token": token}
        lines = ["CONNECT /", *(f"{key}: {value}" for key, value in properties.items() if value)]
        if client_id:
            lines.append(f"Client-Id: {client_id}")
        payload = "".join(f"{line}\r\n" for line in lines).encode()
    fields.setdefault("flags", "F")
    fields.setdefault("message_id", "hello")
    return Message(TYPE_SERVER, "", SERVER_HELLO, payload, **fields)


def operation(
    number: int, target: str = "", payload: bytes = b"", headers: Pairs = (), **fields: Any
) -> Message:
    """A request to the server, with R set (F19)."""
    fields.setdefault("flags", "R")
    return Message(TYPE_SERVER, target, number, payload, headers=headers, **fields)


def queue_message(
    channel: str, queue: int, payload: bytes = b"x", headers: Pairs = (), **fields: Any
) -> Message:
    """A push (F74)."""
    return Message(TYPE_QUEUE_MESSAGE, channel, queue, payload, headers=headers, **fields)


def direct(target: str, content_type: int, payload: bytes = b"x", **fields: Any) -> Message:
    """A message from client to client (F113)."""
    return Message(TYPE_DIRECT_MESSAGE, target, content_type, payload, **fields)


def route(router: str, content_type: int = 0, payload: bytes = b"x", **fields: Any) -> Message:
    """A message to a router (F123)."""
    return Message(TYPE_ROUTER, router, content_type, payload, **fields)


def acknowledge(channel: str, queue: int, message_id: str, **fields: Any) -> Message:
    """A consumer's positive acknowledgement (F95)."""
    return Message(TYPE_ACKNOWLEDGE, channel, queue, message_id=message_id, **fields)


def nack(channel: str, queue: int, message_id: str, reason: str = "error") -> Message:
    """A consumer's negative acknowledgement (F81)."""
    headers = [("Nack-Reason", reason)]
    return Message(TYPE_ACKNOWLEDGE, channel, queue, message_id=message_id, headers=headers)


def pull(channel: str, queue: int, headers: Pairs, **fields: Any) -> Message:
    """A request for stored messages (F104)."""
    return Message(TYPE_PULL_REQUEST, channel, queue, headers=headers, **fields)


def subscribe(name: str, headers: Pairs = (), *, on: bool = True, **fields: Any) -> Message:
    """A subscription to an event, or its end (F127)."""
    return Message(TYPE_EVENT, name, 1 if on else 0, headers=headers, **fields)


# -- what is expected -----------------------------------------------------------------------------


def response(code: int = 0, **fields: Any) -> Pattern:
    """The server's answer to the request sent last: its id and the code (F44)."""
    fields.setdefault("message_id", SENT)
    return Pattern(TYPE_RESPONSE, content_type=code, code=True, **fields)


def strict_response(line: str, code: int = 0, **fields: Any) -> Pattern:
    """The same with every field as in F44."""
    return response(
        code,
        target=f"${line}",
        source="",
        ttl=16,
        first_acquirer=SENT,
        high_priority=SENT,
        pending_response=False,
        pending_acknowledge=False,
        **fields,
    )


def delivery(channel: str, queue: int, payload: object = ANY, **fields: Any) -> Pattern:
    """A message that the server sends to a consumer (F76)."""
    return Pattern(
        TYPE_QUEUE_MESSAGE, target=channel, content_type=queue, payload=payload, **fields
    )


def acknowledgement(
    channel: str = "", queue: int = 0, *, nack: object = None, **fields: Any
) -> Pattern:
    """An acknowledgement for the message sent last; negative if a reason is given (F78, F81)."""
    fields.setdefault("message_id", SENT)
    header = dict(fields.pop("header", {}))
    header["Nack-Reason"] = NoHeader() if nack is None else nack
    if channel:
        fields.update(target=channel, content_type=queue)
    return Pattern(TYPE_ACKNOWLEDGE, header=header, **fields)


def event(name: str, channel: str = "", payload: object = ANY, **fields: Any) -> Pattern:
    """A notification (F129)."""
    return Pattern(TYPE_EVENT, source=name, target=channel, payload=payload, **fields)


def refusal(code: int) -> Pattern:
    """A server's refusal of a client (F33)."""
    return Pattern(TYPE_SERVER, content_type=code, target="", source="", code=True)


def terminate(code: int) -> Pattern:
    """The peer's announcement that it closes the connection (F40)."""
    return Pattern(TYPE_TERMINATE, content_type=code, code=True)


def pong() -> Pattern:
    """The answer to a ping, whatever its bits (F37)."""
    return Pattern(TYPE_PONG)


# -- several steps --------------------------------------------------------------------------------


def connect(line: str, **properties: Any) -> list[Step]:
    """Open a line to a server and be accepted under the id ``$line``."""
    properties.setdefault("client_id", f"${line}")
    return [
        Open(line),
        Say(line, PREAMBLE, hello(**properties)),
        Hear(line, Answer(PREAMBLE_ANSWER, ACCEPTED), fence=Fence.FIRST),
    ]


def greet(line: str = "a") -> list[Step]:
    """Wait for a client, read its preamble and hello, and accept it."""
    first = Pattern(TYPE_SERVER, content_type=SERVER_HELLO)
    accepted = Message(TYPE_SERVER, f"${line}", SERVER_ACCEPTED, flags="F", message_id="accepted")
    return [
        Open(line),
        Hear(line, Answer(Preamble(PREAMBLE), first), fence=Fence.FIRST),
        Say(line, PREAMBLE, accepted),
    ]


def ask(
    line: str,
    number: int,
    target: str = "",
    payload: bytes = b"",
    headers: Pairs = (),
    *,
    code: int | Answer = 0,
    **fields: Any,
) -> list[Step]:
    """Request an operation and expect its answer and nothing else.

    :param code: the result code, or the whole answer.
    """
    answer = code if isinstance(code, Answer) else Answer(response(code))
    return [Say(line, operation(number, target, payload, headers, **fields)), Hear(line, answer)]


def create_queue(
    line: str, channel: str = "$ch", queue: int = 1, body: bytes = b"", **headers: str
) -> list[Step]:
    """Create a queue; further headers by name, with an underscore for each hyphen."""
    pairs = [(_QUEUE_ID, str(queue))]
    pairs += [(key.replace("_", "-"), value) for key, value in headers.items()]
    return ask(line, Operation.CREATE_QUEUE, channel, body, pairs)


def push(line: str, *messages: Message) -> list[Step]:
    """Push messages without requesting answers, and wait until the server has read them."""
    return [Say(line, *messages), Hear(line, NOTHING)]


def non_strict(*expected: Any, message: str, **how: Any) -> Answer:
    """An answer that is allowed, but not preferred by the protocol."""
    return Answer(*expected, verdict=Verdict.NON_STRICT, message=message, **how)


def with_fields(
    pattern: Pattern, header: Mapping[str, object] | None = None, **more: Any
) -> Pattern:
    """The same pattern with further fields."""
    return Pattern(
        pattern.kind,
        header={**pattern.header, **(header or {})},
        code=pattern.code,
        **{**pattern.fields, **more},
    )
