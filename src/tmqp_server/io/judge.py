"""Asks the operator's code: turns the hub's questions into calls of its hooks.

It never raises: if a hook fails, or returns something that is not an answer, the request is
refused, and the error is logged with its traceback.  The turn decides how long a hook may take
about a right, and how long a refused client waits for its answer; a hook for custom messages is
bounded here, because its sender must be notified when it took too long.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

import anyio

from tmqp.constants import ResultCode
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp_server.access import rights
from tmqp_server.access.auth import Access, Admission, Answer, Applicant, Identity
from tmqp_server.access.certificates import PeerCertificate
from tmqp_server.access.custom import ClientGone, CustomMessage, MessageHook, SendPort
from tmqp_server.access.gate import AUTHENTICATE, Question, Verdict
from tmqp_server.engine.commands import Connect, ListChannels, ListOffsets, SurveyCommand
from tmqp_server.engine.effects import HandOver
from tmqp_server.engine.events import event_name
from tmqp_server.engine.model.client import Client
from tmqp_server.shell.asking import NO

__all__ = ["RIGHT_CALLS", "ConnectionFacts", "Judge"]

logger = logging.getLogger("tmqp_server.access")

_DONE: Final = Verdict(True)


class ConnectionFacts(Protocol):
    """Facts about a connection: its address, and whether it is encrypted."""

    @property
    def peer(self) -> str:
        """The address of the peer, as text."""

    @property
    def secure(self) -> bool:
        """Whether the connection is encrypted."""

    @property
    def common_name(self) -> str:
        """The name in the client's certificate, which TLS has verified; empty without a
        certificate.
        """

    @property
    def certificate(self) -> PeerCertificate | None:
        """The client's certificate; None without one."""

    @property
    def acts_as(self) -> str:
        """The entry of ``[access]`` for clients without credentials on this connection."""


_RightCall = Callable[[Access, Identity, Question], Awaitable[bool | Answer]]

#: The method that decides about each right.
RIGHT_CALLS: Final[dict[str, _RightCall]] = {
    rights.ANSWER: lambda a, who, q: a.may_answer(who, q.about),
    rights.BROWSE: lambda a, who, q: a.may_browse(who, q.about, q.queue_id),
    rights.CANCEL: lambda a, who, q: a.may_cancel(who, q.about, q.queue_id),
    rights.CELLS_READ: lambda a, who, q: a.may_read_cells(who, q.about),
    rights.CELLS_WRITE: lambda a, who, q: a.may_write_cells(who, q.about),
    rights.FEED: lambda a, who, q: a.may_feed(who, q.about, q.queue_id),
    rights.CLEAR_MESSAGES: lambda a, who, q: a.may_clear_messages(who, q.about, q.queue_id),
    rights.CONFIGURE: lambda a, who, _: a.may_configure(who),
    rights.CREATE_CHANNEL: lambda a, who, q: a.may_create_channel(who, q.about),
    rights.CREATE_QUEUE: lambda a, who, q: a.may_create_queue(who, q.about, q.queue_id),
    rights.CUSTOM: lambda a, who, _: a.may_send_custom(who),
    rights.DIRECT: lambda a, who, q: a.may_send_direct(who, q.about),
    rights.JOIN: lambda a, who, q: a.may_join(who, q.about),
    rights.MANAGE_CLIENTS: lambda a, who, _: a.may_manage_clients(who),
    rights.MANAGE_ROUTERS: lambda a, who, q: a.may_manage_router(who, q.about),
    rights.MANAGE_SERVER: lambda a, who, _: a.may_manage_server(who),
    rights.PUBLISH: lambda a, who, q: a.may_publish(who, q.about),
    rights.PULL: lambda a, who, q: a.may_pull(who, q.about, q.queue_id),
    rights.PUSH: lambda a, who, q: a.may_push(who, q.about, q.queue_id),
    rights.REMOVE_CHANNEL: lambda a, who, q: a.may_remove_channel(who, q.about),
    rights.REMOVE_QUEUE: lambda a, who, q: a.may_remove_queue(who, q.about, q.queue_id),
    rights.SEE_AUDIT: lambda a, who, _: a.may_see_audit(who),
    rights.SEE_CHANNEL: lambda a, who, q: a.may_see_channel(who, q.about, q.queue_id),
    rights.SEE_CLIENTS: lambda a, who, _: a.may_see_clients(who),
    rights.SEE_CONSUMERS: lambda a, who, q: a.may_see_consumers(who, q.about),
    rights.SEE_METRICS: lambda a, who, _: a.may_see_metrics(who),
    rights.SEE_NODES: lambda a, who, _: a.may_see_nodes(who),
    rights.SEE_ROUTERS: lambda a, who, q: a.may_see_routers(who, q.about),
    rights.SEE_SERVER: lambda a, who, _: a.may_see_server(who),
    rights.SUBSCRIBE: lambda a, who, q: a.may_subscribe(
        who, event_name(q.event), q.about, q.queue_id
    ),
    rights.TRANSACT: lambda a, who, q: a.may_transact(who, q.about),
    rights.UPDATE_CHANNEL: lambda a, who, q: a.may_update_channel(who, q.about),
    rights.UPDATE_QUEUE: lambda a, who, q: a.may_update_queue(who, q.about, q.queue_id),
}


