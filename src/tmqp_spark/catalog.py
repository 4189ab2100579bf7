"""Finds the queues that a source reads, and the messages that the broker keeps in each.

Every request covers many queues and is one round trip.  A source that names a few channels requests
them concurrently; one that names many, or a pattern, requests all and selects here.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from tmqp import Frame, HeaderName, ResultCode
from tmqp.extensions import HEADER_CURSOR, HEADER_TIMESTAMP, HEADER_WAIT, OP_OFFSETS
from tmqp_spark.errors import DecodeFailed, InvalidOption
from tmqp_spark.offsets import Places, parse_key, queue_key
from tmqp_spark.options import SourceOptions
from tmqp_spark.transport import BrokerLink, refusal

__all__ = ["Catalog", "QueueState", "Subscription", "answer_list"]

#: A source of more channels than this requests all channels of the broker.
_MOST_FILTERS: Final = 4
_NEVER: Final = 2**63 - 1
#: A longer request, about very many queues, would exceed the broker's limits, so the broker does
#: not hold it; instead, a short one is repeated from time to time.
_LARGEST_QUESTION: Final = 500_000
#: The characters with which every match of a pattern begins.
_PLAIN_START: Final = re.compile(r"[A-Za-z0-9_-]+(?![A-Za-z0-9_*?{-])")


class QueueState:
    """The messages that the broker keeps in a queue.

    ``earliest`` and ``latest`` are sequences (if no message is kept, ``earliest`` is ``latest`` +
    1), ``oldest_ms`` is the arrival time of the earliest.  ``at`` is the first sequence that
    arrived at the requested time or later, ``committed`` the position of the requested cursor, -1
    if it does not exist; both are None if not requested.
    """

    __slots__ = (
        "at",
        "bytes",
        "channel",
        "committed",
        "count",
        "earliest",
        "incarnation",
        "latest",
        "oldest_ms",
        "queue",
    )

    def __init__(
        self,
        channel: str,
        queue: int,
        incarnation: str,
        earliest: int,
        latest: int,
        count: int,
        bytes: int,
        oldest_ms: int,
        at: int | None = None,
        committed: int | None = None,
    ) -> None:
        self.channel = channel
        self.queue = queue
        self.incarnation = incarnation
        self.earliest = earliest
        self.latest = latest
        self.count = count
        self.bytes = bytes
        self.oldest_ms = oldest_ms
        self.at = at
        self.committed = committed

    def __repr__(self) -> str:
        return f"<QueueState {self.channel}/{self.queue} {self.earliest}..{self.latest}>"

    @property
    def key(self) -> str:
        """``channel/queue``."""
        return queue_key(self.channel, self.queue)

    def size_of(self, count: int) -> int:
        """Estimate the size of this number of its messages."""
        return self.bytes * count // self.count if self.count else 0


class Subscription:
    """Which queues a source reads.

    ``named`` are those that the user named individually, which therefore must exist.

    :raises InvalidOption: unless exactly one of ``subscribe``, ``subscribePattern`` and ``assign``
        is set.
    """

    def __init__(self, options: SourceOptions) -> None:
        given = [
            name
            for name, value in (
                ("subscribe", options.subscribe),
                ("subscribePattern", options.subscribe_pattern),
                ("assign", options.assign),
            )
            if value
        ]
        if len(given) != 1:
            raise InvalidOption(
                "set one of the options subscribe, subscribePattern and assign to the queues to "
                f"read; {'none is' if not given else ' and '.join(given) + ' are'} given"
            )
        self.named: set[str] = set()
        self._channels: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        if options.subscribe:
            self._take_names(options.subscribe)
        elif options.assign:
            self._take_assignment(options.assign)
        else:
            self._pattern = re.compile(options.subscribe_pattern)

    def _take_names(self, text: str) -> None:
        for each in text.split(","):
            name = each.strip()
            if not name:
                raise InvalidOption(f"option subscribe: an empty name in {text!r}")
            if "/" not in name:
                self._channels.add(name)
                continue
            try:
                self.named.add(queue_key(*parse_key(name)))
            except ValueError as error:
                raise InvalidOption(f"option subscribe: {error}") from None

    def _take_assignment(self, text: str) -> None:
        wrong = InvalidOption(
            f'option assign must be JSON such as {{"orders":[7,8]}}, got {text!r}'
        )
        try:
            data = json.loads(text)
        except ValueError:
            raise wrong from None
        if not isinstance(data, dict) or not data:
            raise wrong
        for channel, queues in data.items():
            if not isinstance(queues, list) or not queues:
                raise wrong
            for queue in queues:
                if isinstance(queue, bool) or not isinstance(queue, int) or not 0 <= queue < 65_536:
                    raise wrong
                self.named.add(queue_key(channel, queue))

    def covers(self, key: str) -> bool:
        """Whether the queue of this name is read."""
        if self._pattern is not None:
            return self._pattern.fullmatch(key) is not None
        return key in self.named or key.rpartition("/")[0] in self._channels

    def filters(self) -> list[tuple[str, int | None]]:
        """The filters of channels to request, each with a queue id if a single one is enough."""
        if self._pattern is not None:
            pattern = self._pattern.pattern
            start = None if "|" in pattern else _PLAIN_START.match(pattern)
            return [(f"{start[0]}*" if start else "*", None)]
        queues: dict[str, list[int]] = {channel: [] for channel in self._channels}
        for key in self.named:
            channel, queue = parse_key(key)
            if channel not in self._channels:
                queues.setdefault(channel, []).append(queue)
        if len(queues) > _MOST_FILTERS:
            return [("*", None)]
        return [
            (channel, only[0] if len(only) == 1 else None)
            for channel, only in sorted(queues.items())
        ]

    def missing(self, states: Mapping[str, QueueState]) -> list[str]:
        """Return the named queues that do not exist."""
        return sorted(self.named - states.keys())


class Catalog:
    """Asks a broker about the queues of a subscription."""

    def __init__(self, link: BrokerLink, subscription: Subscription) -> None:
        self._link = link
        self.subscription = subscription
        self._filters = subscription.filters()
        # Queues that pass the filters but do not belong to the subscription: their messages are
        # reported as known, so that they do not end a wait.
        self._others: set[str] = set()

    def look(
        self, timestamp_ms: int | None = None, cursor: str | None = None
    ) -> dict[str, QueueState]:
        """Request the current states, by ``channel/queue``.

        :param timestamp_ms: also find the first message that arrived then or later.
        :param cursor: also find the position of this cursor.
        :raises BrokerRefused: and BrokerUnreachable, as the link does.
        :raises DecodeFailed: if the answer is invalid.
        """
        more = [] if timestamp_ms is None else [(HEADER_TIMESTAMP, str(timestamp_ms))]
        if cursor is not None:
            more.append((HEADER_CURSOR, cursor))

        def once() -> list[Frame]:
            ids = [
                self._link.start(OP_OFFSETS, channel, (*_of_queue(queue), *more))
                for channel, queue in self._filters
            ]
            return [self._link.finish(message_id) for message_id in ids]

        return self._states(self._link.patiently("offsets", once))

    def wait(
        self, places: Places, wait_ms: int, beside: Callable[[], Callable[[], object]] | None = None
    ) -> dict[str, QueueState]:
        """Return the states as soon as there are messages beyond ``places``, or the wait is over.

        :param beside: sends another request first, and returns a function that takes its answer, so
            both are one round trip.
        :raises BrokerRefused: as :meth:`look`.
        """
        known = self._known(places)
        if wait_ms <= 0 or len(known) > _LARGEST_QUESTION:
            if beside is not None:
                self._link.patiently("commit", functools.partial(_told, beside))
            found = self.look()
            if wait_ms > 0 and not _is_new(places, found):
                self._link.rest(wait_ms)
            return found
        # The broker holds only one request, so there is only one filter.
        channel, queue = self._filters[0] if len(self._filters) == 1 else ("*", None)
        headers = (*_of_queue(queue), (HEADER_WAIT, str(wait_ms)))

        def once() -> Frame:
            take = None if beside is None else beside()
            asked = self._link.start(OP_OFFSETS, channel, headers, known)
            if take is not None:
                take()
            return self._link.finish(asked, wait_ms)

        answer = self._link.patiently("offsets", once)
        if answer.content_type == int(ResultCode.BUSY):
            # The broker already holds as many requests as it allows: wait here.
            self._link.rest(wait_ms)
            return self.look()
        return self._states([answer])

    def _known(self, places: Places) -> bytes:
        """The known sequences, as the body of the request."""
        known = [_known(key, place.next - 1, place.incarnation) for key, place in places.items()]
        known += [_known(key, _NEVER, "") for key in self._others - places.keys()]
        return json.dumps(known, separators=(",", ":")).encode()

    def _states(self, answers: list[Frame]) -> dict[str, QueueState]:
        found: dict[str, QueueState] = {}
        others: set[str] = set()
        for answer in answers:
            if answer.content_type != 0:
                raise refusal(self._link.options.url, "offsets", answer)
            for item in answer_list(self._link, answer):
                state = _state(item)
                if self.subscription.covers(state.key):
                    found[state.key] = state
                else:
                    others.add(state.key)
        self._others = others
        return dict(sorted(found.items()))


def answer_list(link: BrokerLink, answer: Frame) -> list[dict[str, Any]]:
    """Read an answer that is a JSON array of objects.

    :raises DecodeFailed: if it is not such an array.
    """
    try:
        data = json.loads(answer.payload or b"[]")
    except ValueError:
        data = None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise DecodeFailed(f"{link.options.url}: an answer that is not a list: {answer!r}")
    return data


def _of_queue(queue: int | None) -> tuple[tuple[str, str], ...]:
    return () if queue is None else ((HeaderName.QUEUE_ID.value, str(queue)),)


def _told(beside: Callable[[], Callable[[], object]]) -> object:
    return beside()()


def _is_new(places: Places, states: Mapping[str, QueueState]) -> bool:
    """Whether there are messages or queues that are not known."""
    if places.keys() != states.keys():
        return True
    return any(state.latest >= places[key].next for key, state in states.items())


def _known(key: str, latest: int, incarnation: str) -> dict[str, Any]:
    channel, queue = parse_key(key)
    known: dict[str, Any] = {"Channel": channel, "Queue": queue, "Latest": latest}
    if incarnation:
        known["Incarnation"] = incarnation
    return known


def _state(item: dict[str, Any]) -> QueueState:
    try:
        at, committed = item.get("At"), item.get("Committed")
        return QueueState(
            str(item["Channel"]),
            int(item["Queue"]),
            str(item.get("Incarnation", "")),
            int(item.get("Earliest", 0)),
            int(item.get("Latest", 0)),
            int(item.get("Count", 0)),
            int(item.get("Bytes", 0)),
            int(item.get("Oldest", 0)),
            None if at is None else int(at),
            None if committed is None else int(committed),
        )
    except (KeyError, TypeError, ValueError):
        raise DecodeFailed(f"offsets that cannot be read: {item!r}") from None
