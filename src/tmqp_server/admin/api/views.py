"""Views: the order of a list at the time when a client asked for its first page.

Theory of operation.  A list is sorted by numbers that change while the client reads its pages.  So
the first page notes the keys of all items in their order, and the further pages show these items as
they are then: no item is repeated, and none is skipped.  The keys arrive in portions, each of which
is sorted by itself; the sorted portions are merged only as far as pages have been read.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar, final

from tmqp_server.admin.api.filters import Fields
from tmqp_server.doors.http.messages import BadRequest

__all__ = ["Descending", "Order", "View", "Views", "parse_sort"]

#: Seconds for which a view is kept after its last page; the most views of one log-in, and of all.
_KEPT_S: Final = 30.0
_MOST_OF_ONE: Final = 8
_MOST: Final = 64
_MOST_SORTS: Final = 4

_Key = TypeVar("_Key")


@final
class Descending:
    """A text that sorts in descending order."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __lt__(self, other: Descending) -> bool:
        return other.text < self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and other.text == self.text

    __hash__ = None  # type: ignore[assignment]


Order = Callable[[object], tuple[Any, ...]]


def parse_sort(text: str, fields: Fields) -> Order:
    """Read a sort order, such as ``-waiting,name``; returns the function that gives an item's sort
    key.

    :raises BadRequest: for an unknown field, or too many.
    """
    names = [each for each in text.split(",") if each]
    if len(names) > _MOST_SORTS:
        raise BadRequest(400, f"sort has at most {_MOST_SORTS} fields")
    chosen: list[tuple[bool, Callable[[object], str | float]]] = []
    for name in names:
        field = name.removeprefix("-")
        if field not in fields:
            raise BadRequest(400, f"sort: there is no field {field[:64]!r}: {', '.join(fields)}")
        chosen.append((name.startswith("-"), fields[field]))

    def place(item: object) -> tuple[Any, ...]:
        found: list[Any] = []
        for falls, find in chosen:
            value = find(item)
            if isinstance(value, str):
                found.append(Descending(value) if falls else value)
            else:
                found.append(-value if falls else value)
        return tuple(found)

    return place


@final
class View(Generic[_Key]):
    """One view.  Attributes: ``total``, the number of keys; ``examined``, the number of examined
    items; ``taken_s``, when the view was made.
    """

    def __init__(self, owner: str, taken_s: float) -> None:
        self.owner = owner
        self.taken_s = self.used_s = taken_s
        self.total = 0
        self.examined = 0
        self._portions: list[list[tuple[Any, _Key]]] = []
        self._merged: Iterator[tuple[Any, _Key]] | None = None
        self._keys: list[_Key] = []

    def add(self, portion: list[tuple[Any, _Key]]) -> None:
        """Add keys, each with its sort key."""
        assert self._merged is None, "all keys are there before the first page"
        if portion:
            portion.sort()
            self._portions.append(portion)
            self.total += len(portion)

    def keys(self, start: int, end: int) -> list[_Key]:
        """The keys from one place in the order up to another."""
        if self._merged is None:
            self._merged = heapq.merge(*self._portions)
            self._portions = []
        while len(self._keys) < end:
            found = next(self._merged, None)
            if found is None:
                break
            self._keys.append(found[1])
        return self._keys[start:end]


@final
class Views:
    """The views of all log-ins."""

    def __init__(self) -> None:
        self._all: OrderedDict[str, View[Any]] = OrderedDict()

    def keep(self, name: str, view: View[Any], now: float) -> None:
        """Keep a view under a new name."""
        self._forget(now)
        own = [key for key, each in self._all.items() if each.owner == view.owner]
        if len(own) >= _MOST_OF_ONE:
            del self._all[own[0]]
        if len(self._all) >= _MOST:
            self._all.popitem(last=False)
        self._all[name] = view

    def find(self, name: str, owner: str, now: float) -> View[Any]:
        """The view of a name.

        :raises BadRequest: 410 when it is no longer kept.
        """
        self._forget(now)
        view = self._all.get(name)
        if view is None or view.owner != owner:
            raise BadRequest(410, "the list has expired: ask for its first page again")
        view.used_s = now
        self._all.move_to_end(name)
        return view

    def _forget(self, now: float) -> None:
        for name in [key for key, each in self._all.items() if now - each.used_s > _KEPT_S]:
            del self._all[name]
