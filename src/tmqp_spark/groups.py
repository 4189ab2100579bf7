"""A named group: one cursor of the same name in each queue, stored by the broker.

A group records how far its reader has processed, survives both the reader and the broker, and (in
queues with ``RetainForReaders``) makes the broker keep later messages.  A cursor has the last
processed sequence; places have the next one to be read.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from typing import Final

from tmqp import Frame, HeaderName, ResultCode
from tmqp.extensions import (
    HEADER_CURSOR,
    HEADER_INCARNATION,
    HEADER_START,
    OP_COMMIT_CURSOR,
    OP_COMMIT_GROUP,
)
from tmqp.models import CursorInformation, ModelError, parse_list
from tmqp_spark.catalog import QueueState
from tmqp_spark.errors import DecodeFailed, GroupShared
from tmqp_spark.offsets import Place, Places, parse_key, queue_key
from tmqp_spark.transport import BrokerLink, refusal

__all__ = ["Group"]

#: Concurrent requests: the broker processes eight of one client.
_UNDER_WAY: Final = 6
#: Queues in one commit: a broker accepts messages of 1 MiB by default.
_QUEUES_A_PIECE: Final = 1_000
#: All queues were removed, or one has fewer messages than were read.  The next read reports that,
#: with a better explanation.
_FOR_THE_READER: Final = (
    int(ResultCode.NOT_FOUND),
    int(ResultCode.REQUESTED_RANGE_NOT_SATISFIABLE),
)


class Group:
    """A group with this name at the broker."""

    def __init__(self, link: BrokerLink, name: str) -> None:
        self._link = link
        self.name = name
        #: The group's positions in the broker's last answers.
        self._committed: dict[str, tuple[str, int]] = {}
        #: The positions that this reader committed last.
        self._sent: dict[str, tuple[str, int]] = {}

    def open(self, states: Iterable[QueueState], start: str) -> Places:
        """Create the group's cursors in these queues; existing ones keep their positions.

        :param start: ``earliest`` or ``latest``.
        :returns: the positions, which the broker has stored.
        :raises BrokerRefused: and BrokerUnreachable, as the link does.
        """
        wanted = [(state.key, state.incarnation, (HEADER_START, start)) for state in states]
        return self._move(wanted, "open")

    def commit(self, places: Places) -> Places:
        """Commit that everything before these places is processed; a group never moves back.

        Missing cursors are created, and places that were already committed are not sent again.

        :returns: the group's positions in the queues whose places were sent, without queues that
            were removed or replaced.
        :raises BrokerRefused: as :meth:`open`.
        """

        def once() -> Places:
            return self.finish_commit(self.start_commit(places))

        return self._link.patiently(f"commit group {self.name}", once)

    def start_commit(self, places: Places) -> list[str]:
        """Send a commit without waiting, in several messages if it is large; return their ids.

        :raises ConnectionBroken: if the connection is lost.
        """
        payload = [
            _offset(key, place)
            for key, place in places.items()
            if self._committed.get(key) != (place.incarnation, place.next)
        ]
        for key, place in places.items():
            self._sent[key] = (place.incarnation, place.next)
        asked: list[str] = []
        for start in range(0, len(payload), _QUEUES_A_PIECE):
            piece = payload[start : start + _QUEUES_A_PIECE]
            body = json.dumps(piece, separators=(",", ":")).encode()
            asked.append(
                self._link.start(OP_COMMIT_GROUP, "*", ((HEADER_CURSOR, self.name),), body)
            )
        return asked

    def finish_commit(self, asked: list[str]) -> Places:
        """Wait for the answers to a commit, which is then on the broker's disk.

        :raises ConnectionBroken: if the connection is lost.
        :raises BrokerRefused: as :meth:`open`.
        :raises GroupShared: if another reader has moved the group forward.
        """
        found: Places = {}
        for message_id in asked:
            found.update(self._take(self._link.finish(message_id)))
        return found

    def _take(self, answer: Frame) -> Places:
        if answer.content_type in _FOR_THE_READER:
            return {}
        if answer.content_type != 0:
            raise refusal(self._link.options.url, f"commit group {self.name}", answer)
        found: Places = {}
        for cursor in _cursors(answer):
            key = queue_key(cursor.channel, cursor.queue)
            place = Place(cursor.incarnation, cursor.sequence + 1)
            self._check_alone(key, place)
            found[key] = place
            self._committed[key] = (place.incarnation, place.next)
        return found

    def _check_alone(self, key: str, place: Place) -> None:
        """Check that no other reader has moved the group forward since the broker's last answer.

        A group that was ahead from the beginning does not prove a second reader, because a
        checkpoint may have been rolled back.
        """
        before, sent = self._committed.get(key), self._sent.get(key)
        if before is None or sent is None or before[0] != place.incarnation:
            return
        if place.next > max(before[1], sent[1]):
            raise GroupShared(
                f"{self._link.options.url} {key}: group {self.name} is at message {place.next - 1},"
                f" and this query has committed {sent[1] - 1}: does another query use the same"
                " group, or was it moved? Give each query its own group"
            )

    def _move(self, wanted: list[tuple[str, str, tuple[str, str]]], word: str) -> Places:
        found: Places = {}
        for start in range(0, len(wanted), _UNDER_WAY):
            piece = wanted[start : start + _UNDER_WAY]
            answers = self._link.patiently(
                f"{word} group {self.name}", functools.partial(self._ask, piece)
            )
            for (key, incarnation, _), answer in zip(piece, answers, strict=True):
                if answer.content_type in (int(ResultCode.NOT_FOUND), int(ResultCode.CONFLICT)):
                    continue
                if answer.content_type != 0:
                    raise refusal(
                        self._link.options.url, f"{word} group {self.name} of {key}", answer
                    )
                place = Place(incarnation, _sequence(answer) + 1)
                found[key] = place
                self._committed[key] = (incarnation, place.next)
        return found

    def _ask(self, piece: list[tuple[str, str, tuple[str, str]]]) -> list[Frame]:
        ids: list[str] = []
        for key, incarnation, where in piece:
            channel, queue = parse_key(key)
            headers = [
                (HeaderName.QUEUE_ID.value, str(queue)),
                (HEADER_CURSOR, self.name),
                where,
            ]
            if incarnation:
                headers.append((HEADER_INCARNATION, incarnation))
            ids.append(self._link.start(OP_COMMIT_CURSOR, channel, headers))
        return [self._link.finish(message_id) for message_id in ids]


def _offset(key: str, place: Place) -> dict[str, object]:
    channel, queue = parse_key(key)
    return {
        "Channel": channel,
        "Queue": queue,
        "Incarnation": place.incarnation,
        "Sequence": max(0, place.next - 1),
    }


def _cursors(answer: Frame) -> list[CursorInformation]:
    try:
        return parse_list(CursorInformation, answer.payload)
    except ModelError as error:
        raise DecodeFailed(f"cursors that cannot be read: {error}") from None


def _sequence(answer: Frame) -> int:
    try:
        return CursorInformation.from_json(answer.payload).sequence
    except ModelError as error:
        raise DecodeFailed(f"a cursor that cannot be read: {error}") from None
