"""Browsers of OpenWire, which show the messages of a queue without taking them.

A queue is shown in portions: the next one is fetched when the previous one has been written.  A
session browses one queue at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import RESULT_NOT_FOUND, RESULT_OK
from tmqp_server.doors.openwire.answering import (
    INVALID_DESTINATION,
    OVER_LIMIT,
    AskedCommand,
    CommandError,
    fault_of_code,
)
from tmqp_server.doors.openwire.consumers import Consumer
from tmqp_server.doors.openwire.context import OpenwireContext
from tmqp_server.doors.openwire.message import QUEUE
from tmqp_server.doors.openwire.subscribing import SubscriberSession
from tmqp_server.engine.commands import Browse
from tmqp_server.engine.commands import Command as EngineCommand
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.snapshots import (
    BROWSED_IN_FLIGHT,
    BROWSED_WAITING,
    BrowseSnapshot,
)
from tmqp_wires.openwire.commands import ConsumerInfo

__all__ = ["Browsed", "LookingSession"]

_SHOWN: Final = BROWSED_WAITING | BROWSED_IN_FLIGHT


@final
class Browsed:
    """A browser, and the token of its requests; ``first`` is the sequence where the next request
    begins."""

    __slots__ = ("browser", "channels", "first")

    def __init__(self, browser: Consumer) -> None:
        self.browser = browser
        #: The channels that are still to be browsed.
        self.channels = list(browser.channels)
        self.first = 0


class LookingSession(SubscriberSession):
    """The part of a session that browses."""

    def __init__(self, context: OpenwireContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._browsers: dict[tuple[int, int], Browsed] = {}
        #: The browsers that are not finished; the first one browses, or will when everything queued
        #: was written.
        self._looking: deque[Browsed] = deque()
        self._looks = False

    def _begin_consumer(
        self, info: ConsumerInfo, asked: AskedCommand, commands: list[EngineCommand]
    ) -> None:
        """Begin a browser, or another kind of consumer.

        :raises CommandError: when it cannot begin.
        """
        if not info.browser:
            super()._begin_consumer(info, asked, commands)
            return
        most = self._context.limits.max_consumers
        if len(self._browsers) >= most:
            raise CommandError(OVER_LIMIT, f"a connection has at most {most} browsers")
        browser = self._new_consumer(info)
        for place in self._places_of(info.destination):
            if place.is_topic:
                raise CommandError(INVALID_DESTINATION, "a topic cannot be browsed")
            browser.channels[place.channel] = place
        browsed = Browsed(browser)
        self._browsers[info.consumer.key] = browsed
        self._settle(asked)
        self._looking.append(browsed)
        self._look(commands)

    def _look(self, commands: list[EngineCommand]) -> None:
        """Request the next portion for the first browser, unless a request is outstanding."""
        if not self._looking or self._looks:
            return
        browsed = self._looking[0]
        self._looks = True
        commands.append(
            Browse(
                self._number, browsed, browsed.channels[0], QUEUE, browsed.first, 0, 0, _SHOWN, ""
            )
        )

    def _browsed(self, effect: Reply, browsed: Browsed) -> Sequence[EngineCommand]:
        """Send the messages of a portion."""
        self._looks = False
        if not self._looking or self._looking[0] is not browsed:
            commands: list[EngineCommand] = []
            self._look(commands)
            return commands
        body = effect.body
        shown = 0
        if effect.code == RESULT_OK and isinstance(body, BrowseSnapshot):
            for item in body.items:
                self._show(browsed.browser, item.message, browsed.channels[0], item.put_backs)
                browsed.first = item.sequence + 1
                shown += 1
        elif effect.code not in (RESULT_OK, RESULT_NOT_FOUND):
            asked = AskedCommand("browser", 0)
            self._fail(asked, *fault_of_code(effect.code))
        if not shown:
            browsed.channels.pop(0)
            browsed.first = 0
        if not browsed.channels:
            self._looking.popleft()
            self._say(browsed.browser.dispatch(None))
        self.wants_written = True
        return ()

    def _show(self, browser: Consumer, message: Message, channel: str, redeliveries: int) -> None:
        chosen = browser.filter
        if chosen is not None and not chosen.accepts(message):
            return
        kept = self._context.kept_of(message, channel)
        self._dispatched += 1
        self._dispatch(browser.head(channel), kept, self._dispatched, redeliveries)

    def written(self, now: float) -> Sequence[EngineCommand]:
        """Everything queued was written: request the next portion."""
        commands = [*super().written(now)]
        if not self.closed:
            self._look(commands)
        return commands

    def _end_browser(self, key: tuple[int, int]) -> None:
        """Close a browser, if there is one with this id."""
        browsed = self._browsers.pop(key, None)
        if browsed is not None and browsed in self._looking:
            self._looking.remove(browsed)
