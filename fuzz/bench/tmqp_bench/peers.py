"""The measured paths of other projects: how each is fed, in the cheapest way its API allows.

Each gets a frame that carries the payload and as little else as it can: no message id, no headers.
All is imported when it is asked for, so that a project which is not installed can be named.

``websockets``
    ``receive_data`` and ``events_received`` of its protocol objects, which do no I/O.  The client's
    side reads frames as they are; the server's side must take off the mask (with its C extension,
    where that is installed).
``wsproto``
    ``receive_data`` and ``events`` of its established connection, the client's side.  It hands out
    what has come of a message at the end of a chunk; a message counts when it is finished.
``nats-py``
    The parser of its client, which is a coroutine but never waits: it is stepped by hand, without
    an event loop, and its messages go to an object that only collects their payloads.
``pamqp``
    ``frame.unmarshal`` for the three frames of a delivery: method, content header, content body.
    It reads one frame from the start of what it is given, so each is cut out beforehand.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from tmqp_bench.work import NAMES, Prepare, Work, chunks, payloads

__all__ = ["DISTRIBUTIONS", "PEERS"]

#: What is to be installed.
DISTRIBUTIONS: Final = ("websockets", "wsproto", "nats-py", "pamqp")


def _websockets(payload_bytes: int, count: int, masked: bool) -> Work:
    frames: Any = importlib.import_module("websockets.frames")
    state = importlib.import_module("websockets.protocol").OPEN
    bodies = payloads(payload_bytes, count)
    stream = b"".join(
        [frames.Frame(frames.Opcode.BINARY, body).serialize(mask=masked) for body in bodies]
    )
    if masked:
        protocol = importlib.import_module("websockets.server").ServerProtocol(state=state)
    else:
        uri = importlib.import_module("websockets.uri").parse_uri("ws://localhost/")
        protocol = importlib.import_module("websockets.client").ClientProtocol(uri, state=state)
    receive, events_received = protocol.receive_data, protocol.events_received
    pieces = chunks(stream)

    def run(keep: list[bytes] | None) -> int:
        messages = 0
        for piece in pieces:
            receive(piece)
            events = events_received()
            messages += len(events)
            if keep is not None:
                keep.extend([bytes(event.data) for event in events])
        return messages

    return Work(run, count, len(stream))


def _websockets_client(payload_bytes: int, count: int) -> Work:
    return _websockets(payload_bytes, count, masked=False)


def _websockets_server(payload_bytes: int, count: int) -> Work:
    return _websockets(payload_bytes, count, masked=True)


def _wsproto(payload_bytes: int, count: int) -> Work:
    frames: Any = importlib.import_module("websockets.frames")
    module: Any = importlib.import_module("wsproto.connection")
    bodies = payloads(payload_bytes, count)
    stream = b"".join(
        [frames.Frame(frames.Opcode.BINARY, body).serialize(mask=False) for body in bodies]
    )
    connection = module.Connection(module.ConnectionType.CLIENT)
    pieces = chunks(stream)
    begun = b""

    def run(keep: list[bytes] | None) -> int:
        nonlocal begun
        messages = 0
        for piece in pieces:
            connection.receive_data(piece)
            for event in connection.events():
                if event.message_finished:
                    messages += 1
                    if keep is not None:
                        keep.append(begun + event.data)
                        begun = b""
                elif keep is not None:
                    begun += event.data
        return messages

    return Work(run, count, len(stream))


class _NatsClient:
    """Stands where the parser expects its client, and collects what it is handed."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    async def _process_msg(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None
    ) -> None:
        self.payloads.append(data)


def _nats(payload_bytes: int, count: int) -> Work:
    parser_module: Any = importlib.import_module("nats.protocol.parser")
    subject = NAMES[1].encode()
    line = b"MSG %b 1 %d\r\n" % (subject, payload_bytes)
    stream = b"".join([line + body + b"\r\n" for body in payloads(payload_bytes, count)])
    pieces = chunks(stream)
    client = _NatsClient()
    parse = parser_module.Parser(client).parse

    def run(keep: list[bytes] | None) -> int:
        messages = 0
        for piece in pieces:
            try:
                parse(piece).send(None)
            except StopIteration:
                pass
            else:
                raise AssertionError("the parser of nats-py waits for something")
            got = client.payloads
            client.payloads = []
            messages += len(got)
            if keep is not None:
                keep.extend(got)
        return messages

    return Work(run, count, len(stream))


def _pamqp(payload_bytes: int, count: int) -> Work:
    frame: Any = importlib.import_module("pamqp.frame")
    body_class: Any = importlib.import_module("pamqp.body").ContentBody
    header_class: Any = importlib.import_module("pamqp.header").ContentHeader
    basic: Any = importlib.import_module("pamqp.commands").Basic
    parts: list[bytes] = []
    for number, body in enumerate(payloads(payload_bytes, count)):
        deliver = basic.Deliver("consumer-1", number + 1, False, "", NAMES[1])
        header = header_class(0, payload_bytes, basic.Properties())
        parts.extend([frame.marshal(part, 1) for part in (deliver, header, body_class(body))])
    stream = b"".join(parts)
    pieces = chunks(stream)
    unmarshal = frame.unmarshal
    rest = b""

    def run(keep: list[bytes] | None) -> int:
        nonlocal rest
        messages = 0
        for piece in pieces:
            data = rest + piece if rest else piece
            at, end = 0, len(data)
            while end - at >= 8:
                stop = at + 8 + int.from_bytes(data[at + 3 : at + 7], "big")
                if stop > end:
                    break
                _, _, part = unmarshal(data[at:stop])
                at = stop
                if part.__class__ is body_class:
                    messages += 1
                    if keep is not None:
                        keep.append(part.value)
            rest = data[at:]
        return messages

    return Work(run, count, len(stream))


PEERS: Final[dict[str, Prepare]] = {
    "websockets": _websockets_client,
    "websockets-masked": _websockets_server,
    "wsproto": _wsproto,
    "nats-py": _nats,
    "pamqp": _pamqp,
}
