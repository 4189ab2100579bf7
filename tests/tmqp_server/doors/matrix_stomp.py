"""The adapter of STOMP for the matrix of doors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.tmqp_server.doors.matrix_parts import (
    CHANNEL,
    EVERYTHING,
    Adapter,
    Case,
    Consumer,
    Wire,
    one_table,
)
from tests.tmqp_server.doors.matrix_stage import MatrixStage
from tmqp_server.doors.letter import BOOLEAN, Letter
from tmqp_wires.stomp import ClientConnection, StompFrame

__all__ = ["Stomp"]

_DESTINATION: Final = f"/queue/{CHANNEL}"
#: Fields of a letter, and the headers that say them.
_FIELDS: Final = {
    "content_type": "content-type",
    "correlation_id": "correlation-id",
    "reply_to": "reply-to",
    "kind": "type",
    "group_key": "JMSXGroupID",
    "traceparent": "traceparent",
    "tracestate": "tracestate",
}
_NUMBERS: Final = {
    "priority": "priority",
    "timestamp_ms": "timestamp",
    "expires_ms": "expires",
}
_OWN: Final = ("destination", "subscription", "message-id", "ack", "content-length")


class _StompPeer:
    """A client, let in."""

    def __init__(self, stage: MatrixStage) -> None:
        self._wire = Wire(stage, "stomp")
        self.hang_up = self._wire.hang_up
        self.stomp = ClientConnection()
        self.stomp.send_connect()
        self.flush()
        (answer,) = self.hear()
        assert answer.command == "CONNECTED"

    def flush(self) -> None:
        """Send what is queued."""
        self._wire.say(self.stomp.data_to_send())

    def hear(self) -> list[StompFrame]:
        """What has come since the last time."""
        events = self.stomp.receive(self._wire.take(), 0.0)
        frames = [each for each in events if isinstance(each, StompFrame)]
        assert len(frames) == len(events)
        return frames


class _StompConsumer(Consumer):
    """Subscribes to the queue."""

    def __init__(self, stage: MatrixStage) -> None:
        self._peer = _StompPeer(stage)
        headers = [("id", "1"), ("destination", _DESTINATION), ("ack", "client-individual")]
        self._peer.stomp.send("SUBSCRIBE", headers)
        self._peer.flush()

    def take(self) -> list[Letter]:
        """See ``Consumer``."""
        found: list[Letter] = []
        for frame in self._peer.hear():
            assert (frame.command, frame.get("destination")) == ("MESSAGE", _DESTINATION)
            self._peer.stomp.send("ACK", [("id", frame.get("ack"))])
            found.append(_letter_of(frame))
        self._peer.flush()
        return found


def _letter_of(frame: StompFrame) -> Letter:
    letter = Letter(frame.body, frame.get("message-id"))
    for field, name in _FIELDS.items():
        setattr(letter, field, frame.get(name))
    # Clients of STOMP send to a destination, which says what it is.
    letter.reply_to = letter.reply_to.removeprefix("/queue/")
    for field, name in _NUMBERS.items():
        setattr(letter, field, int(frame.get(name) or getattr(letter, field)))
    hidden = (*_FIELDS.values(), *_NUMBERS.values(), *_OWN)
    letter.headers = [pair for pair in frame.headers if pair[0] not in hidden]
    return letter


class Stomp(Adapter):
    """STOMP 1.2."""

    name = "stomp"
    tables = one_table(protocol="stomp")
    gives = EVERYTHING - {"id", "source", "properties", "timestamp_ms", "expires_ms"}
    shows = EVERYTHING - {"source", "lifetime", "delay"}

    def said(self, case: Case, letter: Letter, unix_ms: int) -> None:
        """A message has the time at which it came."""
        letter.timestamp_ms = unix_ms

    def shown(self, letter: Letter, unix_ms: int) -> None:
        """A property is a header."""
        for each in letter.properties:
            text = str(each.value)
            letter.headers.append((each.name, text.lower() if each.kind == BOOLEAN else text))
        letter.properties = []

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``; each has a receipt."""
        peer = _StompPeer(stage)
        for chunk in [cases] if in_a_row else [[case] for case in cases]:
            for case in chunk:
                peer.stomp.send("SEND", self._headers_of(case, stage.unix_ms), case.letter.body)
            peer.flush()
            receipts = [(each.command, each.get("receipt-id")) for each in peer.hear()]
            assert receipts == [("RECEIPT", case.name) for case in chunk]
        peer.hang_up()

    def _headers_of(self, case: Case, unix_ms: int) -> list[tuple[str, str]]:
        letter = case.letter
        headers = [("destination", _DESTINATION), ("receipt", case.name)]
        headers.append(("content-length", str(len(letter.body))))
        headers.append(("priority", str(letter.priority)))
        for field, name in _FIELDS.items():
            if getattr(letter, field):
                headers.append((name, getattr(letter, field)))
        if case.lifetime_ms:
            headers.append(("expires", str(unix_ms + case.lifetime_ms)))
        if case.delay_ms:
            headers.append(("AMQ_SCHEDULED_DELAY", str(case.delay_ms)))
        return headers + letter.headers

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _StompConsumer(stage)
