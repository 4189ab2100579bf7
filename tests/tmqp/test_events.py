"""The checks of ``tmqp.events``: what an event says, and what it prints."""

from __future__ import annotations

import pytest

import tmqp
import tmqp.events
from tmqp import (
    AcknowledgeReceived,
    ConnectionClosed,
    ConnectionInformation,
    CustomMessageReceived,
    DirectMessageReceived,
    Event,
    EventNotificationReceived,
    EventSubscriptionReceived,
    Frame,
    FrameDecoder,
    HandshakeAccepted,
    HandshakeReceived,
    HandshakeRefused,
    MessageDropped,
    MessageReceived,
    PingReceived,
    PongReceived,
    PreambleReceived,
    ProtocolViolated,
    PullCompleted,
    PullMessageReceived,
    PullRequestReceived,
    QueueMessageReceived,
    RemoteProtocolError,
    ResponseReceived,
    RouterMessageReceived,
    RunReceived,
    ServerMessageReceived,
    TerminateReceived,
)
from tmqp.testing import describe

FRAME = Frame.build(0x11, "t", 1, b"p")
PRINTED = (
    "<Frame QUEUE_MESSAGE - ttl=16 content_type=1 id='' source='' target='t' headers=[]"
    " payload=b'p'>"
)
TOKEN = "s3cret"
HOSTILE = Frame.build(
    0x10,
    "\x1b" * 255,
    101,
    f"CONNECT /\r\nClient-Token: {TOKEN}".encode() * 1_000,
    message_id="\n" * 255,
    source="\0" * 255,
    headers=[("k", "\x1b]0;\x07" * 10_000)],
)
HOSTILE_INFORMATION = ConnectionInformation(
    "\x1b" * 255, "\x1b" * 255, "\x1b" * 255, TOKEN, {f"k{n}\x1b" * 20: TOKEN for n in range(999)}
)


@pytest.mark.parametrize(
    ("event", "printed"),
    [
        (PreambleReceived(b"TMQP/2.0"), "<PreambleReceived b'TMQP/2.0'>"),
        (
            HandshakeReceived(ConnectionInformation(), FRAME),
            "<HandshakeReceived <ConnectionInformation '' name='' type='' token='' properties=[]>>",
        ),
        (HandshakeAccepted("c"), "<HandshakeAccepted 'c'>"),
        (HandshakeRefused(401), "<HandshakeRefused 401>"),
        (PingReceived(), "<PingReceived>"),
        (PongReceived(), "<PongReceived>"),
        (CustomMessageReceived(FRAME), f"<CustomMessageReceived {PRINTED}>"),
        (ServerMessageReceived(FRAME), f"<ServerMessageReceived {PRINTED}>"),
        (QueueMessageReceived(FRAME), f"<QueueMessageReceived {PRINTED}>"),
        (DirectMessageReceived(FRAME), f"<DirectMessageReceived {PRINTED}>"),
        (RouterMessageReceived(FRAME), f"<RouterMessageReceived {PRINTED}>"),
        (PullRequestReceived(FRAME), f"<PullRequestReceived {PRINTED}>"),
        (AcknowledgeReceived(FRAME), f"<AcknowledgeReceived {PRINTED}>"),
        (ResponseReceived(FRAME), f"<ResponseReceived {PRINTED}>"),
        (EventSubscriptionReceived(FRAME), f"<EventSubscriptionReceived {PRINTED}>"),
        (EventNotificationReceived(FRAME), f"<EventNotificationReceived {PRINTED}>"),
        (PullMessageReceived(FRAME, "r", 1, 10), f"<PullMessageReceived 1 of 10 {PRINTED}>"),
        (PullCompleted(FRAME, "r", "End", 2), f"<PullCompleted 'End' after 2 {PRINTED}>"),
        (MessageDropped(FRAME, "ttl"), f"<MessageDropped ttl {PRINTED}>"),
        (TerminateReceived(), "<TerminateReceived>"),
        (
            ProtocolViolated(RemoteProtocolError("utf8", "not UTF-8")),
            "<ProtocolViolated RemoteProtocolError('utf8', 'not UTF-8', 400)>",
        ),
        (ConnectionClosed("local"), "<ConnectionClosed local>"),
    ],
)
def test_an_event_prints_what_it_says(event: Event, printed: str) -> None:
    assert repr(event) == printed
    assert isinstance(event, MessageReceived) is (type(event).__base__ is MessageReceived)
    assert describe(event)[0] == type(event).__name__


