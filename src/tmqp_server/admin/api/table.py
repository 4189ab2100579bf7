"""What an operation of the API is; ``operations.py`` has the table of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tmqp_server.access.auditing import ACTIONS
from tmqp_server.admin.api.consuming import HttpConsumers
from tmqp_server.admin.api.growth import Growth
from tmqp_server.admin.api.logins import WebLogIns
from tmqp_server.admin.api.manner import ApiManner, read_object
from tmqp_server.admin.api.overview import Overviews
from tmqp_server.admin.api.pace import DEAR, Pace
from tmqp_server.admin.api.recalling import KeptEvents
from tmqp_server.admin.api.repeats import Repeats
from tmqp_server.admin.api.views import Views
from tmqp_server.admin.options import AdminOptions
from tmqp_server.admin.world import AdminWorld
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpRequest
from tmqp_server.engine.commands import Command

__all__ = [
    "PREFIX",
    "Api",
    "Begin",
    "Operation",
    "Parameter",
    "RunningTransfer",
    "body_of",
    "flag",
    "integer",
    "text",
    "whole_of",
    "word",
]

#: All paths begin so.
PREFIX: Final = "/api/v1"


class RunningTransfer(Protocol):
    """A transfer in progress."""

    def shown(self) -> dict[str, object]:
        """The transfer's progress so far, as JSON members."""

    def stop(self) -> None:
        """Move no more messages."""


@dataclass(frozen=True, slots=True)
class Api:
    """What operations work with; ``description`` is the API's description as JSON."""

    world: AdminWorld
    manner: ApiManner
    logins: WebLogIns
    views: Views
    description: Callable[[], bytes]
    overviews: Overviews
    consumers: HttpConsumers
    options: AdminOptions
    pace: Pace
    kept: KeptEvents
    repeats: Repeats = field(default_factory=Repeats)
    growth: Growth = field(default_factory=Growth)
    #: Transfers in progress, by their queue and their id.
    transfers: dict[tuple[str, int, str], RunningTransfer] = field(default_factory=dict)


Begin = Callable[[Api, Exchange], Handler | None]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter; ``schema`` is its JSON Schema."""

    name: str
    meaning: str
    schema: Mapping[str, Any]


def text(name: str, meaning: str) -> Parameter:
    """A text."""
    return Parameter(name, meaning, {"type": "string"})


def integer(name: str, meaning: str, least: int, most: int, default: int) -> Parameter:
    """A whole number."""
    schema = {"type": "integer", "minimum": least, "maximum": most, "default": default}
    return Parameter(name, meaning, schema)


def word(name: str, meaning: str, *words: str) -> Parameter:
    """One of some words; the first one is the default."""
    return Parameter(name, meaning, {"type": "string", "enum": [*words], "default": words[0]})


def flag(name: str, meaning: str) -> Parameter:
    """``yes`` or ``no``; ``no`` is the default."""
    return word(name, meaning, "no", "yes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: a row of the table.

    :ivar name: its name in the OpenAPI description.
    :ivar path: below :data:`PREFIX`, as ``Route`` has templates.
    :ivar summary: what it does, in one line.
    :ivar begin: begins to carry out a request.
    :ivar rights: what a client needs, as ``rights.py`` names it; empty if no right is needed.
    :ivar commands: the commands that it sends to the broker.
    :ivar action: its name in the audit, if it is not a command of the broker.
    :ivar query: its parameters.
    :ivar body: the name of the schema of its body; empty for none.
    :ivar answer: the name of the schema of its answer; empty for none.
    :ivar kind: the type of the answer's content.
    :ivar other_kinds: other types that it can have, which Accept asks for.
    :ivar status: the status of a successful answer.
    :ivar failures: other statuses, in addition to those that every operation can have.
    :ivar cli: the commands of ``tmqp`` that do the same.
    :ivar public: whether it works without credentials.
    :ivar waits: whether it mainly waits for others, such as a message or the storage, and works
        little; then it needs no place among the requests that work at the same time.
    :ivar overlaps: whether a connection may send the next request before this one is answered.
    """

    name: str
    method: str
    path: str
    summary: str
    begin: Begin
    rights: tuple[str, ...] = ()
    commands: tuple[type[Command], ...] = ()
    action: str = ""
    query: tuple[Parameter, ...] = ()
    body: str = ""
    answer: str = ""
    kind: str = "application/json"
    other_kinds: tuple[str, ...] = ()
    status: int = 200
    failures: tuple[int, ...] = ()
    cli: tuple[str, ...] = ()
    public: bool = False
    waits: bool = False
    overlaps: bool = False

    @property
    def template(self) -> str:
        """The whole path."""
        return PREFIX + self.path

    @property
    def audited(self) -> tuple[str, ...]:
        """The names in the audit of those of its commands that are recorded."""
        if self.action:
            return (self.action,)
        return tuple(dict.fromkeys([ACTIONS[each] for each in self.commands if each in ACTIONS]))

    @property
    def repeats(self) -> bool:
        """Whether it accepts an ``Idempotency-Key``; then its answer is kept, and not streamed."""
        return self.method == "POST" and self.tag != "session" and self.name != "take"

    @property
    def tag(self) -> str:
        """The resource that it belongs to."""
        return self.path.strip("/").partition("/")[0]

    def cost(self, request: HttpRequest) -> int:
        """How many requests it counts as in the rate limit (``pace.py``)."""
        return DEAR if self.name in ("browse", "transfer") or "sort" in request.query else 1

    def check(self, request: HttpRequest) -> None:
        """Refuse unknown parameters.

        :raises BadRequest: when the request has one.
        """
        request.check_query(*[each.name for each in self.query])


def body_of(request: HttpRequest, allowed: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    """The JSON object in a body, with only these members.

    :raises BadRequest: when the body is not an object, or a member is unknown or of the wrong type.
    """
    found = read_object(request.body)
    for key, value in found.items():
        if key not in allowed:
            known = ", ".join(allowed)
            raise BadRequest(422, f"there is no member {key[:64]!r}; there are {known}")
        kinds = allowed[key]
        wanted = kinds if isinstance(kinds, tuple) else (kinds,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in wanted):
            raise BadRequest(422, f"{key} has the wrong type")
    return found


def whole_of(given: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    """A whole number in an object.

    :param default: the value if the member is missing; a default outside the bounds means that the
        member is required.
    :raises BadRequest: when the member is not a whole number within the bounds.
    """
    value = given.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadRequest(422, f"{name} must be a whole number from {least} to {most}")
    return value
