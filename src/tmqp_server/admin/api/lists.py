"""Lists of many things: examined in portions, sorted, filtered, and shown page by page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from tmqp.constants import RESULT_OK, RESULT_UNAUTHORIZED
from tmqp_server.admin.api.filters import Fields, parse_filter
from tmqp_server.admin.api.running import words_of
from tmqp_server.admin.api.table import Api, Parameter, integer, text
from tmqp_server.admin.api.views import View, parse_sort
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import JSON, BadRequest, HttpResponse, as_json, of_result
from tmqp_server.engine.commands import Command
from tmqp_server.engine.effects import Effect, Reply

__all__ = ["LIST_PARAMETERS", "Kind", "Pages", "Walk"]

_LIMIT: Final = 100
_MOST: Final = 1_000
#: Items that are read and sent together.
_PORTION: Final = 16
#: Portions that are examined without a pause, and the pause before each further one.
_HURRIED: Final = 8
_PAUSE_S: Final = 0.002

#: The query parameters of every list.
LIST_PARAMETERS: Final[tuple[Parameter, ...]] = (
    integer("limit", "Items of a page.", 1, _MOST, _LIMIT),
    text("after", "`next` of the previous page."),
    text("sort", "Fields, separated by commas; `-` before a field sorts in descending order."),
    text("filter", "Terms with `and`, such as `name:ord* and waiting>100`."),
    text("fields", "Members of the items, separated by commas; all by default."),
)


class Walk(Protocol):
    """How far the broker has come with a list that it returns in portions."""

    @property
    def done(self) -> bool:
        """Whether that was all."""


class Kind(Protocol):
    """A kind of things that are listed."""

    #: The field by which the broker can filter, and the members that every item has.
    name: str
    identity: tuple[str, ...]

    def fields(self, now: float) -> Fields:
        """The fields that items can be sorted and filtered by, at this time."""

    def look(self, session: int, request: object, names: str, walk: Any) -> Command:
        """The command that examines the next portion."""

    def walk_of(self, command: Command) -> Walk | None:
        """How far a command has come."""

    def read(self, session: int, request: object, keys: list[Any]) -> Command:
        """The command that reads things by their keys."""

    def key(self, item: object) -> Any:
        """The key by which a thing is read again; keys can be sorted."""

    def identify(self, key: Any) -> dict[str, object]:
        """The members to show for a thing that no longer exists."""

    def show(self, item: object, now: float, offset_s: float) -> dict[str, object]:
        """The JSON of a thing."""


class Pages(Handler):
    """One page of a list.

    :param kind: the kind of its items.
    :param fixed: a condition in addition to the filter.
    :param names: the only name, or pattern of names, to list; empty: that of the filter.
    :param more: fields in addition to those of the kind.
    """

    def __init__(
        self,
        api: Api,
        exchange: Exchange,
        kind: Kind,
        fixed: Callable[[object], bool] | None = None,
        names: str = "",
        more: Fields | None = None,
    ) -> None:
        super().__init__(exchange)
        request = exchange.wanted
        query = request.query
        self._api = api
        self._kind = kind
        self._fixed = fixed
        self._limit = request.count("limit", _LIMIT, 1, _MOST)
        self._wanted = [each for each in query.get("fields", "").split(",") if each]
        self._owner = exchange.client.proof.hex()
        fields = {**kind.fields(exchange.now), **(more or {})}
        self._condition = parse_filter(query.get("filter", ""), fields, kind.name)
        self._names = names or self._condition.names
        self._order = parse_sort(query.get("sort", ""), fields)
        self._name = ""
        self._at = 0
        self._view: View[Any] | None = None
        if "after" in query:
            if "sort" in query or "filter" in query:
                raise BadRequest(400, "a page must have the order and filter of the first one")
            self._name, _, at = query["after"].rpartition("-")
            if not (at.isascii() and at.isdigit() and len(at) < 10):
                raise BadRequest(400, "after must be the value of next on the page before")
            self._at = int(at)
            self._view = api.views.find(self._name, self._owner, exchange.now)
        self._end = self._at + self._limit
        self._keys: list[Any] = []
        self._command: Command | None = None
        self._portions = 0
        self._seen = False
        self._begun = False

    # -- the first look -------------------------------------------------------------------------

    def start(self, now: float) -> Sequence[Command]:
        """Examine everything, or read the items of a later page."""
        if self._view is not None:
            return self._next_portion(now)
        self._view = View(self._owner, now)
        return [self._look(None)]

    def _look(self, walk: object) -> Command:
        self._command = self._kind.look(self.exchange.client.number, self, self._names, walk)
        return self._command

    def _looked(self, effect: Reply, now: float) -> Sequence[Command]:
        """Take the items of an examined portion; continue with the next one or with the page."""
        command, view = self._command, self._view
        assert command is not None, "this is its answer"
        assert view is not None, "it is made with the first command"
        walk = self._kind.walk_of(command)
        if effect.code == RESULT_OK:
            self._seen = True
            self._sift(effect.body, view)
        elif effect.code != RESULT_UNAUTHORIZED or walk is None:
            self.exchange.respond(of_result(effect.code, words_of(effect.code)))
            return ()
        # Of a portion that was refused the client may see nothing; it may of the next one.
        if walk is not None and not walk.done:
            self._portions += 1
            self.due = now if self._portions < _HURRIED else now + _PAUSE_S
            return ()
        self._command = None
        if not self._seen:
            self.exchange.respond(of_result(RESULT_UNAUTHORIZED, ""))
            return ()
        return self._next_portion(now)

    def _sift(self, body: object, view: View[Any]) -> None:
        assert isinstance(body, list), "it is a list"
        view.examined += len(body)
        fixed, accepts, order, key = (
            self._fixed,
            self._condition.accepts,
            self._order,
            self._kind.key,
        )
        view.add(
            [
                (order(item), key(item))
                for item in body
                if (fixed is None or fixed(item)) and accepts(item)
            ]
        )

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Examine the next portion, or read it."""
        self.due = math.inf
        command = self._command
        if command is None:
            return self._next_portion(now)
        return [self._look(self._kind.walk_of(command))]

    # -- the page -------------------------------------------------------------------------------

    def _next_portion(self, now: float) -> Sequence[Command]:
        """Read more items, or end the page."""
        view = self._view
        assert view is not None, "it is known which items there are"
        self._keys = view.keys(self._at, min(self._at + _PORTION, self._end))
        if not self._keys:
            self._finish(view, now)
            return ()
        return [self._kind.read(self.exchange.client.number, self, self._keys)]

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Take a portion that was examined, or show one that was read."""
        if not isinstance(effect, Reply):
            return ()
        if self._command is not None:
            return self._looked(effect, now)
        body = effect.body if effect.code == RESULT_OK else []
        assert isinstance(body, list), "it is a list"
        kind = self._kind
        offset_s = self.exchange.client.offset_s
        found = {kind.key(item): item for item in body}
        pieces: list[bytes] = []
        for key in self._keys:
            item = found.get(key)
            if item is None:
                shown = {**kind.identify(key), "gone": True}
            else:
                shown = kind.show(item, now, offset_s)
                if self._wanted:
                    kept = (*kind.identity, *self._wanted)
                    shown = {name: value for name, value in shown.items() if name in kept}
            pieces.append(as_json(shown))
        self._write(b",".join(pieces))
        self._at += len(self._keys)
        self.due = now  # others have their turn before the next portion
        return ()

    def _write(self, data: bytes) -> None:
        exchange = self.exchange
        if self._begun:
            data = b"," + data
        else:
            self._begin()
        exchange.send(data)

    def _begin(self) -> None:
        self._begun = True
        self.exchange.stream(HttpResponse.stream(JSON))
        self.exchange.send(b'{"items":[')

    def _finish(self, view: View[Any], now: float) -> None:
        """Finish the page, and say where the next one begins."""
        if not self._begun:
            self._begin()
        following = None
        if view.keys(self._at, self._at + 1):
            if not self._name:
                self._name = self.exchange.client.new_id()
                self._api.views.keep(self._name, view, now)
            following = f"{self._name}-{self._at}"
        end = {
            "next": following,
            "total": view.total,
            "examined": view.examined,
            "taken_at_ms": int((view.taken_s + self.exchange.client.offset_s) * 1_000),
        }
        self.exchange.send(b"]," + as_json(end)[1:])
        self.exchange.end()
