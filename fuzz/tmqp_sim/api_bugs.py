"""The bugs that are planted in what operators see and do by HTTP; see ``mutants.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tmqp_server.admin.api.manner import ApiManner
from tmqp_server.admin.api.views import View
from tmqp_server.admin.metrics.collect import Collector, Page
from tmqp_server.engine.commands import DescribeClient, DisconnectClient
from tmqp_server.engine.effects import CloseSession
from tmqp_server.engine.model.channels import Channel, ChannelTable
from tmqp_server.engine.model.counters import QueueCounters
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.walks import ChannelWalk, ClientWalk
from tmqp_server.engine.operations.surveying import Surveying

__all__ = ["API_BUGS"]


def _hides_a_queue(original: Any) -> Any:
    def take(self: ChannelWalk, pattern: str, *, queues: bool) -> int:
        names: int = original(self, pattern, queues=queues)
        del self.queues[-1:]
        return names

    return take


def _shows_a_client_again(original: Any) -> Any:
    def take(self: ClientWalk) -> list[Session]:
        found: list[Session] = original(self)
        return found + found[:1]

    return take


def _repeats_a_row(original: Any) -> Any:
    def keys(self: View[Any], start: int, end: int) -> list[Any]:
        found: list[Any] = original(self, max(start - 1, 0), end)
        return found

    return keys


def _describes_who_asks(original: Any) -> Any:
    def describe(self: Surveying, command: DescribeClient, session: Session) -> None:
        command.client_id = session.client_id
        original(self, command, session)

    return describe


def _says_it_is_disconnected(_original: Any) -> Callable[..., None]:
    def disconnect(self: Surveying, command: DisconnectClient, session: Session) -> None:
        there = self._core.clients.get(command.client_id) is not None
        self._core.reply(session, command.request, 0 if there else 404)

    return disconnect


def _leaves_the_connection(original: Any) -> Any:
    def disconnect(self: Surveying, command: DisconnectClient, session: Session) -> None:
        original(self, command, session)
        out = self._core.out
        out[:] = [each for each in out if not isinstance(each, CloseSession)]

    return disconnect


def _forgets_what_it_counted(original: Any) -> Any:
    def remove_queue(self: ChannelTable, channel: Channel, queue: Queue) -> None:
        queue.counters = QueueCounters()
        original(self, channel, queue)

    return remove_queue


def _is_shown_for_good(original: Any) -> Any:
    def page(self: Collector, form: int, now: float) -> Page:
        kept = self._pages.get(form)
        found: Page = original(self, form, now) if kept is None else kept
        return found

    return page


def _makes_it_in_one_step(original: Any) -> Any:
    def go_on(self: Page, now: float) -> float:
        while not self.done:
            self._due = now
            original(self, now)
        return float("inf")

    return go_on


def _believes_any_page(_original: Any) -> Callable[..., None]:
    def check_page(_self: ApiManner, _request: object, _cookie: str) -> None:
        return None

    return check_page


API_BUGS: Final = (
    (
        "survey-hides-one", "the last queue of each portion of a survey is left out",
        ChannelWalk, "take", _hides_a_queue,
    ),
    (
        "survey-shows-again", "a client is in a portion of a survey twice",
        ClientWalk, "take", _shows_a_client_again,
    ),
    (
        "view-repeats", "a page of a list begins with the last row of the page before",
        View, "keys", _repeats_a_row,
    ),
    (
        "describes-who-asks", "who asks about a client is shown himself",
        Surveying, "describe_client", _describes_who_asks,
    ),
    (
        "disconnects-nobody", "a client that an operator disconnects stays",
        Surveying, "disconnect_client", _says_it_is_disconnected,
    ),
    (
        "disconnects-in-part", "the connection of a client that is disconnected stays open",
        Surveying, "disconnect_client", _leaves_the_connection,
    ),
    (
        "gone-uncounted", "what a queue has counted is lost when it goes",
        ChannelTable, "remove_queue", _forgets_what_it_counted,
    ),
    (
        "gone-shown", "metrics are never made anew: a queue that is gone is still shown",
        Collector, "page", _is_shown_for_good,
    ),
    (
        "metrics-in-one-step", "nobody else has a turn while metrics are made",
        Page, "go_on", _makes_it_in_one_step,
    ),
    (
        "cookie-without-proof", "a cookie alone changes something",
        ApiManner, "_check_page", _believes_any_page,
    ),
)  # fmt: skip