def hostile_events() -> list[Event]:
    """One of every class, made of what a peer would send to harm a log."""
    events: list[Event] = [
        PreambleReceived(b"TMQP/2.0"),
        HandshakeReceived(HOSTILE_INFORMATION, HOSTILE),
        HandshakeAccepted("\x1b" * 255),
        HandshakeRefused(65_535),
        PingReceived(),
        PongReceived(),
        PullMessageReceived(HOSTILE, "\x1b" * 255, 9_999_999_999, 9_999_999_999),
        PullCompleted(HOSTILE, "\x1b" * 255, "\x1b" * 60_000, 9_999_999_999),
        MessageDropped(HOSTILE, "unknown-type"),
        TerminateReceived(),
        ConnectionClosed("violation"),
    ]
    with pytest.raises(RemoteProtocolError) as caught:
        ConnectionInformation.parse((b"\x1b" * 9_000 + f": {TOKEN}\r\n".encode()) * 2)
    events.append(ProtocolViolated(caught.value))
    made = {type(event) for event in events}
    for name in tmqp.events.__all__:
        kind = getattr(tmqp.events, name)
        if issubclass(kind, MessageReceived) and kind not in made:
            events.append(kind(HOSTILE))
    decoder = FrameDecoder()
    decoder.makes_runs = True
    pushed = Frame.build(
        0x11, "\x1b" * 255, 1, b"\x1b" * 60_000, message_id="\n" * 255, source="\0" * 255
    )
    decoder.feed(pushed.raw * 3)
    events.append(RunReceived(decoder.runs[0]))
    return events


def test_every_event_prints_short_without_control_characters_and_without_a_token() -> None:
    events = hostile_events()
    classes = {getattr(tmqp.events, name) for name in tmqp.events.__all__}
    assert {type(event) for event in events} == classes - {Event}
    for event in events:
        printed = repr(event)
        assert len(printed) < 4_500, type(event).__name__
        assert printed.isprintable(), type(event).__name__
        assert TOKEN not in printed, type(event).__name__


def test_every_event_is_public() -> None:
    assert set(tmqp.events.__all__) <= set(tmqp.__all__)


# --- What the events of messages say -------------------------------------------------------------


def test_an_acknowledge_is_negative_when_it_has_a_reason_header() -> None:
    """F81: any Nack-Reason header, in any case, with any value."""
    positive = AcknowledgeReceived(Frame.build(0x13, "orders", 1, message_id="m"))
    assert (positive.positive, positive.reason) == (True, None)
    for key, value in (("Nack-Reason", "none"), ("NACK-REASON", "")):
        negative = AcknowledgeReceived(Frame.build(0x13, headers=[(key, value)]))
        assert (negative.positive, negative.reason) == (False, value)


def test_a_response_has_a_code() -> None:
    assert ResponseReceived(Frame.build(0x14, "c", 404)).code == 404


@pytest.mark.parametrize(("number", "subscribes"), [(1, True), (0, False), (2, False)])
def test_a_subscription_says_to_what(number: int, subscribes: bool) -> None:
    event = EventSubscriptionReceived(Frame.build(0x16, "ClientJoined", number))
    assert (event.name, event.subscribe) == ("ClientJoined", subscribes)


def test_a_notification_says_what_happened_where() -> None:
    event = EventNotificationReceived(Frame.build(0x16, "orders", 7, source="MessageProduced"))
    assert (event.name, event.channel, event.queue_id) == ("MessageProduced", "orders", 7)
