"""The fuzz targets: one function for each codec, which takes any bytes and says what is wrong.

A target returns nothing when every promise was kept: the bytes are read, or refused with a
documented error, and cutting them otherwise changes nothing.  Anything it raises is a finding.
``seeds`` makes the beginnings of a corpus from the published generators; what ever failed stays in
``fuzz/corpus``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from targets.curve import SIDES, curve_says
from targets.lines import LINE_TARGETS, good_lines
from targets.openwire_frames import good_commands, openwire
from targets.selectors import good_selector, selector
from targets.stomp_frames import good_frames, stomp
from targets.talking import cut, speak
from tmqp import Connection, ConnectionInformation, FrameDecoder, Limits, RemoteProtocolError, Role
from tmqp.block_writing import encode_block
from tmqp.blocks import StoredMessage
from tmqp.models import (
    BindingInformation,
    ChannelInformation,
    ChannelOptions,
    ModelError,
    QueueInformation,
    QueueOptions,
    parse_list,
    properties_of,
)
from tmqp.testing import (
    Seeded,
    check_chunking,
    check_connection_chunking,
    check_connection_no_escape,
    check_no_escape,
    client_bytes,
    damage,
    odd_frame,
    plain_frame,
    server_bytes,
)
from tmqp_server.doors.http.door import HttpDoor
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.doors.nsq.context import NsqContext
from tmqp_server.doors.nsq.door import NsqDoor
from tmqp_server.doors.nsq.options import NsqLimits, NsqOptions
from tmqp_server.doors.throttr.door import ThrottrDoor
from tmqp_server.doors.throttr.options import ThrottrLimits, ThrottrOptions
from tmqp_server.doors.zmtp.door import ZmtpDoor
from tmqp_server.doors.zmtp.options import ZmtpLimits
from tmqp_server.storage.port import DamageError
from tmqp_server.storage.records import decode_block
from tmqp_wires.nsq import CommandDecoder, ServerTerms, lookup, writing
from tmqp_wires.nsq.events import Event, Identify, Violation
from tmqp_wires.nsq.frames import FrameDecoder as NsqFrameDecoder
from tmqp_wires.nsq.lookup import Announce, AnswerDecoder, LookupDecoder
from tmqp_wires.throttr import ClientConnection, Request, RequestDecoder
from tmqp_wires.throttr.requests import encode_request
from tmqp_wires.throttr.words import CONNECTION, DIALECTS, NAMES, VALUE_SIZES
from tmqp_wires.zmtp import ZmtpConfig, ZmtpConnection
from tmqp_wires.zmtp.config import PLAIN, SOCKET_TYPES
from tmqp_wires.zmtp.events import Event as ZmtpEvent
from tmqp_wires.zmtp.frames import command_frame, message_frames, metadata_bytes

__all__ = ["CORPUS", "TARGETS", "corpus", "seeds"]

#: Where the corpus stands: for each target a file, with one input a line, in hexadecimal.
CORPUS: Final = Path(__file__).resolve().parent.parent / "corpus"

_TIGHT: Final = Limits(max_payload_bytes=2_000, max_header_bytes=500, max_name_bytes=200)
_TIGHT_WEB: Final = HttpLimits(max_head_bytes=1_000, max_target_bytes=200, max_body_bytes=100)
_TIGHT_NSQ: Final = ServerTerms(
    max_line_bytes=100, max_identify_bytes=300, max_msg_size=60, max_body_size=200
)
_TIGHT_NSQ_DOOR: Final = NsqLimits(
    max_line_bytes=100,
    max_identify_bytes=300,
    max_msg_size=60,
    max_body_size=200,
    max_unanswered=3,
    max_foreign_in_flight=2,
)
_MOST_OF_THROTTR: Final = 300
_MODELS: Final = (
    BindingInformation,
    ChannelInformation,
    ChannelOptions,
    QueueInformation,
    QueueOptions,
)


#: The longest line and the largest IDENTIFY together.
_MOST_OF_LOOKUPD: Final = 16_384 + 65_536 + 8
#: The same of ZMTP, with these limits.
_MOST_OF_ZMTP: Final = 700
_ZMTP_CONFIGS: Final = (
    tuple(
        ZmtpConfig(
            as_server=True,
            mechanism=mechanism,
            max_part_bytes=100,
            max_message_bytes=300,
            max_parts=5,
            max_command_bytes=200,
        )
        for mechanism in ("NULL", PLAIN)
    )
    + SIDES
)


def decoder(data: bytes) -> None:
    """The frame decoder: any bytes, cut in any way."""
    chunks, whole = cut(data)
    check_no_escape(lambda: FrameDecoder(_TIGHT), whole)
    check_chunking(lambda: FrameDecoder(_TIGHT), whole, [chunks])


def server(data: bytes) -> None:
    """A connection on the server's side."""
    _connection(Role.SERVER, data)