class Judge:
    """Calls the hooks of one server.

    :param access: decides about rights; None if they are not checked.
    :param hook: handles custom messages; None if there is none.
    :param timeout_s: how many seconds a hook for custom messages may take.
    :param most_bytes: the largest payload that a hook may send.
    :param authenticators: decide about channels that name one, instead of *access*.
    :param identities: the identities that a door reports to its clients, by session
        (``Admission.identity``).
    """

    def __init__(
        self,
        access: Access | None,
        hook: MessageHook | None,
        timeout_s: float,
        most_bytes: int,
        authenticators: Mapping[str, Access] | None = None,
        identities: dict[int, tuple[str, str, int]] | None = None,
    ) -> None:
        self.access = access
        self._identities = {} if identities is None else identities
        self.hook = hook
        self._authenticators = {} if authenticators is None else authenticators
        self._timeout_s = timeout_s
        self._most_bytes = most_bytes
        self._known: dict[int, Identity] = {}

    async def decide(self, question: Question, place: ConnectionFacts, port: SendPort) -> Verdict:
        """Answer a question; raise no exception of its own.

        :param place: the connection of the question.
        :param port: sends the messages of a hook.
        """
        handed_over = question.handed_over
        if handed_over is not None:
            return await self._hand_over(handed_over, place, port)
        if question.right == AUTHENTICATE:
            assert isinstance(question.command, Connect)
            return await self._authenticate(question.command, place)
        access = self.access
        assert access is not None, "nobody asks about rights where all have them"
        who = self._known.get(question.session)
        if who is None:
            return NO
        if isinstance(question.command, (ListChannels, ListOffsets, SurveyCommand)):
            return await self._seen(access, who, question, place)
        if question.authenticator:
            access = self._authenticators[question.authenticator]
        call = RIGHT_CALLS[question.right]
        what = f"{question.right} {question.about!r}"
        answer = await self._ask(what, lambda: call(access, who, question), place, (bool, Answer))
        if isinstance(answer, Answer):
            return Verdict(bool(answer.allowed), answer.keep_s)
        # A failed answer is not cached.
        return NO if answer is None else Verdict(answer, access.keep_s)

    def known(self) -> dict[int, Identity]:
        """Return the connected clients, by session."""
        return dict(self._known)

    def forget(self, session: int) -> None:
        """Forget a session that has ended."""
        self._known.pop(session, None)
        self._identities.pop(session, None)

    # -- connecting -----------------------------------------------------------------------------

    async def _authenticate(self, connect: Connect, place: ConnectionFacts) -> Verdict:
        access = self.access
        assert access is not None, "nobody asks who connects where everybody may"
        applicant = _applicant(connect, place)
        answer = await self._ask(
            "authenticate", lambda: access.authenticate(applicant), place, (bool, Admission)
        )
        if answer is None or answer is False:
            # The turn logs the refusal, with its code.
            logger.debug("%s: not admitted as %r", place.peer, applicant.client_id)
            return NO
        admission = answer if isinstance(answer, Admission) else Admission()
        accepted = Connect(
            connect.session,
            connect.request,
            connect.client_id if admission.client_id is None else admission.client_id,
            connect.name if admission.name is None else admission.name,
            connect.client_type if admission.client_type is None else admission.client_type,
            connect.door,
            connect.properties,
            admission.authenticated,
            connect.take_over,
            admission.node,
            kept=connect.kept,
        )
        if admission.identity is not None:
            self._identities[connect.session] = admission.identity
        self._known[connect.session] = _identity(accepted, place, admission.data)
        return Verdict(True, connect=accepted, known_as=admission.known_as)

    # -- lists and messages ---------------------------------------------------------------------

    async def _seen(
        self, access: Access, who: Identity, question: Question, place: ConnectionFacts
    ) -> Verdict:
        """Return which channels of a list are visible; the access rules or the channel's
        authenticator decide."""
        owners = question.authenticators
        names = tuple([name for name in question.names if name not in owners])
        found = await self._seen_by(access, who, names, place)
        if found is not None:
            found = found.difference(owners)
        for owner in sorted(set(owners.values())):
            own = tuple([name for name, each in owners.items() if each == owner])
            more = await self._seen_by(self._authenticators[owner], who, own, place)
            more = frozenset() if more is None else more.intersection(own)
            if more:
                found = more if found is None else found | more
        return NO if found is None else Verdict(True, names=found)

    async def _seen_by(
        self, access: Access, who: Identity, names: tuple[str, ...], place: ConnectionFacts
    ) -> frozenset[str] | None:
        """The channels that one of the objects shows; None if it refuses the list."""
        seen = await self._ask(
            "see the channels", lambda: access.visible_channels(who, names), place, (Iterable,)
        )
        if seen is None or isinstance(seen, str):
            return None
        return frozenset(seen)

    async def _hand_over(self, effect: HandOver, place: ConnectionFacts, port: SendPort) -> Verdict:
        """Pass a custom message to its hook; an error affects only the message."""
        hook = self.hook
        frame = effect.wire
        assert hook is not None, "nobody hands over what nobody takes"
        assert isinstance(frame, Frame), "only this door has custom messages"
        who = self._known.get(effect.session)
        if who is None:
            who = _identity_of(effect.client, place)
        message = CustomMessage(who, frame, port, self._most_bytes)
        try:
            with anyio.fail_after(self._timeout_s):
                await hook(message)
        except ClientGone:
            logger.info("%s: disconnected before its custom message was answered", place.peer)
        except Exception as error:
            if isinstance(error, TimeoutError):
                logger.error("%s: the hook for custom messages took too long", place.peer)
            else:
                logger.exception("%s: the hook for custom messages failed", place.peer)
            with suppress(ClientGone), anyio.move_on_after(self._timeout_s):
                await message.respond(int(ResultCode.INTERNAL_SERVER_ERROR))
        return _DONE

    # -- calling --------------------------------------------------------------------------------

    async def _ask(
        self,
        what: str,
        call: Callable[[], Awaitable[Any]],
        place: ConnectionFacts,
        kinds: tuple[type, ...],
    ) -> Any:
        """Return the answer of a hook, if it is of one of these kinds, and otherwise None; for a
        list, None is a valid answer.
        """
        try:
            answer = await call()
        except Exception:
            logger.exception("%s: %s: the hook failed, refused", place.peer, what)
            return None
        if isinstance(answer, kinds) or (answer is None and kinds == (Iterable,)):
            return answer
        logger.error(
            "%s: %s: %r is not an answer, refused", place.peer, what, type(answer).__name__
        )
        return None


def _applicant(connect: Connect, place: ConnectionFacts) -> Applicant:
    information = connect.properties
    read = information if isinstance(information, ConnectionInformation) else None
    shown = connect.credentials
    return Applicant(
        connect.session,
        connect.client_id if read is None else read.client_id,
        connect.name or "",
        connect.client_type or "",
        "" if shown is None else shown.secret,
        {} if read is None else read.properties,
        place.peer,
        place.secure,
        connect.door,
        place.acts_as,
        shown,
        place.common_name,
        place.certificate,
    )


def _identity(connect: Connect, place: ConnectionFacts, data: Any) -> Identity:
    information = connect.properties
    return Identity(
        connect.session,
        connect.client_id,
        connect.name or "",
        connect.client_type or "",
        connect.authenticated,
        information.properties if isinstance(information, ConnectionInformation) else {},
        place.peer,
        place.secure,
        connect.door,
        data,
    )


def _identity_of(client: Client, place: ConnectionFacts) -> Identity:
    """Return the identity of a client that was not authenticated."""
    return Identity(
        client.number,
        client.client_id,
        client.name or "",
        client.client_type or "",
        client.authenticated,
        client.properties or {},
        place.peer,
        place.secure,
        client.door,
    )
