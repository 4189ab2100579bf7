"""``.../transfers``: move messages to another queue, or dead letters back to their first queue.

The broker moves each message in one step: it is always in exactly one of the two queues, whatever
fails.  In a cluster whose other servers must get the push, this is not possible: the message is
pushed to the target and removed when the push is confirmed.  So a crash, or a consumer that takes
the message in between, may leave it in both queues.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from tmqp.constants import (
    MAX_QUEUE_ID,
    RESULT_BUSY,
    RESULT_NOT_IMPLEMENTED,
    RESULT_OK,
    TYPE_QUEUE_MESSAGE,
)
from tmqp.errors import LocalProtocolError
from tmqp.extensions import (
    DEAD_LETTER_HEADERS,
    HEADER_DEAD_LETTER_QUEUE,
    HEADER_DELAY,
    HEADER_DELIVER_AT,
    HEADER_MESSAGE_TIMEOUT,
)
from tmqp.frames import Frame
from tmqp_server.access.rights import BROWSE, CLEAR_MESSAGES
from tmqp_server.admin.api.channels import place_of
from tmqp_server.admin.api.running import Stepping, Steps, for_right, need
from tmqp_server.admin.api.table import Api, Operation, body_of
from tmqp_server.doors.http.contents import wanted_filter
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpResponse, problem
from tmqp_server.doors.rewriting import writable_headers
from tmqp_server.engine.commands import (
    AskRight,
    Browse,
    Command,
    MoveMessage,
    Push,
    RemoveMessage,
)
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.model.snapshots import BROWSED_WAITING, BrowsedMessage, BrowseSnapshot

__all__ = ["TRANSFER_OPERATIONS"]

_NO_QUEUE: Final = "there is no such queue"
#: How many messages a transfer moves: by default, and at most.
_COUNT: Final = 1_000
_MOST: Final = 10_000
_MOST_IDS: Final = 1_000
#: How many messages are examined in one portion, and in all.
_PORTION: Final = 100
_MOST_EXAMINED: Final = 20_000
#: The pause after each portion, for other work; seconds.
_PAUSE_S: Final = 0.001
#: How often moving a busy message is tried again, and the seconds in between.
_MOST_TRIES: Final = 5
_RETRY_S: Final = 0.02
#: Headers that the copy of a message does not keep: the copy may be delivered at once.
_DROPPED: Final = frozenset(
    name.lower()
    for name in (*DEAD_LETTER_HEADERS, HEADER_DELAY, HEADER_DELIVER_AT, HEADER_MESSAGE_TIMEOUT)
)

_Place = tuple[str, int]


def _first_of(frame: Frame) -> _Place | None:
    """The queue where a dead letter was first; None for any other message."""
    channel, separator, number = (frame.header(HEADER_DEAD_LETTER_QUEUE) or "").rpartition(";")
    if not separator or not (number.isascii() and number.isdigit()):
        return None
    return (channel, int(number)) if channel and int(number) <= MAX_QUEUE_ID else None


def _target_of(value: object) -> _Place | None:
    """The queue to move messages to; None for the first queue of each message.

    :raises BadRequest: when the value is neither.
    """
    if value == "first":
        return None
    if isinstance(value, dict) and set(value) == {"channel", "queue"}:
        channel, queue_id = value["channel"], value["queue"]
        whole = isinstance(queue_id, int) and not isinstance(queue_id, bool)
        if isinstance(channel, str) and channel and whole and 0 <= queue_id <= MAX_QUEUE_ID:
            return channel, queue_id
    raise BadRequest(422, 'to must be "first", or an object with a channel and a queue')


class _Transfer:
    """One transfer: what its request asks for, and its progress."""

    def __init__(self, api: Api, exchange: Exchange) -> None:
        self._running = api.transfers
        self._name = api.world.random_bytes(8).hex()
        self._stopped = False
        self._exchange = exchange
        self._client = exchange.client
        self._place = place_of(exchange)
        given = body_of(
            exchange.wanted,
            {
                "to": (str, dict),
                "ids": list,
                "count": int,
                "filter": str,
                "filter_language": str,
                "dry_run": bool,
            },
        )
        self._target = _target_of(given.get("to", "first"))
        if self._target == self._place:
            raise BadRequest(422, "the messages are in this queue already")
        self._ids = self._read_ids(given.get("ids"))
        self._count = given.get("count", len(self._ids) or _COUNT)
        if not 0 < self._count <= _MOST:
            raise BadRequest(422, f"count must be a whole number from 1 to {_MOST}")
        self._dry = given.get("dry_run", False)
        self._filter = wanted_filter(
            given.get("filter_language"), given.get("filter"), self._client.letters, 422
        )
        self._examined = 0
        self._matched = 0
        self._moved = 0
        self._failed: dict[str, int] = {}
        self._targets: dict[_Place, int] = {}
        self._more = False

    def _read_ids(self, value: Any) -> list[str]:
        if value is None:
            return []
        texts = [each for each in value if isinstance(each, str) and each]
        if not texts or len(texts) != len(value) or len(texts) > _MOST_IDS:
            raise BadRequest(422, f"ids must be a list of 1 to {_MOST_IDS} ids of messages")
        return list(dict.fromkeys(texts))

    def stop(self) -> None:
        """Move no more messages; those that were moved stay in their new queues."""
        self._stopped = True

    def steps(self, session: int, request: object) -> Steps:
        """Examine the queue in portions, and move the matching messages."""
        self._running[(*_key(self._place), self._name)] = self
        try:
            return (yield from self._moves(session, request))
        finally:  # also when the connection of its client ends
            del self._running[(*_key(self._place), self._name)]

    def _moves(self, session: int, request: object) -> Steps:
        channel, queue_id = self._place
        if not self._dry:
            # Else everything would be pushed before it turns out that nothing may be removed.
            ask = AskRight(session, request, CLEAR_MESSAGES, channel, queue_id)
            need((yield ask))
        wanted: list[str] = self._ids or [""]
        for message_id in wanted:
            yield from self._walk(session, request, message_id)
            if self._matched >= self._count or self._stopped:
                break
        return HttpResponse.json(200, {**self.shown(), "running": False})

    def _browse(self, session: int, request: object, first: int, message_id: str) -> Browse:
        channel, queue_id = self._place
        limit = 1 if message_id else _PORTION
        return Browse(
            session,
            request,
            channel,
            queue_id,
            first,
            limit,
            0,
            BROWSED_WAITING,
            message_id,
            self._filter,
        )

    def _walk(
        self, session: int, request: object, message_id: str
    ) -> Generator[Command | float, Reply, None]:
        first = 0
        while True:
            body = need((yield self._browse(session, request, first, message_id)), _NO_QUEUE)
            assert isinstance(body, BrowseSnapshot), "it is the answer"
            for each in body.items:
                done = self._matched >= self._count or self._examined >= _MOST_EXAMINED
                if done or self._stopped:
                    self._more = True
                    return
                yield from self._meet(session, request, each)
            if message_id or not body.items:
                return
            first = body.items[-1].sequence + 1
            yield _PAUSE_S

    def _meet(
        self, session: int, request: object, item: BrowsedMessage
    ) -> Generator[Command | float, Reply, None]:
        """Move a message, if it has a target."""
        self._examined += 1
        try:
            frame = self._client.letters.frame_of(item.message)
        except LookupError:
            return  # its door is no more
        target = _first_of(frame) if self._target is None else self._target
        if target is None or target == self._place:
            return
        self._matched += 1
        self._targets[target] = self._targets.get(target, 0) + 1
        if self._dry:
            return
        try:
            push = self._copy(session, frame, item, target)
        except LocalProtocolError as error:
            self._fail(str(error))
            return
        move = MoveMessage(session, request, *self._place, item.message_id, push)
        reply = yield move
        for _ in range(_MOST_TRIES):
            if reply.code != RESULT_BUSY:
                break
            yield _RETRY_S  # the storage answers for it soon
            reply = yield move
        if reply.code == RESULT_OK:
            self._moved += 1
        elif reply.code == RESULT_NOT_IMPLEMENTED:
            yield from self._push_and_remove(session, request, push)
        else:
            self._refused(reply.code)

    def _push_and_remove(
        self, session: int, request: object, push: Push
    ) -> Generator[Command | float, Reply, None]:
        """Move a message in two steps, because other servers of the cluster must get the push."""
        confirms = self._client.confirms
        if push.message_id in confirms:
            self._fail("a message with this id is not confirmed yet")
            return
        confirms[push.message_id] = request
        reply = yield push
        confirms.pop(push.message_id, None)
        if reply.code != RESULT_OK:
            self._refused(reply.code)
            return
        reply = yield RemoveMessage(session, request, *self._place, push.message_id)
        if reply.code == RESULT_OK:
            self._moved += 1
        else:
            self._fail("copied, but the original is no longer in its queue")

    def _refused(self, code: int) -> None:
        words = {401: "not allowed", 404: "no such queue or message", 482: "a limit is reached"}
        self._fail(words.get(code, f"refused with {code}"))

    def _fail(self, words: str) -> None:
        self._failed[words] = self._failed.get(words, 0) + 1

    def _copy(self, session: int, frame: Frame, item: BrowsedMessage, target: _Place) -> Push:
        headers = [pair for pair in writable_headers(frame) if pair[0].lower() not in _DROPPED]
        copy = Frame.build(
            TYPE_QUEUE_MESSAGE,
            target[0],
            target[1],
            frame.payload,
            message_id=item.message_id,
            source=frame.source or self._client.client_id,
            headers=headers,
            high_priority=item.high_priority,
            pending_acknowledge=True,
        )
        return Push(
            session,
            item.message_id,
            target[0],
            target[1],
            item.high_priority,
            True,
            len(copy.raw),
            copy,
        )

    def shown(self) -> dict[str, object]:
        """The progress so far, as JSON members."""
        return {
            "id": self._name,
            "count": self._matched,
            "moved": self._moved,
            "examined": self._examined,
            "failed": [{"reason": why, "count": count} for why, count in self._failed.items()],
            "targets": [
                {"channel": channel, "queue": queue_id, "count": count}
                for (channel, queue_id), count in self._targets.items()
            ],
            "more": self._more,
            "stopped": self._stopped,
            "running": True,
        }


def _key(place: _Place) -> _Place:
    """A queue as a key, which ignores the case of the channel's name."""
    return place[0].lower(), place[1]


