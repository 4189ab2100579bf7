"""Access control: ``Access``, whose methods decide who may connect and what they may do, and
``TableAccess``, which reads the rules from the configuration.

A server calls one ``Access`` object.  All its methods are coroutines, so they may call a database
or another service; only the client concerned waits for the answer.  If a method raises, or takes
longer than ``hook_timeout_s``, the request is refused; the client stays connected, and the error is
logged.

Whatever no method allows is refused::

    class ShopAccess(Access):
        async def authenticate(self, applicant):
            user = await find_user(applicant.token)
            return user is not None and Admission(client_id=user.name, data=user)

        async def may_push(self, who, channel, queue_id):
            return channel == "orders" or who.data.is_clerk
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import anyio
import anyio.to_thread

from tmqp_server.access import rights
from tmqp_server.access.certificates import PeerCertificate
from tmqp_server.access.patterns import fits
from tmqp_server.access.roles import OPEN, TABLE, AccessConfig, Entry, Role
from tmqp_server.access.tokens import find_token
from tmqp_server.engine.commands import Credentials
from tmqp_server.settings.checks import ConfigError
from tmqp_server.settings.extensions import load_object

__all__ = [
    "NO_QUEUE",
    "Access",
    "Admission",
    "Answer",
    "Applicant",
    "Identity",
    "TableAccess",
    "load_access",
]

logger = logging.getLogger("tmqp_server.access")

#: Stands for no queue in particular.
NO_QUEUE = -1


@final
@dataclass(frozen=True, slots=True)
class Applicant:
    """A connecting client, with its description of itself (F29).

    ``client_id`` is empty if the server chooses it.  ``properties`` are those that have no meaning
    in the protocol.  ``peer`` is the address of the client, ``secure`` whether the connection is
    encrypted, ``door`` its protocol.  ``acts_as`` is the entry in the configuration for clients of
    this door without credentials.  ``credentials`` are the client's credentials or None, and
    ``token`` is their secret.  ``common_name`` is the name in the client's ``certificate``, which
    TLS has verified; both are None without a certificate.
    """

    session: int
    client_id: str = ""
    name: str = ""
    client_type: str = ""
    token: str = field(default="", repr=False)
    properties: Mapping[str, str] = field(default_factory=dict)
    peer: str = ""
    secure: bool = False
    door: str = ""
    acts_as: str = ""
    credentials: Credentials | None = field(default=None, repr=False)
    common_name: str = ""
    certificate: PeerCertificate | None = None


@final
@dataclass(frozen=True, slots=True)
class Admission:
    """The permission to connect, and the client's id and name.

    :param client_id: the client's id; None for the requested one, or a new one if it requested
        none.
    :param name: the client's name; None for the requested one.  ``client_type`` likewise.
    :param authenticated: whether lists of clients show it as authenticated (F69).
    :param node: whether it is a node of the cluster, which forwards messages of its own clients;
        the rights of a node are not checked.
    :param data: your own data about the client, see :class:`Identity`.
    :param identity: the client's identity, a URL about it, and its number of permissions, for
        protocols that report them to the client.
    :param known_as: the client's name in the audit; its client id if empty.
    """

    client_id: str | None = None
    name: str | None = None
    client_type: str | None = None
    authenticated: bool = True
    node: bool = False
    data: Any = None
    identity: tuple[str, str, int] | None = None
    known_as: str = ""


@final
@dataclass(frozen=True, slots=True)
class Identity:
    """A connected client.  ``session`` is the number of its connection, which is never reused;
    ``data`` is that of its :class:`Admission`."""

    session: int
    client_id: str
    name: str = ""
    client_type: str = ""
    authenticated: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    peer: str = ""
    secure: bool = False
    door: str = ""
    data: Any = field(default=None, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, and for how many seconds the server may cache it for the same client and
    question."""

    allowed: bool
    keep_s: float = 0.0