def client(data: bytes) -> None:
    """A connection on the client's side."""
    _connection(Role.CLIENT, data)


def _connection(role: Role, data: bytes) -> None:
    def make() -> Connection:
        connection = Connection(role, _TIGHT)
        if role == Role.CLIENT:
            connection.initiate(ConnectionInformation("client-1"), "m1")
        return connection

    chunks, whole = cut(data)
    check_connection_no_escape(make, chunks)
    check_connection_chunking(make, whole, [chunks])


def hello(data: bytes) -> None:
    """The connection information: read, or refused; what was read is read again the same."""
    try:
        information = ConnectionInformation.parse(data)
    except RemoteProtocolError as error:
        if error.rule != "hello-invalid":
            raise
        return
    assert information.client_id == information.client_id.strip()


def models(data: bytes) -> None:
    """The bodies of operations: the first byte chooses the model."""
    if not data:
        return
    model = _MODELS[data[0] % len(_MODELS)]
    try:
        found = model.from_json(data[1:])
    except ModelError:
        pass
    else:
        again = model.from_json(found.to_json())
        assert again == found, f"{found!r} is read again as {again!r}"
    with suppress(ModelError):
        parse_list(model, data[1:])


def door(data: bytes) -> None:
    """Hub, native door and broker together: a hostile session hurts nobody but itself."""
    count = 0

    def new_id() -> str:
        nonlocal count
        count += 1
        return f"id-{count}"

    speak(NativeDoor(new_id, _TIGHT), cut(data)[0])


def web(data: bytes) -> None:
    """Hub, HTTP door and broker together; how the stream is cut changes no answer."""
    chunks, whole = cut(data)
    assert speak(_web_door(), chunks) == speak(_web_door(), [whole] if whole else [])


def _nsq_context() -> NsqContext:
    numbers = itertools.count(1)
    options = NsqOptions(msg_timeout_ms=1_000, max_attempts=3)
    return NsqContext(lambda: f"{next(numbers):032x}", _TIGHT_NSQ_DOOR, options)


def _changes_stream(commands: bytes) -> bool:
    """Whether a client of NSQ asks for compression in between."""
    events = CommandDecoder(_nsq_context().terms).feed(commands)
    return any(isinstance(each, Identify) and each.negotiated.changes_stream for each in events)


def _web_door() -> HttpDoor:
    numbers = itertools.count()

    def new_id() -> str:
        return f"id-{next(numbers)}"

    return HttpDoor(new_id, _TIGHT_WEB, inner={"tmqp": NativeDoor(new_id, _TIGHT)})


def nsq(data: bytes) -> None:
    """NSQ's codec in both roles, and hub, door and broker together: any bytes, cut in any way; no
    more is held than is allowed."""
    chunks, whole = cut(data)
    decoder = CommandDecoder(_TIGHT_NSQ)
    found: list[Event] = []
    for chunk in chunks:
        found += decoder.feed(chunk)
        assert decoder.held_bytes < 500, "something is kept beyond its limit"
    at_once = CommandDecoder(_TIGHT_NSQ)
    assert found == at_once.feed(whole), "how the stream is cut changes what it says"
    assert not [event for event in found[:-1] if isinstance(event, Violation)]
    assert decoder.feed_eof() == at_once.feed_eof()
    frames, frames_at_once = NsqFrameDecoder(100), NsqFrameDecoder(100)
    read: list[Event] = []
    for chunk in chunks:
        read += frames.feed(chunk)
    assert read == frames_at_once.feed(whole)
    said = speak(NsqDoor(_nsq_context()), chunks)
    said_at_once = speak(NsqDoor(_nsq_context()), [whole] if whole else [])
    # What comes behind an IDENTIFY and before its answer, in its chunk, cannot be read.
    assert said == said_at_once or _changes_stream(whole)


