"""Receives a broker's events: a thread that receives them, and the events received so far.

Theory of operation.  A broker sends events to its current subscribers and stores none (F127-F132).
So a thread holds the connection, subscribes again after each loss, and numbers and keeps the
received events until they are requested, up to a limit.  If events may be missing, a row says so in
their place, ``EventsMissed``: after a loss of the connection, and after events that found no room.

Events of a channel or a queue can be subscribed to only if it exists (F128).  So the feed also
subscribes to the creation of channels and queues for its own use.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from tmqp import Event, EventNotificationReceived, Frame, MessageType
from tmqp.constants import OP_CHANNEL_LIST, EventName, HeaderName
from tmqp_spark.errors import ConnectionBroken, InvalidOption, SparkError
from tmqp_spark.options import ConnectionOptions
from tmqp_spark.tables import Table
from tmqp_spark.transport import BrokerLink, backoff

__all__ = ["EVENTS", "MISSED", "EventFeed", "EventRow", "EventSelection", "missed_row"]

#: The columns of an event; those that it does not have are null.
EVENTS: Final = Table(
    "tmqp_events",
    [
        ("ts", "timestamp"),
        ("event", "string"),
        ("channel", "string"),
        ("queue", "int"),
        ("client_id", "string"),
        ("client_name", "string"),
        ("node", "string"),
        ("message_id", "string"),
        ("detail", "string"),
    ],
)
EventRow: TypeAlias = tuple[
    int, str, str | None, int | None, str | None, str | None, str | None, str | None, str
]
#: The name of the row that reports missed events.
MISSED: Final = "EventsMissed"

_OF_CHANNELS: Final = (
    EventName.CLIENT_JOINED,
    EventName.CLIENT_LEFT,
    EventName.QUEUE_CREATED,
    EventName.QUEUE_UPDATED,
    EventName.QUEUE_REMOVED,
)
_ALL: Final = "*"
_TURN_S: Final = 0.5


class EventSelection:
    """The events that a feed receives.

    :param events: their names; if empty, all that are possible with these channels and queues.
    :param channels: the channels of the events; ``*`` for all, including later ones.
    :param queues: the queues whose messages are reported, as ``orders/7``.
    :raises InvalidOption: for an unknown event, or if an event needs channels or queues and there
        are none.
    """

    def __init__(
        self, events: Iterable[str], channels: Iterable[str], queues: Iterable[str]
    ) -> None:
        self.channels = tuple(channels)
        self.queues = tuple(_queue(text) for text in queues)
        known = {str(name).lower(): str(name) for name in EventName}
        names = []
        for name in events:
            if name.lower() not in known:
                raise InvalidOption(
                    f"option events: there is no event {name!r}; the events are"
                    f" {', '.join(known.values())}"
                )
            names.append(known[name.lower()])
        every = [str(name) for name in EventName]
        self.events = frozenset(names or [name for name in every if self._possible(name)])
        for name in names:
            if not self._possible(name):
                option = "queues" if name == EventName.MESSAGE_PRODUCED else "channels"
                raise InvalidOption(f"event {name} needs the option {option}")

    def _possible(self, name: str) -> bool:
        if name == EventName.MESSAGE_PRODUCED:
            return bool(self.queues)
        return name not in _OF_CHANNELS or bool(self.channels)

    def has_channel(self, name: str) -> bool:
        """Whether events of this channel are wanted."""
        return _ALL in self.channels or name in self.channels

    def of_server(self) -> list[str]:
        """Return the events of the whole server to subscribe to, including those for the feed's own
        use."""
        names = [
            name
            for name in sorted(self.events)
            if name not in _OF_CHANNELS and name != EventName.MESSAGE_PRODUCED
        ]
        if (self.channels or self.queues) and EventName.CHANNEL_CREATED not in self.events:
            names.append(str(EventName.CHANNEL_CREATED))
        return names

    def of_channel(self, channel: str) -> list[str]:
        """Return the events of a channel to subscribe to, including those for the feed's own
        use."""
        names = []
        if self.has_channel(channel):
            names = [str(name) for name in _OF_CHANNELS if name in self.events]
        own = str(EventName.QUEUE_CREATED)
        if any(channel == each for each, _ in self.queues) and own not in names:
            names.append(own)
        return names

    def shows(self, name: str, channel: str) -> bool:
        """Whether a received event is wanted, and not only for the feed's own use."""
        return name in self.events and (name not in _OF_CHANNELS or self.has_channel(channel))