class Access:
    """Decides who may connect and what they may do; override the methods for what you allow.

    Each ``may_`` method returns True, False or an :class:`Answer`.  By default it calls
    :meth:`may`, which allows nothing.

    Class attributes: ``authenticates`` is False if the class accepts every client; then the server
    must not be reachable from other machines unless ``allow_remote`` is set.  ``keep_s`` is for how
    many seconds a plain True or False is cached; with 0, every push calls the method.
    """

    authenticates: bool = True
    keep_s: float = 0.0

    _forgetters: tuple[Callable[[int | None], None], ...] = ()

    def attach(self, forget_answers: Callable[[int | None], None]) -> None:
        """Note that a server uses this object from now on; the server calls this."""
        self._forgetters = (*self._forgetters, forget_answers)

    def detach(self, forget_answers: Callable[[int | None], None]) -> None:
        """Note that the server has stopped; the server calls this."""
        self._forgetters = tuple(each for each in self._forgetters if each != forget_answers)

    @final
    def forget_answers(self, who: Identity | None = None) -> None:
        """Drop all cached answers, for one client or for all."""
        for forget in self._forgetters:
            forget(None if who is None else who.session)

    async def authenticate(self, applicant: Applicant) -> bool | Admission:
        """Decide whether this client may connect.  False is answered with 401, and the connection
        ends (F33)."""
        return False

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool | Answer:
        """Decide for all ``may_`` methods that are not overridden.

        :param right: the name of the right, one of ``tmqp_server.access.rights``.
        :param subject: the name of the channel, client or other object; empty if there is none.
        :param queue_id: the queue, or ``NO_QUEUE``.
        """
        return False

    # -- channels and queues --------------------------------------------------------------------

    async def may_create_channel(self, who: Identity, channel: str) -> bool | Answer:
        """Create a channel by an operation.  For channels that a push or join creates,
        :meth:`may_push` or :meth:`may_join` decides."""
        return await self.may(who, rights.CREATE_CHANNEL, channel, NO_QUEUE)

    async def may_update_channel(self, who: Identity, channel: str) -> bool | Answer:
        """Change a channel's options, including its authenticator and its event handler."""
        return await self.may(who, rights.UPDATE_CHANNEL, channel, NO_QUEUE)

    async def may_remove_channel(self, who: Identity, channel: str) -> bool | Answer:
        """Remove a channel with its queues and messages."""
        return await self.may(who, rights.REMOVE_CHANNEL, channel, NO_QUEUE)

    async def may_join(self, who: Identity, channel: str) -> bool | Answer:
        """Join a channel, and receive the messages of its queues."""
        return await self.may(who, rights.JOIN, channel, NO_QUEUE)

    async def may_create_queue(self, who: Identity, channel: str, queue_id: int) -> bool | Answer:
        """Create a queue by an operation, and its channel if that is missing."""
        return await self.may(who, rights.CREATE_QUEUE, channel, queue_id)

    async def may_update_queue(self, who: Identity, channel: str, queue_id: int) -> bool | Answer:
        """Change a queue's options."""
        return await self.may(who, rights.UPDATE_QUEUE, channel, queue_id)

    async def may_remove_queue(self, who: Identity, channel: str, queue_id: int) -> bool | Answer:
        """Remove a queue with its messages."""
        return await self.may(who, rights.REMOVE_QUEUE, channel, queue_id)

    async def may_clear_messages(self, who: Identity, channel: str, queue_id: int) -> bool | Answer:
        """Remove a queue's messages."""
        return await self.may(who, rights.CLEAR_MESSAGES, channel, queue_id)

    # -- messages -------------------------------------------------------------------------------

    async def may_push(self, who: Identity, channel: str, queue_id: int) -> bool | Answer:
        """Push into a queue; also called for copies into other queues (F82)."""
        return await self.may(who, rights.PUSH, channel, queue_id)

    async def may_pull(self, who: Identity, channel: str, queue_id: int) -> bool | Answer:
        """Pull messages from a pull queue, or read a cache queue; the client must also have
        joined."""
        return await self.may(who, rights.PULL, channel, queue_id)

    async def may_browse(self, who: Identity, channel: str, queue_id: int) -> bool | Answer:
        """Browse a queue's messages without removing any."""
        return await self.may(who, rights.BROWSE, channel, queue_id)

    async def may_cancel(self, who: Identity, channel: str, queue_id: int) -> bool | Answer:
        """Remove deferred messages of any producer from a queue."""
        return await self.may(who, rights.CANCEL, channel, queue_id)

    async def may_feed(self, who: Identity, channel: str, queue_id: int) -> bool | Answer:
        """Add or remove a feed; for an added feed, called for the source queue and for the target
        queue."""
        return await self.may(who, rights.FEED, channel, queue_id)

    async def may_send_direct(self, who: Identity, target: str) -> bool | Answer:
        """Send direct messages: ``target`` is an id, or ``@name:`` or ``@type:`` and a name
        (F113)."""
        return await self.may(who, rights.DIRECT, target, NO_QUEUE)

    async def may_answer(self, who: Identity, client_id: str) -> bool | Answer:
        """Send another client a response, or acknowledge its direct message (F116, F117)."""
        return await self.may(who, rights.ANSWER, client_id, NO_QUEUE)

    async def may_send_custom(self, who: Identity) -> bool | Answer:
        """Send custom messages to the operator's code in the server (F17)."""
        return await self.may(who, rights.CUSTOM, "", NO_QUEUE)

    # -- routers and events ---------------------------------------------------------------------

    async def may_publish(self, who: Identity, router: str) -> bool | Answer:
        """Publish to a router.  The targets of its bindings are not checked."""
        return await self.may(who, rights.PUBLISH, router, NO_QUEUE)

    async def may_transact(self, who: Identity, application: str) -> bool | Answer:
        """Open, commit and abort transactions of an application, and push into them, which also
        needs the right to push; with an empty name, list the transactions of all applications."""
        return await self.may(who, rights.TRANSACT, application, NO_QUEUE)

    async def may_read_cells(self, who: Identity, space: str) -> bool | Answer:
        """Read and list the cells of a space."""
        return await self.may(who, rights.CELLS_READ, space, NO_QUEUE)

    async def may_write_cells(self, who: Identity, space: str) -> bool | Answer:
        """Create, change and remove the cells of a space; a change returns its result."""
        return await self.may(who, rights.CELLS_WRITE, space, NO_QUEUE)

    async def may_manage_router(self, who: Identity, router: str) -> bool | Answer:
        """Create and remove a router and its bindings, which may forward messages anywhere."""
        return await self.may(who, rights.MANAGE_ROUTERS, router, NO_QUEUE)

    async def may_see_routers(self, who: Identity, router: str) -> bool | Answer:
        """See the bindings of a router, or the list of all routers if ``router`` is empty."""
        return await self.may(who, rights.SEE_ROUTERS, router, NO_QUEUE)

    async def may_subscribe(
        self, who: Identity, event: str, channel: str, queue_id: int
    ) -> bool | Answer:
        """Subscribe to an event; ``channel`` is empty for events of the whole server (F127)."""
        return await self.may(who, rights.SUBSCRIBE, channel, queue_id)

    # -- information ----------------------------------------------------------------------------

    async def may_see_channel(self, who: Identity, channel: str, queue_id: int) -> bool | Answer:
        """See the information about a channel or its list of queues (``NO_QUEUE``), or about a
        queue."""
        return await self.may(who, rights.SEE_CHANNEL, channel, queue_id)

    async def may_see_consumers(self, who: Identity, channel: str) -> bool | Answer:
        """See the clients that have joined a channel."""
        return await self.may(who, rights.SEE_CONSUMERS, channel, NO_QUEUE)

    async def may_see_clients(self, who: Identity) -> bool | Answer:
        """See the list of all clients."""
        return await self.may(who, rights.SEE_CLIENTS, "", NO_QUEUE)

    async def may_manage_clients(self, who: Identity) -> bool | Answer:
        """Close the connections of other clients."""
        return await self.may(who, rights.MANAGE_CLIENTS, "", NO_QUEUE)

    async def may_see_nodes(self, who: Identity) -> bool | Answer:
        """See the list of the cluster's nodes, and the server's information about itself."""
        return await self.may(who, rights.SEE_NODES, "", NO_QUEUE)

    async def may_see_metrics(self, who: Identity) -> bool | Answer:
        """See the server's metrics, which name its doors and the queues that are chosen for
        metrics."""
        return await self.may(who, rights.SEE_METRICS, "", NO_QUEUE)

    async def may_see_server(self, who: Identity) -> bool | Answer:
        """See the state of the server, including its failures."""
        return await self.may(who, rights.SEE_SERVER, "", NO_QUEUE)

    async def may_manage_server(self, who: Identity) -> bool | Answer:
        """Make the server drain, stop or reload its configuration."""
        return await self.may(who, rights.MANAGE_SERVER, "", NO_QUEUE)

    async def may_see_audit(self, who: Identity) -> bool | Answer:
        """See the audit: requested changes and log-ins, with their clients."""
        return await self.may(who, rights.SEE_AUDIT, "", NO_QUEUE)

    async def may_configure(self, who: Identity) -> bool | Answer:
        """Change settings of the running server, as NSQ's ``PUT /config`` does."""
        return await self.may(who, rights.CONFIGURE, "", NO_QUEUE)

    async def visible_channels(self, who: Identity, names: Sequence[str]) -> Collection[str] | None:
        """Return which of these channels a list may show (F52); None refuses the whole list.

        By default, these are the channels that :meth:`may_see_channel` allows.  If it refuses all
        of them, the list is refused; without channels it is not called.
        """
        seen: list[str] = []
        for name in names or [""]:
            answer = await self.may_see_channel(who, name, NO_QUEUE)
            if answer.allowed if isinstance(answer, Answer) else answer:
                seen.append(name)
        return (seen if names else []) if seen else None


