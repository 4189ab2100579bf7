"""Browsers of a session of STOMP: ``browser:true`` of SUBSCRIBE.

A browser gets the messages that are in a queue, and then a MESSAGE with ``browser:end``.  Nothing
in the queue changes.  The session asks the broker for a portion of messages, and for the next one
when these have been written, so the output is bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import RESULT_NOT_FOUND, RESULT_OK
from tmqp_server.doors.stomp.consuming import DeliveringSession, StompSubscription
from tmqp_server.doors.stomp.context import StompContext
from tmqp_server.doors.stomp.delivering import delivery_bytes
from tmqp_server.doors.stomp.message import QUEUE
from tmqp_server.doors.stomp.writing import AskedFrame, words_of
from tmqp_server.engine.commands import Browse, Command
from tmqp_server.engine.effects import Reply
from tmqp_server.engine.model.message import SubscriptionFilter
from tmqp_server.engine.model.snapshots import BROWSED_IN_FLIGHT, BROWSED_WAITING, BrowseSnapshot

__all__ = ["Browser", "BrowsingSession"]

#: Messages that are asked for at a time, and bytes of them.
_PAGE: Final = 100
_PAGE_BYTES: Final = 1_048_576
#: The states that a browser sees: waiting messages, and those in flight.
_STATES: Final = BROWSED_WAITING | BROWSED_IN_FLIGHT
_END: Final = ("browser", "end")


@final
class Browser:
    """A browsing subscription: its channel, its filter (``wanted``), and the ``next`` sequence."""

    __slots__ = ("asked", "channel", "next", "subscription", "wanted")

    def __init__(
        self,
        subscription: StompSubscription,
        channel: str,
        wanted: SubscriptionFilter | None,
        asked: AskedFrame,
    ) -> None:
        self.subscription = subscription
        self.channel = channel
        self.wanted = wanted
        self.asked = asked
        self.next = 0


class BrowsingSession(DeliveringSession):
    """The browsing part of a session, which browses one queue at a time."""

    def __init__(self, context: StompContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        #: The first one browses, or waits until its messages were written.
        self._browsers: list[Browser] = []
        self._pauses = False

    def _browse(
        self,
        subscription: StompSubscription,
        channel: str,
        wanted: SubscriptionFilter | None,
        asked: AskedFrame,
        commands: list[Command],
    ) -> None:
        """Begin to browse a queue after the earlier browsers have finished."""
        self._browsers.append(Browser(subscription, channel, wanted, asked))
        if len(self._browsers) == 1:
            commands.append(self._look())

    def _look(self) -> Command:
        """Ask for the next messages that the first browser has not seen."""
        browser = self._browsers[0]
        first, channel = browser.next, browser.channel
        return Browse(self._number, browser, channel, QUEUE, first, _PAGE, _PAGE_BYTES, _STATES, "")

    def _browsed(self, effect: Reply, browser: Browser) -> Sequence[Command]:
        """Send the messages of a portion, or the end."""
        if effect.code not in (RESULT_OK, RESULT_NOT_FOUND):
            return self._fail(browser.asked, words_of(effect.code))
        subscription = browser.subscription
        commands = list(self._settle(browser.asked))
        found = effect.body
        lives = subscription.index in self._by_index and not self.closed and not self._ending
        items = found.items if isinstance(found, BrowseSnapshot) and lives else []
        destination = subscription.destination
        letters = self._context.letters
        for item in items:
            browser.next = item.sequence + 1
            message = item.message
            if browser.wanted is not None and not browser.wanted.accepts(message):
                continue
            headers = self._own_headers(subscription, destination, item.message_id)
            headers.append(("browser", "true"))
            shared = delivery_bytes(
                letters, message, browser.channel, item.attempts > 0, views=self._context.views
            )
            self._say_message(headers, shared)
        if items:
            self._pauses = True
            self.wants_written = True
            return commands
        if lives:
            headers = self._own_headers(subscription, destination, "0")
            self._say_message([*headers, _END, ("content-length", "0")], b"\n\0")
        self._browsers.pop(0)
        if self._browsers:
            commands.append(self._look())
        return commands

    def written(self, now: float) -> Sequence[Command]:
        """Ask for the next portion when the previous one was written."""
        commands = super().written(now)
        if not self._pauses or self.closed or not self._browsers:
            return commands
        self._pauses = False
        return [*commands, self._look()]