def _transfer(api: Api, exchange: Exchange) -> Handler:
    return Stepping(exchange, _Transfer(api, exchange).steps)


def _tell(api: Api, exchange: Exchange) -> Handler:
    """The transfers out of a queue that are in progress, for clients that may browse the queue."""
    place = place_of(exchange)

    def answer(_body: object) -> HttpResponse:
        key = _key(place)
        found = [each.shown() for name, each in api.transfers.items() if name[:2] == key]
        return HttpResponse.json(200, {"items": found})

    return for_right(exchange, BROWSE, answer, *place)


def _stop(api: Api, exchange: Exchange) -> Handler:
    """Stop a transfer, for clients that may clear its queue."""
    place = place_of(exchange)
    name = (*_key(place), exchange.wanted.text("id"))

    def answer(_body: object) -> HttpResponse:
        found = api.transfers.get(name)
        if found is None:
            return problem(404, "there is no such transfer in progress")
        found.stop()
        return HttpResponse(204)

    return for_right(exchange, CLEAR_MESSAGES, answer, *place)


TRANSFER_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="transfer",
        method="POST",
        path="/channels/{channel}/queues/{queue:int}/transfers",
        summary="Move waiting messages: chosen ones, or all that a filter accepts; dead letters"
        " back to their first queues.",
        begin=_transfer,
        rights=("browse", "clear-messages", "push"),
        commands=(AskRight, Browse, MoveMessage, Push, RemoveMessage),
        body="Transfer",
        answer="Transferred",
        failures=(404, 409, 422),
    ),
    Operation(
        name="listTransfers",
        method="GET",
        path="/channels/{channel}/queues/{queue:int}/transfers",
        summary="The running transfers out of a queue, with their progress.",
        begin=_tell,
        rights=("browse",),
        commands=(AskRight,),
        answer="TransferList",
    ),
    Operation(
        name="stopTransfer",
        method="DELETE",
        path="/channels/{channel}/queues/{queue:int}/transfers/{id}",
        summary="Stop a transfer; messages already moved stay in their new queues.",
        begin=_stop,
        rights=("clear-messages",),
        commands=(AskRight,),
        status=204,
        failures=(404,),
    ),
)
