"""Delivers messages of routers to their bindings, and tracks their HTTP calls.

Theory of operation.  A router's method says how many bindings get a message: all of them
(distribute), one in turn (round robin), or the first one that works.  A binding *works* if
something accepted the message: a queue that exists and has room, a connected client that reads, a
program that answered its HTTP call with success.  Round robin skips bindings that do not work, and
the next message's turn begins after the binding that accepted it (F122).

Everything except HTTP is decided in the step of the message.  A call is an effect; its result comes
with the command ``HttpAnswered``, and until then a ``Publication`` remembers the waiting client and
the remaining bindings.  If the call of a binding that requests no answer fails, the next binding
gets the message; if none accepted it, the publisher gets 404 (F123).  A binding that requests an
acknowledgement or a response forwards the program's answer in any case.

The table of calls is limited in number and in bytes.  If it is full, a binding does not work.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import (
    RESULT_FAILED,
    RESULT_INTERNAL_SERVER_ERROR,
    RESULT_NOT_FOUND,
    RESULT_OK,
)
from tmqp_server.engine.commands import Command, Envelope, HttpAnswered, Publish
from tmqp_server.engine.core import Core
from tmqp_server.engine.delivery.direct import Direct
from tmqp_server.engine.delivery.intake import Intake
from tmqp_server.engine.effects import AnswerRouted, CallHttp, Reply, RouterFailed
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.options import ASKS_NOTHING, TO_CLIENTS, TO_QUEUE, TO_URL, BindingOptions
from tmqp_server.engine.routing.custom import RoutedMessage
from tmqp_server.engine.routing.routers import Binding, Router, Routing, problem_of_binding

__all__ = ["Publication", "Publishing"]

_DISTRIBUTE: Final = 0
_ROUND_ROBIN: Final = 1
_ONLY_FIRST: Final = 2
#: The HTTP methods by number (F120).
_HTTP_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_POST: Final = 1
_GET: Final = 0
_DELETE: Final = 4
#: Tags that are compared with a filter for one unit of work.
_TAGS_PER_UNIT: Final = 16
#: Clients that are examined, to find one of them, for the cost of sending to one.
_LOOKED_AT_PER_CLIENT: Final = 16


class Publication:
    """A message that a router is forwarding.

    ``rest`` are the bindings to try if the present call fails; ``calls`` counts the calls in
    progress that request no answer; ``settled`` means that the publisher has been answered, or that
    a receiver will answer.
    """

    __slots__ = (
        "calls",
        "clients_left",
        "envelope",
        "queues_left",
        "request",
        "rest",
        "router",
        "session",
        "settled",
        "size",
    )

    def __init__(
        self, router: Router, session: Session, command: Publish, limits: EngineLimits
    ) -> None:
        self.clients_left: int = limits.max_clients_per_publish
        self.queues_left: int = limits.max_queues_per_publish
        self.router = router
        self.session = session
        self.request = command.request
        self.envelope: Envelope = command.envelope
        self.size = command.size
        self.rest: list[Binding] = []
        self.calls = 0
        self.settled = False


class _Call:
    """An HTTP call in progress."""

    __slots__ = ("interaction", "publication")

    def __init__(self, publication: Publication, interaction: int) -> None:
        self.publication = publication
        self.interaction = interaction


class Publishing:
    """Forwards messages through the routers of one broker."""

    __slots__ = (
        "_call_bytes",
        "_calls",
        "_core",
        "_direct",
        "_intake",
        "_last_ticket",
        "_routing",
    )

    def __init__(self, core: Core, routing: Routing, direct: Direct, intake: Intake) -> None:
        self._core = core
        self._routing = routing
        self._direct = direct
        self._intake = intake
        self._calls: dict[int, _Call] = {}
        core.tables["http_calls"] = self._calls
        self._call_bytes = 0
        self._last_ticket = 0

    def publish(self, command: Command, session: Session) -> None:
        """Send a message to a router, and answer (F123)."""
        assert isinstance(command, Publish)
        if command.size > self._core.limits.max_message_bytes:
            self._reply(session, command.request, self._core.reached("max_message_bytes"))
            return
        router = self._routing.find(command.router)
        if router is None or not router.enabled:
            self._reply(session, command.request, RESULT_NOT_FOUND)
            return
        self._core.tally.published += 1
        publication = Publication(router, session, command, self._core.limits)
        if router.custom is not None:
            self._to_targets(publication)
        elif router.method == _DISTRIBUTE:
            self._to_all(publication, router.bindings)
        else:
            self._to_one(publication)

    def answered(self, command: HttpAnswered) -> None:
        """Handle the result of a call (F123, F124); an unknown one is counted."""
        call = self._calls.pop(command.ticket, None)
        if call is None:
            self._core.count_unknown_ticket()
            return
        publication = call.publication
        self._call_bytes -= publication.size
        code = _code_of(command.status)
        if call.interaction != ASKS_NOTHING:
            session = publication.session
            if session.alive:
                self._core.out.append(
                    AnswerRouted(
                        session.number, publication.request, call.interaction, code, command.body
                    )
                )
            return
        publication.calls -= 1
        if publication.settled:
            return
        if code == RESULT_OK:
            self._settle(publication, RESULT_OK)
        elif publication.calls == 0:
            self._fail_over(publication)

    # --- The three ways of a router --------------------------------------------------------------

    def _to_all(self, publication: Publication, bindings: list[Binding]) -> None:
        """Offer it to every binding; a receiver whose answer is requested answers, otherwise the
        router does."""
        took = False
        asked = False
        for binding in bindings:
            if not self._offer(binding, publication):
                continue
            if binding.options.interaction != ASKS_NOTHING:
                asked = True
            elif binding.options.kind != TO_URL:
                took = True
        if asked:
            publication.settled = True
        elif took:
            self._settle(publication, RESULT_OK)
        elif publication.calls == 0:
            self._settle(publication, RESULT_NOT_FOUND)

    def _to_one(self, publication: Publication) -> None:
        """Offer it to one binding after the other until one accepts it (F122)."""
        router = publication.router
        bindings = router.bindings
        count = len(bindings)
        start = router.turn if router.method == _ROUND_ROBIN else 0
        for step in range(count):
            place = (start + step) % count
            binding = bindings[place]
            if not self._offer(binding, publication):
                continue
            if router.method == _ROUND_ROBIN:
                router.turn = (place + 1) % count
            if binding.options.kind == TO_URL:
                for more in range(1, count - step):
                    publication.rest.append(bindings[(place + more) % count])
            self._was_taken(publication, binding)
            return
        self._settle(publication, RESULT_NOT_FOUND)

    def _fail_over(self, publication: Publication) -> None:
        """After a failed call, offer it to the remaining bindings that still exist."""
        while publication.rest and publication.router.enabled:
            binding = publication.rest.pop(0)
            if not binding.gone and self._offer(binding, publication):
                self._was_taken(publication, binding)
                return
        self._settle(publication, RESULT_NOT_FOUND)

    def _was_taken(self, publication: Publication, binding: Binding) -> None:
        """Handle that one binding accepted the message; a call that requests no answer is waited
        for."""
        options = binding.options
        if options.interaction != ASKS_NOTHING:
            publication.settled = True
        elif options.kind != TO_URL:
            self._settle(publication, RESULT_OK)

    def _to_targets(self, publication: Publication) -> None:
        """Call a custom router, and offer the message to each of its targets."""
        router = publication.router
        message = RoutedMessage(router.name, publication.session, publication.envelope)
        try:
            bindings = self._targets_of(router, message)
        except Exception as error:  # noqa: BLE001 - the user's code hurts this message only
            self._core.out.append(RouterFailed(router.name, error))
            self._settle(publication, RESULT_INTERNAL_SERVER_ERROR)
            return
        self._to_all(publication, bindings)

    def _targets_of(self, router: Router, message: RoutedMessage) -> list[Binding]:
        """The targets that a custom router returns, checked like bindings from the network."""
        assert router.custom is not None
        targets: object = router.custom.route(message)
        if not isinstance(targets, list):
            raise TypeError(f"route() must return a list of targets, not {targets!r}")
        limits = self._core.limits
        if len(targets) > limits.max_bindings_per_router:
            raise ValueError(f"{len(targets)} targets, more than max_bindings_per_router")
        bindings: list[Binding] = []
        for target in targets:
            if not isinstance(target, BindingOptions):
                raise TypeError(f"route() must return a list of targets, not of {target!r}")
            code = problem_of_binding(target, self._routing.rules, limits.max_name_bytes)
            if code != RESULT_OK:
                raise ValueError(f"refused with {code}: {target!r}")
            bindings.append(Binding(target))
        return bindings

    # --- One binding -----------------------------------------------------------------------------

    def _offer(self, binding: Binding, publication: Publication) -> bool:
        """Offer the message to one binding; return whether it was accepted, or a program is being
        called."""
        options = binding.options
        kind = options.kind
        envelope = publication.envelope
        if kind == TO_CLIENTS:
            return self._to_clients(binding, publication)
        if kind == TO_QUEUE:
            push = envelope.as_push(options.target, options.content_type, options.interaction)
            return self._intake.route(push, publication.session)
        if kind == TO_URL:
            return self._to_url(options, publication)
        return self._to_tag(binding, publication)

    def _to_clients(self, binding: Binding, publication: Publication) -> bool:
        """Send it to all matching clients, to the first, or to one in turn (F125)."""
        options = binding.options
        envelope = publication.envelope
        direct = envelope.as_direct(options.target, options.content_type, options.interaction)
        count = self._direct.count(direct.by, direct.who)
        if options.method == _ROUND_ROBIN or options.method == _ONLY_FIRST:
            count = 1 + count // _LOOKED_AT_PER_CLIENT
        if count > publication.clients_left:
            return False
        publication.clients_left -= count
        receivers = self._direct.receivers(direct.by, direct.who)
        if not receivers:
            return False
        if options.method == _ROUND_ROBIN:
            receivers = [receivers[binding.turn % len(receivers)]]
            binding.turn += 1
        elif options.method == _ONLY_FIRST:
            receivers = receivers[:1]
        return self._direct.bring(receivers, direct, publication.session)

    def _to_tag(self, binding: Binding, publication: Publication) -> bool:
        """Push it into every queue whose tag matches, in the order of creation (F126)."""
        options = binding.options
        channels = self._core.channels
        before = channels.compared
        queues = channels.tagged(options.target)
        self._core.work += 1 + len(queues) + (channels.compared - before) // _TAGS_PER_UNIT
        if len(queues) > publication.queues_left:
            return False
        publication.queues_left -= len(queues)
        took = False
        for queue in queues:
            push = publication.envelope.as_push(
                queue.channel_name, queue.queue_id, options.interaction
            )
            if self._intake.route(push, publication.session):
                took = True
        return took

    def _to_url(self, options: BindingOptions, publication: Publication) -> bool:
        """Have a program called, if there is room in the table (F120)."""
        core = self._core
        if len(self._calls) >= core.limits.max_http_calls:
            core.reached("max_http_calls")
            return False
        if self._call_bytes + publication.size > core.limits.max_http_call_bytes:
            core.reached("max_http_call_bytes")
            return False
        message = publication.envelope.as_http()
        method = _POST if options.content_type is None else options.content_type
        body = b"" if method == _GET or method == _DELETE else message.body
        self._last_ticket += 1
        ticket = self._last_ticket
        self._calls[ticket] = _Call(publication, options.interaction)
        self._call_bytes += publication.size
        if options.interaction == ASKS_NOTHING:
            publication.calls += 1
        self._core.out.append(
            CallHttp(ticket, _HTTP_METHODS[method], options.target, message.headers, body)
        )
        return True

    # --- Answers ---------------------------------------------------------------------------------

    def _settle(self, publication: Publication, code: int) -> None:
        publication.settled = True
        if publication.session.alive:
            self._reply(publication.session, publication.request, code)

    def _reply(self, session: Session, request: object, code: int) -> None:
        if request is not None:
            self._core.out.append(Reply(session.number, request, code))


def _code_of(status: int) -> int:
    """The result code of an HTTP status: errors keep their number, everything else that is not a
    success (a redirect, which is not followed) is 1."""
    if 200 <= status <= 299:
        return RESULT_OK
    return status if 400 <= status <= 599 else RESULT_FAILED