@final
class _Admitted:
    """The entry with which some clients have connected; None after it was removed."""

    __slots__ = ("entry",)

    def __init__(self, entry: Entry) -> None:
        self.entry: Entry | None = entry

    @property
    def roles(self) -> tuple[Role, ...]:
        """The current roles of these clients."""
        return () if self.entry is None else self.entry.roles


@final
class TableAccess(Access):
    """The access rules of the table ``[access]`` of the configuration."""

    keep_s = math.inf

    def __init__(self, config: AccessConfig) -> None:
        #: By the identity of an entry; its clients share one object.
        self._admitted: dict[tuple[object, ...], _Admitted] = {}
        self._turn = anyio.Lock()
        self._take(config)

    def reload(self, config: AccessConfig) -> Callable[[Identity], bool]:
        """Use this table from now on, also for connected clients.

        :returns: a function that tells whether the entry of a client was removed or has a new
            secret; disconnect such clients.
        """
        entries = {_key_of(entry): entry for entry in (*config.tokens, *config.certificates)}
        if config.anonymous is not None:
            entries[_key_of(config.anonymous)] = config.anonymous
        for key, admitted in list(self._admitted.items()):
            admitted.entry = entries.get(key)
            if admitted.entry is None:
                del self._admitted[key]
        self._take(config)
        self.forget_answers()
        return lambda who: isinstance(who.data, _Admitted) and who.data.entry is None

    def _take(self, config: AccessConfig) -> None:
        self._secrets = [entry for entry in config.tokens if entry.hash is not None]
        self._hashes = [entry.hash for entry in config.tokens if entry.hash is not None]
        self._anonymous = config.anonymous
        self._by_name = {entry.name: entry for entry in config.tokens}
        self._by_key = {entry.public_key: entry for entry in config.tokens if entry.public_key}
        self._by_common_name = {
            entry.common_name: entry for entry in config.tokens if entry.common_name
        }
        self._certificates = config.certificates
        self._slow = any(each.slow for each in self._hashes)

    async def authenticate(self, applicant: Applicant) -> bool | Admission:
        """Find the entry for the client's credentials, or the one for clients without credentials;
        it becomes the ``data`` of the :class:`Admission`.

        Credentials come first, then the certificate, then ``as`` of the door, then ``anonymous``.
        Wrong credentials are refused, whatever else the client has, unless they are optional.
        """
        shown = applicant.credentials
        if shown is None and applicant.token:
            shown = Credentials("token", applicant.token)
        if shown is not None and shown.optional and shown.secret not in self._by_key:
            shown = None
        proven = True
        if shown is not None and shown.kind == "public-key":
            entry = self._by_key.get(shown.secret)
        elif shown is not None:
            entry = await self._of_secret(shown)
        else:
            entry = self._of_certificate(applicant)
            if entry is None:
                proven = False
                acts_as = applicant.acts_as
                entry = self._by_name.get(acts_as) if acts_as else self._anonymous
        if entry is None or not _may_be_called(applicant, entry):
            return False
        logger.info("%s: connects as %s", applicant.peer, entry.name)
        admitted = self._admitted.setdefault(_key_of(entry), _Admitted(entry))
        return Admission(authenticated=proven, node=entry.node, data=admitted, known_as=entry.name)

    def _of_certificate(self, applicant: Applicant) -> Entry | None:
        """The entry for its certificate; an entry that names its common name comes first."""
        entry = self._by_common_name.get(applicant.common_name)
        shown = applicant.certificate
        if entry is not None or shown is None:
            return entry
        for each in self._certificates:
            if each.certificate is not None and each.certificate.fits(shown):
                return each
        return None

    async def _of_secret(self, shown: Credentials) -> Entry | None:
        """The entry with this token, or with this password of this user.

        An entry without a user takes a password from every user: a protocol may have no other
        place for a token.
        """
        for place in await self._find(shown.secret):
            entry = self._secrets[place]
            if not entry.user or entry.user == shown.user:
                return entry
        return None

    async def _find(self, token: str) -> list[int]:
        if not self._slow:
            return find_token(token, self._hashes)
        # One at a time, so that guesses do not use all processors of the machine.
        async with self._turn:
            return await anyio.to_thread.run_sync(find_token, token, self._hashes)

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool | Answer:
        """Return whether one of the client's roles allows it."""
        roles = _roles_of(who)
        return any(role.allows(right, subject, queue_id) for role in roles)

    async def visible_channels(self, who: Identity, names: Sequence[str]) -> Collection[str] | None:
        """Return the channels that one of the client's roles allows it to see; None if there are
        none."""
        roles = _roles_of(who)
        if not any(rights.SEE_CHANNEL in role.rights for role in roles):
            return None
        return [
            name
            for name in names
            if any(role.allows(rights.SEE_CHANNEL, name, NO_QUEUE) for role in roles)
        ]


