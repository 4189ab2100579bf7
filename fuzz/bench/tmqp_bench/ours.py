"""The measured paths of ``tmqp``: decoding, writing, forwarding, and a whole connection.

Where the program calls something for each message, the timed loop holds that call and nothing else:
deciding whether to keep would cost a few nanoseconds that are not the codec's.
"""

from __future__ import annotations

from typing import Final

from tmqp import Connection, ConnectionInformation, Frame, FrameDecoder, MessageReceived, Role
from tmqp_bench.work import NAMES, Prepare, Work, chunks, message_ids, payloads

__all__ = ["OURS"]

_PUSH: Final = 0x11
_QUEUE_ID: Final = 17
_TTL: Final = 16
_SOURCES: Final = [f"producer-{number}" for number in range(9)]


def _frames(payload_bytes: int, count: int, sources: list[str]) -> list[Frame]:
    """Queue messages as a client sends them: id, source, target and payload, no headers."""
    target = NAMES[1]
    return [
        Frame.build(
            _PUSH,
            target,
            _QUEUE_ID,
            payload,
            message_id=message_id,
            source=sources[number % len(sources)],
        )
        for number, (message_id, payload) in enumerate(
            zip(message_ids(count), payloads(payload_bytes, count), strict=True)
        )
    ]


def _stream(frames: list[Frame]) -> bytes:
    return b"".join([frame.raw for frame in frames])


def _decode(frames: list[Frame]) -> Work:
    stream = _stream(frames)
    pieces = chunks(stream)
    feed = FrameDecoder().feed

    def run(keep: list[bytes] | None) -> int:
        messages = 0
        for piece in pieces:
            got = feed(piece)
            messages += len(got)
            if keep is not None:
                keep.extend([frame.payload for frame in got])
        return messages

    return Work(run, len(frames), len(stream))


def _decode_lazily(payload_bytes: int, count: int) -> Work:
    return _decode(_frames(payload_bytes, count, [NAMES[0]]))


def _decode_nine_sources(payload_bytes: int, count: int) -> Work:
    return _decode(_frames(payload_bytes, count, _SOURCES))


def _decode_and_read(payload_bytes: int, count: int) -> Work:
    stream = _stream(_frames(payload_bytes, count, [NAMES[0]]))
    pieces = chunks(stream)
    feed = FrameDecoder().feed

    def run(keep: list[bytes] | None) -> int:
        messages = 0
        for piece in pieces:
            got = feed(piece)
            messages += len(got)
            if keep is None:
                for frame in got:
                    frame.fields()
            else:
                keep.extend([frame.fields()[11] for frame in got])
        return messages

    return Work(run, count, len(stream))


def _build(payload_bytes: int, count: int) -> Work:
    ids, bodies = message_ids(count), payloads(payload_bytes, count)
    source, target = NAMES
    pairs = list(zip(ids, bodies, strict=True))
    build = Frame.build

    def run(keep: list[bytes] | None) -> int:
        for message_id, payload in pairs:
            build(_PUSH, target, _QUEUE_ID, payload, message_id=message_id, source=source)
        if keep is not None:
            for message_id, payload in pairs:
                frame = build(
                    _PUSH, target, _QUEUE_ID, payload, message_id=message_id, source=source
                )
                keep.append(frame.payload)
        return len(pairs)

    stream = _stream(_frames(payload_bytes, count, [source]))
    return Work(run, count, len(stream))


def _forward(payload_bytes: int, count: int) -> Work:
    frames = _frames(payload_bytes, count, [NAMES[0]])
    hops = _TTL - 1

    def run(keep: list[bytes] | None) -> int:
        for frame in frames:
            frame.forwarded(False, True, hops)
        if keep is not None:
            for frame in frames:
                (copy,) = FrameDecoder().feed(frame.forwarded(False, True, hops))
                if copy.ttl != hops or not copy.pending_acknowledge:
                    raise AssertionError("a frame was not forwarded with its new head")
                keep.append(copy.payload)
        return len(frames)

    return Work(run, count, len(_stream(frames)))


def _open_server() -> Connection:
    """The server's side of a connection on which messages flow."""
    client, server = Connection(Role.CLIENT), Connection(Role.SERVER)
    client.initiate(ConnectionInformation(client_id=NAMES[0]))
    server.receive(client.data_to_send(), 0.0)
    server.accept(NAMES[0])
    server.data_to_send()
    return server


def _receive(payload_bytes: int, count: int) -> Work:
    stream = _stream(_frames(payload_bytes, count, [NAMES[0]]))
    pieces = chunks(stream)
    receive = _open_server().receive

    def run(keep: list[bytes] | None) -> int:
        messages = 0
        for piece in pieces:
            events = receive(piece, 1.0)
            messages += len(events)
            if keep is not None:
                for event in events:
                    if isinstance(event, MessageReceived):
                        keep.append(event.frame.payload)
        return messages

    return Work(run, count, len(stream))


OURS: Final[dict[str, Prepare]] = {
    "decode": _decode_lazily,
    "decode-mixed": _decode_nine_sources,
    "decode-read": _decode_and_read,
    "build": _build,
    "forward": _forward,
    "receive": _receive,
}