def throttr(data: bytes) -> None:
    """Throttr's codec in both roles and dialects, and hub, door and broker together: any bytes, cut
    in any way; no more is held than is allowed."""
    chunks, whole = cut(data)
    # What comes first says how it is spoken, too.
    dialect = DIALECTS[len(whole) % 2]
    width = VALUE_SIZES[len(whole) // 2 % 4]
    decoder = RequestDecoder(dialect, width, _MOST_OF_THROTTR)
    found: list[object] = []
    for chunk in chunks:
        found += decoder.receive(chunk)
        assert decoder.held_bytes <= _MOST_OF_THROTTR, "something is kept beyond its limit"
    at_once = RequestDecoder(dialect, width, _MOST_OF_THROTTR).receive(whole)
    assert list(map(repr, found)) == list(map(repr, at_once)), "how the stream is cut changes it"
    for event in found:
        if isinstance(event, Request):
            again = RequestDecoder(dialect, width, 1 << 20).receive(encode_request(event, width))
            assert again == [event], "what is written reads as something else"
    client = ClientConnection(dialect, width)
    for code in whole[:8]:
        with suppress(ValueError):
            client.send(Request(code, b"k"))
    with suppress(ValueError):
        client.receive(whole)
    # How many bytes were read is told, and differs.
    said = speak(_throttr_door(dialect, width), chunks)
    assert len(said) == len(speak(_throttr_door(dialect, width), [whole] if whole else []))


def _throttr_door(dialect: str, width: int) -> ThrottrDoor:
    numbers = itertools.count(1)
    options = ThrottrOptions(dialect=dialect, value_bytes=width)
    limits = ThrottrLimits(max_request_bytes=_MOST_OF_THROTTR, max_unanswered=16)
    return ThrottrDoor(lambda: f"{next(numbers):012x}".ljust(32, "0"), limits, options)


def lookupd(data: bytes) -> None:
    """Nsqlookupd's protocol in both roles: any bytes, cut in any way; little is held."""
    chunks, whole = cut(data)
    decoder, at_once = LookupDecoder(), LookupDecoder()
    found: list[Event] = []
    for chunk in chunks:
        found += decoder.feed(chunk)
        assert decoder.held_bytes < _MOST_OF_LOOKUPD, "something is kept beyond its limit"
    assert found == at_once.feed(whole), "how the stream is cut changes what it says"
    assert not [event for event in found[:-1] if isinstance(event, Violation)]
    for event in found:
        if isinstance(event, Announce):
            again = LookupDecoder().feed(lookup.MAGIC + lookup.announce(event))
            assert again == [event], "what is announced reads as something else"
    answers, answers_at_once = AnswerDecoder(), AnswerDecoder()
    read: list[bytes] = []
    for chunk in chunks:
        read += answers.feed(chunk)
    assert read == answers_at_once.feed(whole)
    assert answers.error == answers_at_once.error


def zmtp(data: bytes) -> None:
    """ZMTP in both roles, and hub, door and broker together: any bytes, cut in any way; no more is
    held than is allowed."""
    chunks, whole = cut(data)
    for config in _ZMTP_CONFIGS:
        zmtp_cut, at_once = ZmtpConnection(config, 0.0), ZmtpConnection(config, 0.0)
        found: list[ZmtpEvent] = []
        for chunk in chunks:
            found += zmtp_cut.receive(chunk, 0.0)
            assert zmtp_cut.held_bytes < _MOST_OF_ZMTP, "something is kept beyond its limit"
        expected = at_once.receive(whole, 0.0)
        told = [repr(event) for event in found]
        assert told == [repr(event) for event in expected], "how it is cut changes what it says"
        assert zmtp_cut.data_to_send() == at_once.data_to_send()
    speak(_zmtp_door(), chunks)


def _zmtp_door() -> ZmtpDoor:
    return ZmtpDoor(lambda: "0" * 32, ZmtpLimits(max_part_bytes=100, max_command_bytes=100))


def block(data: bytes) -> None:
    """A block of kept messages: whole, or damaged and said to be so."""
    try:
        found = decode_block(data)
    except DamageError:
        return
    assert encode_block(found.key, found.messages()) == data, "another block with the same contents"


#: The targets by name.
TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    "decoder": decoder,
    "server": server,
    "client": client,
    "hello": hello,
    "models": models,
    "door": door,
    "web": web,
    "nsq": nsq,
    "lookupd": lookupd,
    "throttr": throttr,
    "zmtp": zmtp,
    "stomp": stomp,
    "openwire": openwire,
    "selector": selector,
    "block": block,
    **LINE_TARGETS,
}


