"""The audit: who requested which change, and with what result.

Theory of operation.  Each command of a client that changes the server or shows payloads makes one
:class:`AuditRecord`: it begins where the gate decides, and is complete when the client gets its
answer or has disconnected. So it covers every door. The usual work of producers and consumers
(pushes, acknowledgements, joins) is no change, and neither is what the broker creates for them.

An :class:`AuditLog` writes the records. If records are *required* and the last one could not be
written, changes are refused until writing works again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, final

from tmqp._compat import mypyc_attr
from tmqp_server.engine.commands import (
    AddBinding,
    AddFeed,
    Browse,
    CancelMessage,
    ClearMessages,
    Command,
    Configure,
    Connect,
    CreateChannel,
    CreateQueue,
    CreateRouter,
    DisconnectClient,
    Drain,
    DropGroup,
    Manage,
    MoveMessage,
    RemoveBinding,
    RemoveChannel,
    RemoveChannels,
    RemoveCursor,
    RemoveFeed,
    RemoveMessage,
    RemoveQueue,
    RemoveRouter,
    ResetGroup,
    SetRouterEnabled,
    UpdateChannel,
    UpdateQueue,
    connection_of,
)
from tmqp_server.engine.effects import Accept, Effect, Refuse, Reply
from tmqp_server.engine.model.feeds import Feed
from tmqp_server.engine.options import (
    BindingOptions,
    ChannelChanges,
    ChannelOptions,
    QueueChanges,
    QueueOptions,
)
from tmqp_server.engine.options.table import CHANNEL_OPTIONS, QUEUE_OPTIONS, Option
from tmqp_server.engine.routing.routers import Router
from tmqp_server.settings.routers import ROUTE_METHODS, values_of_binding, word_of_number

__all__ = ["ACTIONS", "LOG_IN", "LOG_OUT", "MANAGED", "AuditLog", "AuditRecord", "Auditor", "Was"]

#: The current state of what a command changes or removes: queue or channel options, a router, a
#: binding or a feed.
Was: TypeAlias = QueueOptions | ChannelOptions | Router | BindingOptions | Feed

LOG_IN: Final = "log-in"
LOG_OUT: Final = "log-out"
#: The actions of :class:`Manage`, each of which has its own name.
MANAGED: Final = (
    "backup",
    "begin-trace",
    "copy",
    "end-trace",
    "reload",
    "remove-copy",
    "renew-tls",
    "set-log-level",
)
#: The action of each audited command.
ACTIONS: Final[dict[type[Command], str]] = {
    AddBinding: "add-binding",
    AddFeed: "add-feed",
    Browse: "browse",
    CancelMessage: "cancel-message",
    ClearMessages: "clear-messages",
    Configure: "configure",
    CreateChannel: "create-channel",
    CreateQueue: "create-queue",
    CreateRouter: "create-router",
    DisconnectClient: "disconnect-client",
    Drain: "drain",
    DropGroup: "drop-group",
    Manage: "manage",
    RemoveBinding: "remove-binding",
    RemoveChannel: "remove-channel",
    RemoveChannels: "remove-channels",
    RemoveCursor: "remove-cursor",
    RemoveFeed: "remove-feed",
    RemoveMessage: "remove-message",
    MoveMessage: "move-message",
    RemoveQueue: "remove-queue",
    RemoveRouter: "remove-router",
    ResetGroup: "reset-group",
    SetRouterEnabled: "set-router-enabled",
    UpdateChannel: "update-channel",
    UpdateQueue: "update-queue",
}

#: The codes for success and for a missing right.
_OK: Final = 200
_UNAUTHORIZED: Final = 401
_BUSY: Final = 503
#: The most characters of a client's text that are kept.
_LONGEST: Final = 512
#: Differs from every value.
_NOTHING: Final = object()
#: The attributes of commands that name their subject, in order.
_SUBJECTS: Final = ("channel", "router", "group", "cursor", "filter", "client_id", "subject")


@final
class AuditRecord:
    """One requested change.

    ``who`` is the client's entry in ``[access]``, or its name from the server's own code, or else
    its id; ``address``, ``door`` and ``session`` are those of its connection; ``action`` is one of
    ``ACTIONS`` or ``MANAGED``, ``LOG_IN`` or ``LOG_OUT``; ``subject`` is its object, ``after`` has
    the requested values, and ``before`` the previous values of what changes; ``code`` is the
    result, 200 for success, 0 if the client disconnected before it.  ``at`` is the engine's time.
    """

    __slots__ = (
        "action",
        "address",
        "after",
        "at",
        "before",
        "code",
        "door",
        "session",
        "subject",
        "who",
    )

    def __init__(
        self, at: float, who: str, place: tuple[str, str, int], action: str, subject: str = ""
    ) -> None:
        self.at = at
        self.who = who
        self.address, self.door, self.session = place
        self.action = action
        self.subject = subject
        self.after: Mapping[str, Any] = {}
        self.before: Mapping[str, Any] = {}
        self.code = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class AuditLog:
    """Writes audit records."""

    def write(self, record: AuditRecord) -> None:
        """Write a record; keep it for later if it cannot be written."""
        raise NotImplementedError

    def is_ready(self) -> bool:
        """Whether all records are written; tries again to write those that are not."""
        raise NotImplementedError


@final
class Auditor:
    """The audit of one hub.

    :param log: gets the records.
    :param required: whether to refuse changes while records cannot be written.

    Attributes: ``counts`` of records, by action and whether they were allowed; ``waiting``, the
    records without a result yet, each with its request, by the session of the command.
    """

    def __init__(self, log: AuditLog, *, required: bool = False) -> None:
        self._log = log
        self._required = required
        self.counts: dict[tuple[str, bool], int] = {}
        #: The names of clients that have logged in, by session.
        self._known: dict[int, str] = {}
        self.waiting: dict[int, list[tuple[object, AuditRecord]]] = {}

    def change(self, *, required: bool) -> None:
        """Set whether to refuse changes while records cannot be written."""
        self._required = required

    def concerns(self, commands: Sequence[Command]) -> bool:
        """Whether one of these commands is audited."""
        for each in commands:  # noqa: SIM110 - a generator takes longer
            if type(each) in ACTIONS:
                return True
        return False

    def begin(
        self,
        command: Command,
        place: tuple[str, str, int],
        now: float,
        client_id: str = "",
        was: Was | None = None,
    ) -> bool:
        """Begin the record of an allowed change.  Return False if the change must be refused
        because the record cannot be written.

        :param place: address, door and connection.
        :param client_id: the id of the client, if it has not logged in.
        :param was: the current state of what is changed or removed; None if it does not exist.
        """
        record = self._record(command, place, now)
        record.who = record.who or client_id[:_LONGEST]
        if isinstance(command, Manage):
            record.before = command.before
        elif was is not None:
            record.before = _before(record.after, was)
        if self._required and not self._log.is_ready():
            self._finish(record, _BUSY)
            return False
        request: object = getattr(command, "request", None)
        if isinstance(command, Manage):
            request = command  # that it may is not yet how it ended: see carried_out
        if request is None:
            self._finish(record, 0)
        else:
            number: int = getattr(command, "session")  # noqa: B009 - of one of several classes
            self.waiting.setdefault(number, []).append((request, record))
        return True

    def refused(self, command: Command, place: tuple[str, str, int], now: float) -> None:
        """Record a change or a log-in that the client has no right to."""
        if isinstance(command, Connect):
            who = command.client_id[:_LONGEST]
            self._finish(AuditRecord(now, who, place, LOG_IN, who), _UNAUTHORIZED)
        elif type(command) in ACTIONS:
            self._finish(self._record(command, place, now), _UNAUTHORIZED)

    def logs_in(
        self, connect: Connect, known_as: str, place: tuple[str, str, int], now: float
    ) -> None:
        """Begin the record of an allowed log-in; the broker may still refuse it."""
        who = (known_as or connect.client_id)[:_LONGEST]
        record = AuditRecord(now, who, place, LOG_IN, connect.client_id[:_LONGEST])
        self.waiting.setdefault(connect.session, []).append((connect.request, record))

    def answered(self, effect: Effect) -> None:
        """Complete a record if this effect is the answer to its request."""
        if isinstance(effect, Accept):
            found = self._take(effect.session, effect.request)
            if found is not None:
                self._known[effect.session] = found.who
                self._finish(found, _OK)
        elif isinstance(effect, (Refuse, Reply)) and effect.session in self.waiting:
            found = self._take(effect.session, effect.request)
            if found is not None:
                self._finish(found, effect.code or _OK)

    def carried_out(self, command: Manage, code: int) -> None:
        """Complete the record of an action on the server, with its result."""
        found = self._take(command.session, command)
        if found is not None:
            self._finish(found, code)

    def gone(self, number: int, place: tuple[str, str, int], now: float) -> None:
        """Complete the records of a connection that has ended, with all its branches, and record
        its log-out.
        """
        for session in [each for each in self.waiting if connection_of(each) == number]:
            for _, record in self.waiting.pop(session):
                self._finish(record, 0)
        who = self._known.pop(number, None)
        if who is not None:
            self._finish(AuditRecord(now, who, place, LOG_OUT), _OK)

    def own(self, who: str, action: str, subject: str, code: int, now: float) -> None:
        """Record what an operator did without a door: by a signal."""
        self._finish(AuditRecord(now, who, ("", "", 0), action, subject), code)

    def _take(self, session: int, request: object) -> AuditRecord | None:
        waiting = self.waiting.get(session, [])
        for place, (asked, record) in enumerate(waiting):
            if asked is request:
                del waiting[place]
                if not waiting:
                    del self.waiting[session]
                return record
        return None

    def _record(self, command: Command, place: tuple[str, str, int], now: float) -> AuditRecord:
        who = self._known.get(place[2], "")
        action = command.action if isinstance(command, Manage) else ACTIONS[type(command)]
        record = AuditRecord(now, who, place, action, _subject_of(command))
        record.after = _after(command)
        return record

    def _finish(self, record: AuditRecord, code: int) -> None:
        record.code = code
        key = (record.action, code == _OK)
        self.counts[key] = self.counts.get(key, 0) + 1
        self._log.write(record)


def _subject_of(command: Command) -> str:
    if isinstance(command, RemoveChannels):
        return ", ".join(command.channels)[:_LONGEST]
    if isinstance(command, Drain):
        return "stop" if command.stops else ""
    subject = ""
    for name in _SUBJECTS:
        value: object = getattr(command, name, None)
        if isinstance(value, str) and value:
            subject = value
            break
    queue_id: object = getattr(command, "queue_id", None)
    if isinstance(queue_id, int):
        subject += f"/{queue_id}"
    message_id: object = getattr(command, "message_id", None)
    if isinstance(message_id, str) and message_id:
        subject += f" {message_id}"
    return subject[:_LONGEST]


def _after(command: Command) -> Mapping[str, Any]:
    """The values that a command requests."""
    if isinstance(command, (CreateQueue, UpdateQueue)):
        return {} if command.changes is None else _of_queue(command.changes)
    if isinstance(command, (CreateChannel, UpdateChannel)):
        changes = command.changes
        return {} if changes is None else _of_channel(changes)
    if isinstance(command, Manage):
        return command.after
    if isinstance(command, SetRouterEnabled):
        return {"enabled": command.enabled}
    if isinstance(command, CreateRouter):
        return {"method": word_of_number(ROUTE_METHODS, command.method)}
    if isinstance(command, AddBinding):
        return _of_binding(command.binding)
    if isinstance(command, RemoveBinding):
        return {"binding": command.binding}
    if isinstance(command, AddFeed):
        return {**_target_of(command), **_filter_of(command)}
    if isinstance(command, RemoveFeed):
        return _target_of(command)
    if isinstance(command, MoveMessage):
        return {"target": f"{command.push.channel}/{command.push.queue_id}"}
    return {}


def _target_of(command: AddFeed | RemoveFeed) -> dict[str, Any]:
    return {"target": f"{command.target}/{command.target_queue}"}


def _filter_of(feed: AddFeed | Feed) -> dict[str, Any]:
    """The filter of a feed as text; empty if all messages are copied."""
    found: dict[str, Any] = {"filter": feed.text} if feed.text else {}
    if feed.language:
        found["filter_language"] = feed.language
    return found


def _of_binding(binding: BindingOptions) -> dict[str, Any]:
    values = values_of_binding(binding)
    return {"binding": values.pop("name"), **values}


def _before(after: Mapping[str, Any], was: Was) -> dict[str, Any]:
    """The previous values of what a command changes or removes."""
    if isinstance(was, (QueueOptions, ChannelOptions)):
        return _before_of_options(after, was)
    if isinstance(was, BindingOptions):
        old = _of_binding(was)
    elif isinstance(was, Feed):
        old = _filter_of(was)
    else:
        old = {"enabled": was.enabled}
        if not after:  # it is removed: how many bindings go is told, for there may be a thousand
            old["method"] = word_of_number(ROUTE_METHODS, was.method)
            old["bindings"] = len(was.bindings)
    return {name: value for name, value in old.items() if after.get(name, _NOTHING) != value}


def _before_of_options(
    after: Mapping[str, Any], options: QueueOptions | ChannelOptions
) -> dict[str, Any]:
    """The previous values of those options that change."""
    found: dict[str, Any] = {}
    for name, value in after.items():
        holder: object = options
        if isinstance(options, ChannelOptions) and not hasattr(options, name):
            holder = options.queue
        old: Any = getattr(holder, name)
        if old != value:
            found[name] = old
    return found


def _of_queue(changes: QueueChanges) -> dict[str, Any]:
    return _given(changes, QUEUE_OPTIONS)


def _of_channel(changes: ChannelChanges) -> dict[str, Any]:
    found = _given(changes, CHANNEL_OPTIONS)
    if changes.queue is not None:
        found.update(_of_queue(changes.queue))
    return found


def _given(changes: object, options: Sequence[Option]) -> dict[str, Any]:
    """The options that changes set."""
    found: dict[str, Any] = {}
    for option in options:
        value: Any = getattr(changes, option.name)
        if value is not None:
            found[option.name] = value
    return found
