"""The route table: which handler answers a method and a path.

A template is a path with parameters in braces: ``/queues/{queue:int}`` takes a whole number,
``{channel}`` any one segment.  Fixed segments win over parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest

__all__ = ["Begin", "Route", "RouteTable"]

#: Returns the handler that carries an exchange out; None if it is already answered.
Begin = Callable[[Exchange], Handler | None]

_MAX_DIGITS: Final = 9


@final
class Route:
    """One method of one path.

    :param begin: called with the complete request; returns the handler that carries it out, None if
        it is already answered.
    :param public: answered without asking who the client is.
    :param overlaps: may begin while earlier requests of its kind wait for their answers; it must
        send all its commands at once.
    :param bounded: needs a place among the requests that run concurrently (``entrance.py``).
    :param takes_body: a request may have a body; without this, the body must be empty.
    :param max_body_bytes: the largest body; 0 for the door's limit.
    :param too_large: the detail of the answer to a larger body; empty for a sentence with the
        limit.
    """

    __slots__ = (
        "begin",
        "bounded",
        "max_body_bytes",
        "method",
        "overlaps",
        "parts",
        "public",
        "takes_body",
        "template",
        "too_large",
    )

    def __init__(
        self,
        method: str,
        template: str,
        begin: Begin,
        *,
        public: bool = False,
        overlaps: bool = False,
        bounded: bool = False,
        takes_body: bool = False,
        max_body_bytes: int = 0,
        too_large: str = "",
    ) -> None:
        self.method = method
        self.template = template
        self.begin = begin
        self.public = public
        self.overlaps = overlaps
        self.bounded = bounded
        self.takes_body = takes_body
        self.max_body_bytes = max_body_bytes
        self.too_large = too_large
        self.parts = tuple(_part(text) for text in template.strip("/").split("/") if text)

    def match(self, path: tuple[str, ...]) -> dict[str, str | int] | None:
        """The parameters that a path has by the template; None if it does not match."""
        if len(path) != len(self.parts):
            return None
        values: dict[str, str | int] = {}
        for (kind, name), segment in zip(self.parts, path, strict=True):
            if kind == "":
                if segment != name:
                    return None
            elif kind == "int":
                if not (segment.isascii() and segment.isdigit() and len(segment) <= _MAX_DIGITS):
                    return None
                values[name] = int(segment)
            else:
                values[name] = segment
        return values


def _part(text: str) -> tuple[str, str]:
    if not text.startswith("{"):
        return "", text
    name, _, kind = text[1:-1].partition(":")
    assert text.endswith("}"), f"{text!r} has no closing brace"
    assert kind in ("", "int"), f"{kind!r} is no kind of parameter"
    return kind or "str", name


@final
class RouteTable:
    """The routes of one door.

    :param answers_head: a path that answers GET also answers HEAD.
    """

    __slots__ = ("_answers_head", "routes")

    def __init__(self, routes: Iterable[Route], *, answers_head: bool = True) -> None:
        self._answers_head = answers_head
        self.routes = sorted(routes, key=lambda route: [kind != "" for kind, _ in route.parts])
        seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
        for route in self.routes:
            key = (route.method, tuple((k, "" if k else name) for k, name in route.parts))
            assert key not in seen, f"{route.method} {route.template} stands here twice"
            seen.add(key)

    def find(self, method: str, path: tuple[str, ...]) -> tuple[Route, dict[str, str | int]]:
        """The route of a request, and the parameters in its path.

        :raises BadRequest: 404 for an unknown path, 405 for a method that the path does not have.
        """
        wanted = "GET" if method == "HEAD" and self._answers_head else method
        for route in self.routes:
            if route.method == wanted and (values := route.match(path)) is not None:
                return route, values
        if self.methods(path):
            raise BadRequest(405, f"{method} is not a method of this resource")
        raise BadRequest(404, "there is no such resource")

    def methods(self, path: tuple[str, ...]) -> list[str]:
        """The methods of a path, sorted; empty if there is no such path."""
        found = {route.method for route in self.routes if route.match(path) is not None}
        if not found:
            return []
        if "GET" in found and self._answers_head:
            found.add("HEAD")
        found.add("OPTIONS")
        return sorted(found)