def seeds(name: str, count: int) -> Iterator[bytes]:
    """The first inputs of a target, the same every time."""
    draw = Seeded(sum(name.encode()))
    for number in range(count):
        good = _good(name, draw)
        yield good if number % 2 else damage(draw, good)


def _good(name: str, draw: Seeded) -> bytes:
    first = bytes([draw.below(256)])
    if name == "decoder":
        frames = [odd_frame(draw) if draw.one_in(3) else plain_frame(draw).raw for _ in range(3)]
        return first + b"".join(frames)
    if name in ("server", "door"):
        return first + client_bytes(draw)
    if name == "web":
        return first + b"".join([_web_request(draw) for _ in range(1 + draw.below(4))])
    if name == "client":
        return first + server_bytes(draw)
    if name == "nsq":
        return first + _nsq_commands(draw)
    if name == "lookupd":
        return first + _lookupd_commands(draw)
    if name == "throttr":
        return first + _throttr_requests(draw)
    if name == "zmtp":
        return first + _zmtp_frames(draw)
    if name == "stomp":
        return first + good_frames(draw)
    if name == "openwire":
        return first + good_commands(draw)
    if name == "selector":
        return first + good_selector(draw)
    if name in LINE_TARGETS:
        return first + good_lines(name, draw)
    if name == "hello":
        names = ("", "a", "worker", "bestellung-ä")
        client_id, name_of, kind = [names[draw.below(4)] for _ in range(3)]
        return ConnectionInformation(client_id, name_of, kind).encode()
    if name == "models":
        model = _MODELS[first[0] % len(_MODELS)]
        values = (b"1", b"null", b'"x"', b"[1,2]", b"true", b"0", b"[]", b"{}")
        properties = properties_of(model)
        pairs = [
            b'"%s":%s' % (each.name.encode(), values[draw.below(8)])
            for each in [properties[draw.below(len(properties))] for _ in range(draw.below(4))]
        ]
        return first + b"{" + b",".join(pairs) + b"}"
    assert name == "block", name
    kept = []
    for sequence in range(1, 2 + draw.below(4)):
        body = draw.some_bytes(draw.below(60))
        kept.append(StoredMessage(sequence, 1, 0, 0, 256, 0, 0, 0, 0, len(body), body))
    return encode_block(1 + draw.below(5), kept)


def _throttr_requests(draw: Seeded) -> bytes:
    """Requests of Throttr, of values of a byte or two."""
    codes = sorted(NAMES)
    width = 1 + draw.below(2)
    requests: list[bytes] = []
    for _ in range(1 + draw.below(6)):
        code = codes[draw.below(len(codes))]
        key = bytes(16) if code == CONNECTION else b"abc"[: draw.below(4)]
        value = draw.some_bytes(draw.below(20))
        numbers = (draw.below(200), 1 + draw.below(6), draw.below(90), draw.below(2), draw.below(3))
        requests.append(encode_request(Request(code, key, value, *numbers), width))
    return b"".join(requests)


