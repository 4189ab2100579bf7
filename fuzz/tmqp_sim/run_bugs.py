"""The bugs that are planted in runs, messages that are taken together; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp.bits import HAS_HEADER
from tmqp.runs import FrameRun
from tmqp_server.engine.commands import AcknowledgeRun, PushRun
from tmqp_server.engine.delivery.push_runs import RunIntake
from tmqp_server.engine.delivery.run_dealing import RunDealer
from tmqp_server.engine.effects import AppendRun, ConfirmRun, DeliverRun, EraseRun
from tmqp_server.engine.flights import Flights
from tmqp_server.engine.flights.runs import WaitingRun
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import MARK_TOGETHER
from tmqp_server.engine.model.packed_parts import PackedPart
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.waiting_parts import WaitingPart
from tmqp_server.hub.outlets import Outlets
from tmqp_server.storage.journal import Journal

__all__ = ["RUN_BUGS"]


def _confirms_early(original: Any) -> Any:
    def keep(
        self: RunDealer, queue: Queue, run: PushRun, origin: Origin, messages: list[Any]
    ) -> None:
        original(self, queue, run, origin, messages)
        if messages[0].marks & MARK_TOGETHER:
            for message in messages:
                message.marks &= ~MARK_TOGETHER
            ids = [message.message_id for message in messages]
            self._core.out.append(ConfirmRun(origin.number, ids, run.channel, run.queue_id))

    return keep


def _keeps_all_but_one(original: Any) -> Any:
    def append(self: Journal, effect: AppendRun, *rest: Any) -> bool:
        taken: bool = original(self, effect, *rest)
        if taken:
            run = self._whole[effect.key][-1]
            run.settle(run.last)
        return taken

    return append


def _erases_all_but_one(original: Any) -> Any:
    def erase(self: Journal, effect: EraseRun) -> None:
        if len(effect.sequences) > 1:
            effect = EraseRun(effect.key, effect.sequences[:-1])
        original(self, effect)

    return erase


def _misses_the_last_answer(original: Any) -> Any:
    def acknowledge(self: RunIntake, run: AcknowledgeRun, *rest: Any) -> bool:
        run.message_ids[-1] = "nobody's"
        taken: bool = original(self, run, *rest)
        return taken

    return acknowledge


def _answers_the_first_queue(original: Any) -> Any:
    def acknowledge(self: RunIntake, run: AcknowledgeRun, *rest: Any) -> bool:
        run.queues = []
        taken: bool = original(self, run, *rest)
        return taken

    return acknowledge


def _blind_to_duplicates(original: Any) -> Any:
    def track(
        self: RunIntake, queue: Queue, session: Any, only: Any, run: PushRun, *rest: Any
    ) -> bool:
        for name in run.wire.contents()[0]:
            queue.flights.pop(name, None)
        taken: bool = original(self, queue, session, only, run, *rest)
        return taken

    return track


def _never_timed(original: Any) -> Any:
    def track(self: RunIntake, queue: Queue, *rest: Any) -> bool:
        wake_at, queue.timer.wake_at = queue.timer.wake_at, 0.0
        taken: bool = original(self, queue, *rest)
        queue.timer.wake_at = wake_at
        return taken

    return track


def _endless_window(original: Any) -> Any:
    def init(self: RunIntake, *arguments: Any) -> None:
        original(self, *arguments)
        self._flights = Flights(self._core)
        self._flights._window = 1 << 30

    return init


def _room_for_all(original: Any) -> Any:
    def has_room(self: RunIntake, queue: Queue, run: PushRun) -> bool:
        return True

    return has_room


def _overtakes(original: Any) -> Any:
    def goes_through(self: RunIntake, queue: Queue) -> bool:
        return queue.plain and len(queue.audience.subscriptions) > 0

    return goes_through


def _delivers_twice(original: Any) -> Any:
    def hand_out(self: Outlets, effect: Any) -> None:
        original(self, effect)
        if isinstance(effect, DeliverRun):
            original(self, effect)

    return hand_out


def _forgets_headers(original: Any) -> Any:
    def forwarded(self: FrameRun, first: bool, asks: bool, ttl: int) -> bytes:
        data: bytes = original(self, first, asks, ttl)
        place, parts = 0, []
        for tail in self._pieces()[1:]:
            head = data[place : place + 2]
            parts += [bytes((head[0], head[1] & ~HAS_HEADER)), tail]
            place += 2 + len(tail)
        return b"".join(parts)

    return forwarded


def _keeps_one_number(original: Any) -> Any:
    def forwarded(self: FrameRun, first: bool, asks: bool, ttl: int) -> bytes:
        if not self.queues:
            data: bytes = original(self, first, asks, ttl)
            return data
        pieces = self._pieces()
        number = pieces[1][3:5]
        tails = [b"", *[tail[:3] + number + tail[5:] for tail in pieces[1:]]]
        run = FrameRun(
            self.first,
            self.at,
            self.count,
            tails,
            [],
            b"",
            0,
            self.size,
            self.largest,
            [],
            self.odd,
        )
        return run.forwarded(first, asks, ttl)

    return forwarded


def _makes_all_but_one(original: Any) -> Any:
    def make(self: WaitingPart) -> list[Any]:
        made: list[Any] = original(self)
        return made[:-1]

    return make


#: What makes each of them: name, text, owner, attribute, and the change.
RUN_BUGS: Final[tuple[tuple[str, str, Any, str, Callable[[Any], Any]], ...]] = (
    (
        "run-confirmed-early", "a run's producer is told before the storage has answered",
        RunDealer, "keep", _confirms_early,
    ),
    (
        "run-kept-in-part", "one message of a run is not written",
        Journal, "_append_whole", _keeps_all_but_one,
    ),
    (
        "run-erased-in-part", "one message of a run that is answered for stays on the disk",
        Journal, "_erase_run", _erases_all_but_one,
    ),
    (
        "run-answered-in-part", "the last answer of a run is not taken",
        RunIntake, "acknowledge", _misses_the_last_answer,
    ),
    (
        "run-answered-elsewhere", "answers to several queues are taken for answers to the first",
        RunIntake, "acknowledge", _answers_the_first_queue,
    ),
    (
        "run-of-duplicates", "a run takes the place of messages in flight with the same ids",
        RunIntake, "_track", _blind_to_duplicates,
    ),
    (
        "run-never-timed", "nobody wakes a queue when the answers to a run are overdue",
        RunIntake, "_track", _never_timed,
    ),
    (
        "run-wider-window", "a run is taken whole whatever its consumer has in hand",
        RunIntake, "__init__", _endless_window,
    ),
    (
        "run-without-room", "a run is taken whole whatever room there is",
        RunIntake, "_has_room", _room_for_all,
    ),
    (
        "run-overtakes", "a run is sent whatever waits, and whoever cannot take it",
        RunIntake, "_goes_through", _overtakes,
    ),
    (
        "run-delivered-twice", "a run is written twice to its consumers",
        Outlets, "hand_out", _delivers_twice,
    ),
    (
        "run-without-headers", "headers in runs are delivered as a part of the payload",
        FrameRun, "forwarded", _forgets_headers,
    ),
    (
        "run-of-one-queue", "messages of a run for several queues are delivered as of the first",
        FrameRun, "forwarded", _keeps_one_number,
    ),
    (
        "run-waits-in-part", "of a run that waits in one piece a message is forgotten",
        WaitingRun, "_make", _makes_all_but_one,
    ),
    (
        "packed-in-part", "of messages that wait as bytes the last is forgotten",
        PackedPart, "_make", _makes_all_but_one,
    ),
)  # fmt: skip