class EventFeed(BrokerLink):
    """Receives events from :meth:`listen` to :meth:`stop`.

    :param most: the most events to keep; further ones displace the oldest.
    :param clock_us: returns Unix time in microseconds.

    Attributes: ``error``, the error that ended the feed for good, or None; ``now_us``, the clock.
    """

    def __init__(
        self,
        options: ConnectionOptions,
        wanted: EventSelection,
        most: int,
        clock_us: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        super().__init__(options)
        self.error: SparkError | None = None
        self._wanted = wanted
        self._most = most
        self.now_us = clock_us
        self._rows: deque[EventRow] = deque()
        self._count = 0
        self._more = threading.Condition()
        self._stopped = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tmqp-events", daemon=True)

    # --- For other threads -----------------------------------------------------------------------

    def listen(self) -> None:
        """Start, and wait until the server has accepted the subscriptions.

        :raises SparkError: if the broker refuses, or cannot be reached in time.
        """
        self._thread.start()
        self._ready.wait((self.options.connect_timeout_ms + self.options.request_timeout_ms) / 1000)
        if self.error is not None:
            raise self.error
        if not self._ready.is_set():
            self.stop()
            raise SparkError(f"{self.options.url}: no connection came about (connectTimeoutMs)")

    def stop(self) -> None:
        """Stop receiving events."""
        self._stopped.set()
        self._thread.join(self.options.request_timeout_ms / 1000)

    def wait(self, after: int, seconds: float) -> int:
        """Return the number of events so far; if it is still ``after``, wait up to ``seconds`` for
        more.

        :raises SparkError: if the feed has ended for good.
        """
        with self._more:
            self._more.wait_for(lambda: self._count > after or self.error is not None, seconds)
            if self.error is not None:
                raise self.error
            return self._count

    def rows(self, start: int, end: int) -> list[EventRow]:
        """Return the events with the numbers ``start`` to before ``end``.

        One row with their number stands for those that found no room.
        """
        with self._more:
            first = self._count - len(self._rows)
            kept = [self._rows[number - first] for number in range(max(start, first), end)]
        if start < first:
            lost = min(end, first) - start
            kept.insert(0, missed_row(self.now_us(), "more came than maxBufferedEvents", lost))
        return kept

    def drop(self, before: int) -> None:
        """Drop the events with lower numbers, because they are no longer needed."""
        with self._more:
            while self._rows and self._count - len(self._rows) < before:
                self._rows.popleft()

    # --- The thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        attempt = 0
        while not self._stopped.is_set():
            try:
                self.open()
                self._subscribe()
                attempt = 0
                self._ready.set()
                while not self._stopped.is_set():
                    self._receive(self._clock() + _TURN_S)
            except ConnectionBroken as error:
                if self._ready.is_set() and attempt == 0:
                    self._put(missed_row(self.now_us(), f"not connected: {error}", None))
                attempt += 1
                self._stopped.wait(backoff(self.options).delay_s(attempt))
            except Exception as error:  # noqa: BLE001 - waiting threads must get it
                known = error if isinstance(error, SparkError) else None
                with self._more:
                    self.error = known or SparkError(f"{self.options.url}: {error!r}")
                    self._more.notify_all()
                self._ready.set()
                break
        self.close()

    def _subscribe(self) -> None:
        """Subscribe to the wanted events of the server, and of all existing channels and queues.

        :raises SparkError: if the broker refuses.
        """
        for name in self._wanted.of_server():
            code = self.finish(self._ask_for(name)).content_type
            if code:
                raise SparkError(
                    f"{self.options.url}: subscribe to {name}: refused ({code}); does the token"
                    " have the right to see events?"
                )
        if self._wanted.channels or self._wanted.queues:
            answer = self.finish(self.start(OP_CHANNEL_LIST, ""))
            if answer.content_type == 0:
                for channel in json.loads(answer.payload):
                    self._subscribe_channel(channel["Name"])

    def _subscribe_channel(self, channel: str) -> None:
        # A refusal means that the queue does not exist; its creation will be reported.
        for name in self._wanted.of_channel(channel):
            self._ask_for(name, channel)
        for each, queue in self._wanted.queues:
            if each == channel and EventName.MESSAGE_PRODUCED in self._wanted.events:
                self._ask_for(str(EventName.MESSAGE_PRODUCED), channel, queue)

    def _ask_for(self, name: str, channel: str = "", queue: int | None = None) -> str:
        """Send a subscription; return its message id."""
        headers = []
        if channel:
            headers.append((HeaderName.CHANNEL_NAME.value, channel))
        if queue is not None:
            headers.append((HeaderName.QUEUE_ID.value, str(queue)))
        frame = Frame.build(
            int(MessageType.EVENT), name, 1, message_id=self.next_id(), headers=headers
        )
        self.send([frame.raw], [frame.message_id] if not channel else [])
        return frame.message_id

    def _handle(self, events: list[Event]) -> None:
        super()._handle(events)
        for event in events:
            if isinstance(event, EventNotificationReceived):
                self._hear(event)

    def _hear(self, event: EventNotificationReceived) -> None:
        text = event.frame.payload.decode("utf-8", "replace")
        try:
            model = json.loads(text)
        except ValueError:
            model = {}
        if not isinstance(model, dict):
            model = {}
        channel = event.channel
        if event.name == EventName.CHANNEL_CREATED and isinstance(model.get("Name"), str):
            channel = model["Name"]
            self._subscribe_channel(channel)
        elif event.name == EventName.QUEUE_CREATED:
            place = (channel, model.get("Id"))
            if place in self._wanted.queues and EventName.MESSAGE_PRODUCED in self._wanted.events:
                self._ask_for(str(EventName.MESSAGE_PRODUCED), channel, model["Id"])
        if self._wanted.shows(event.name, channel):
            self._put(_row(self.now_us(), event.name, channel, model, text))

    def _put(self, row: EventRow) -> None:
        with self._more:
            self._rows.append(row)
            self._count += 1
            if len(self._rows) > self._most:
                self._rows.popleft()
            self._more.notify_all()


def missed_row(at_us: int, why: str, count: int | None) -> EventRow:
    """Make the row for missed events.

    :param count: their number; None if unknown.
    """
    detail = json.dumps({"Count": count, "Reason": why})
    return (at_us, MISSED, None, None, None, None, None, None, detail)


def _row(at_us: int, name: str, channel: str, model: dict[str, Any], text: str) -> EventRow:
    queue: object = None
    message_id = client_id = None
    if name == EventName.MESSAGE_PRODUCED:
        queue = model.get("Queue")
        message_id, client_id = model.get("Id"), model.get("ProducerId")
    elif name.startswith("Queue"):
        queue = model.get("Id")
    elif name in (EventName.CLIENT_CONNECTED, EventName.CLIENT_DISCONNECTED):
        client_id = model.get("Id")
    else:
        client_id = model.get("ClientId")
    client_name = model.get("ClientName") or model.get("ProducerName")
    if name.startswith("Client") and client_name is None:
        client_name = model.get("Name")
    if name == EventName.CHANNEL_REMOVED:
        channel = str(model.get("Name") or channel)
    return (
        at_us,
        name,
        channel or None,
        queue if isinstance(queue, int) else None,
        _text(client_id),
        _text(client_name),
        _text(model.get("Node")),
        _text(message_id),
        text,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _queue(text: str) -> tuple[str, int]:
    channel, slash, number = text.rpartition("/")
    if not slash or not channel or not (number.isascii() and number.isdigit()):
        raise InvalidOption(f"option queues is such as orders/7,orders/8, got {text!r}")
    return channel, int(number)