def _nsq_commands(draw: Seeded) -> bytes:
    """Commands of NSQ, or frames."""
    name, some = b"0123456789abcdef", draw.some_bytes(1 + draw.below(60))
    if draw.one_in(4):
        return writing.message_frame(1, 1, name, some) + writing.error_frame(b"E_X y") + writing.OK
    choices = (
        writing.identify({"feature_negotiation": True, "snappy": draw.one_in(4)}),
        writing.pub(b"topic", some),
        writing.dpub(b"t#ephemeral", draw.below(4_000_000), some),
        writing.mpub(b"t", [some[:20], some[:20], b"x"]),
        writing.sub(b"topic", b"channel"),
        writing.rdy(draw.below(3_000)),
        writing.fin(name),
        writing.req(name, draw.below(1_000)),
        writing.touch(name),
        writing.CLS,
        writing.NOP,
        writing.auth(b"secret"),
    )
    commands = [choices[draw.below(len(choices))] for _ in range(1 + draw.below(5))]
    return writing.MAGIC + b"".join(commands)


def _lookupd_commands(draw: Seeded) -> bytes:
    """What an nsqd tells a lookupd, or what it is answered."""
    if draw.one_in(4):
        return lookup.OK + lookup.answer(b'{"version":"1.3.0"}') + lookup.answer(b"E_INVALID x")
    port = draw.below(65_536)
    choices = (
        lookup.announce(Announce("10.0.0.1", "host-ä", port, 4_151, "1.3.0")),
        lookup.register(b"topic"),
        lookup.register(b"topic", b"channel#ephemeral"),
        lookup.unregister(b"t" * (1 + draw.below(70))),
        lookup.unregister(b"topic", b"channel"),
        b"PING\n",
        b"IDENTIFY\n" + lookup.answer(b'{"tcp_port":%d}' % port),
    )
    commands = [choices[draw.below(len(choices))] for _ in range(1 + draw.below(5))]
    return lookup.MAGIC + choices[0] * draw.below(2) + b"".join(commands)


def _zmtp_frames(draw: Seeded) -> bytes:
    """What a socket says: greeting, what it is, messages, subscriptions."""
    if draw.one_in(3):
        return curve_says(draw)
    plain = draw.one_in(3)
    said = [b"\xff" + bytes(8) + b"\x7f"]
    kind = SOCKET_TYPES[draw.below(len(SOCKET_TYPES))]
    if draw.one_in(4):
        said.append(bytes((draw.below(2), SOCKET_TYPES.index(kind), 0, 0)))
    else:
        said.append(b"\x03\x01" + (b"PLAIN" if plain else b"NULL").ljust(52, b"\0"))
        ready = metadata_bytes([("Socket-Type", kind.encode()), ("Identity", draw.some_bytes(3))])
        if plain:
            said.append(command_frame(b"HELLO", b"\x01u\x01p"))
        said.append(command_frame(b"INITIATE" if plain else b"READY", ready))
    for _ in range(draw.below(5)):
        data = draw.some_bytes(draw.below(120))
        commands = (b"SUBSCRIBE", b"CANCEL", b"PING", b"PONG", b"ERROR")
        if draw.one_in(2):
            said.append(message_frames([data[: draw.below(40)] for _ in range(1 + draw.below(3))]))
        else:
            said.append(command_frame(commands[draw.below(5)], data[:20]))
    return b"".join(said)


def _web_request(draw: Seeded) -> bytes:
    """A request of a kind that the server answers."""
    queue = b"/api/v1/channels/c%d/queues/%d" % (draw.below(2), draw.below(2))
    body = draw.some_bytes(draw.below(40))
    targets = (b"%b/messages" % queue, b"%b/deliveries" % queue, b"%b/deliveries/x/ack" % queue)
    target = targets[draw.below(3)]
    if target.endswith(b"messages"):
        if draw.one_in(2):
            return b"POST %b HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b" % (
                target, len(body), body,
            )  # fmt: skip
        head = b"POST %b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" % target
        return head + (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
    if draw.one_in(4):
        return b"GET /healthz HTTP/1.%d\r\nHost: h\r\n\r\n" % draw.below(2)
    return b"POST %b HTTP/1.1\r\nHost: h\r\n\r\n" % target


def corpus(name: str) -> list[bytes]:
    """The inputs that are kept for a target."""
    path = CORPUS / f"{name}.txt"
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return [bytes.fromhex(line) for line in lines if line and not line.startswith("#")]