def _roles_of(who: Identity) -> tuple[Role, ...]:
    """The current roles of a client that the table admitted; none for any other client."""
    return who.data.roles if isinstance(who.data, _Admitted) else ()


def _key_of(entry: Entry) -> tuple[object, ...]:
    """What identifies an entry: its name and its secret."""
    proof = (entry.hash, entry.user, entry.public_key, entry.common_name, entry.certificate)
    return (entry.name, *proof)


def _may_be_called(applicant: Applicant, entry: Entry) -> bool:
    """Whether the entry allows the names that the client gives itself; an id from the server is
    allowed.
    """
    return (
        (not applicant.client_id or fits(applicant.client_id, entry.client_ids))
        and (not applicant.name or fits(applicant.name, entry.client_names))
        and (not applicant.client_type or fits(applicant.client_type, entry.client_types))
    )


def load_access(config: AccessConfig) -> Access | None:
    """Make the access rules of a configuration; None if every client has all rights.

    :raises ConfigError: when they cannot be made.
    """
    if config.kind == OPEN:
        return None
    if config.kind == TABLE:
        return TableAccess(config)
    made = load_object("access.kind", config.kind)
    if isinstance(made, type) or config.arguments:
        made = _called("access.kind", config.kind, functools.partial(made, **config.arguments))
    if not isinstance(made, Access):
        raise ConfigError(f"access.kind: {config.kind} is not a tmqp_server.Access")
    return made


def _called(key: str, path: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except Exception as error:
        raise ConfigError(f"{key}: {path} cannot be created: {error!r}") from error
