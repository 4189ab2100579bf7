"""The server: builds its parts, runs them, and stops them."""

from __future__ import annotations

import functools
import logging
import random
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
import anyio.to_thread

from tmqp.address import Address
from tmqp_server.access.auth import Access, Identity
from tmqp_server.access.channel_hooks import (
    ChannelHooks,
)
from tmqp_server.access.custom import MessageHook
from tmqp_server.admin.world import AdminWorld
from tmqp_server.config import ServerConfig
from tmqp_server.doors.port import SERVER_STOPS
from tmqp_server.doors.registry import DoorRegistry, HttpKind
from tmqp_server.doors.wires import LetterWires
from tmqp_server.engine.books import TLS_BYTES
from tmqp_server.engine.broker import Broker
from tmqp_server.hub.hub import Hub
from tmqp_server.hub.recovery import recover
from tmqp_server.io.connection import Connection
from tmqp_server.io.dialling import Dialling
from tmqp_server.io.event_handlers import Teller
from tmqp_server.io.listener import Listener, open_listener
from tmqp_server.io.shell import Shell
from tmqp_server.io.tls import TlsContexts
from tmqp_server.io.tls import secure as handshake
from tmqp_server.io.transport import SocketTransport, Transport, peer_name
from tmqp_server.io.tuning import tune
from tmqp_server.shell.admitting import Connected
from tmqp_server.shell.rates import Arrivals
from tmqp_server.shell.tallies import count_one
from tmqp_server.storage.journal import Journal
from tmqp_server.storage.port import Store
from tmqp_server.wiring.assembly import declare
from tmqp_server.wiring.auditing import Audit
from tmqp_server.wiring.certificates import follow_files
from tmqp_server.wiring.clustering import Filters, Membership
from tmqp_server.wiring.datagrams import UdpSockets
from tmqp_server.wiring.doors import Doors, OpenDoor, door_name
from tmqp_server.wiring.log_lines import LogLines
from tmqp_server.wiring.logs import LOG_LINES
from tmqp_server.wiring.lookups import announcing
from tmqp_server.wiring.operating import show_to_operators
from tmqp_server.wiring.parts import (
    caller_of,
    judge_of,
    limit_turn,
    new_id,
    rates_of,
    turn_of,
)
from tmqp_server.wiring.watched import beat, show_limits, watch

if TYPE_CHECKING:
    from tmqp_server.wiring.replicating import GroupMember

__all__ = ["Server", "guards"]

logger = logging.getLogger("tmqp_server")


class Server:
    """A server; see :func:`running`.

    Attributes: ``broker`` and ``cluster`` for their statistics; ``access``, its rules, None if
    every client has all rights; ``world``, the view of its admin doors; ``doors``, where
    ``doors.further`` are all except TMQP's; ``door_listeners``, the lists of their listeners.
    """

    def __init__(
        self,
        config: ServerConfig,
        listeners: list[Listener],
        broker: Broker,
        access: Access | None = None,
        custom_messages: MessageHook | None = None,
        filters: Filters | None = None,
        hooks: ChannelHooks | None = None,
        store: Store | None = None,
        registry: DoorRegistry | None = None,
        world: AdminWorld | None = None,
        member: GroupMember | None = None,
    ) -> None:
        self.config = config
        self.access = access
        self.broker = broker
        started_s = anyio.current_time()
        offset_s = time.time() - started_s
        registry, hooks = registry or DoorRegistry(), hooks or ChannelHooks({}, {})
        self.world = world or AdminWorld()
        self.doors = Doors(config, registry, new_id, offset_s, started_s, guarded=guards(access))
        broker.know_wires(LetterWires(self.doors.native.letters))
        self._store, self._member = store, member
        self._journal = None if store is None else Journal(self.doors.bodies, offset_s)
        self._asked = [*([] if access is None else [access]), *hooks.authenticators.values()]
        #: Its part in a cluster; None while it stands alone.
        self.cluster: Membership | None = None
        if config.cluster is not None and filters is not None:
            self.cluster = Membership(config.cluster, config, filters)
        self._hub = Hub(
            broker,
            config.outbound.high_water_bytes,
            self._journal,
            guarded=access is not None,
            takes_custom=custom_messages is not None,
            relay=None if self.cluster is None else self.cluster.relay,
        )
        links = () if self.cluster is None else self.cluster.links
        self._turn = turn_of(config, self._hub, self._journal, hooks, links)
        policies = [door.settings.tls_client_auth for door in self.doors.further]
        self.tls = TlsContexts(config.tls, config.connection.handshake_timeout_s, policies)
        self._judge = judge_of(config, access, custom_messages, hooks, registry.nsq.identities)
        self._shell = Shell(
            self._turn,
            self.doors.native,
            self._judge,
            caller_of(config),
            Teller(hooks.event_handlers),
            store,
            self._journal,
            () if config.cluster is None else config.cluster.masters,
            stop_listening=self._retire,
            stop=self.stop,
        )
        self._tasks: anyio.abc.TaskGroup | None = None
        self._stopping = anyio.Event()
        self._hurry = anyio.CancelScope()
        self._over = anyio.Event()
        self._listeners = listeners
        self.door_listeners: list[list[Listener]] = [[] for _ in self.doors.further]
        self._udp = UdpSockets(self.doors.further)
        self._last_number = 0
        self._announcing = announcing(registry.nsq, self._shell, self._new_number, new_id)
        self._connected_now = Connected(config.max_connections, config.max_connections_per_address)
        self._arrivals = Arrivals(rates_of(config), self._turn.tally.waits)
        self._limit_rates(config)
        self.audit = Audit(self._hub, config.audit, offset_s)
        self.log_lines = LogLines()
        self._show_to_operators()

    def _show_to_operators(self) -> None:
        """Show admin doors the parts that only the server knows."""
        watch(self.world, self.config, self._turn, lambda: self.sessions)
        if self.cluster is not None:
            self.world.cluster = self.cluster.relay.statistics
            self.world.cluster_waiting = self.cluster.waiting_bytes
        self.world.log_lines = LOG_LINES
        self.world.conversions = self.doors.native.letters.conversions
        self.world.syncs = getattr(self._store, "syncs", None)  # not every store has a log
        self.world.audit = self.audit.file.ring
        self.world.attend = self._shell.attend
        show_to_operators(self.world, self)
        if self._member is not None:
            self._hub.stand_by("")
            self.world.group = self._member.look

    @property
    def addresses(self) -> list[Address]:
        """The addresses on which the server listens, with the actual ports."""
        return [listener.address for listener in self._listeners]

    @property
    def web_addresses(self) -> list[str]:
        """The addresses on which the server listens for HTTP, with the actual ports."""
        return self.door_addresses(HttpKind.name)

    def door_addresses(self, protocol: str = "") -> list[str]:
        """Return the addresses of the doors other than TMQP's, of one protocol or of all, with the
        actual ports: ``http://127.0.0.1:8080``."""
        return [
            door_name(each.protocol, listener.address)
            for each, listeners in zip(self.doors.further, self.door_listeners, strict=True)
            for listener in listeners
            if protocol in ("", each.protocol)
        ] + self._udp.addresses(protocol)

    @property
    def served(self) -> str:
        """All its addresses, for display."""
        return " ".join([str(each) for each in self.addresses] + self.door_addresses())

    @property
    def leader_address(self) -> str:
        """The address to which a standby redirects clients; empty without a leader."""
        return self._hub.leader_address

    async def listen(self) -> None:
        """Open the listeners of all doors.

        :raises ListenError: if it cannot listen on an address.
        """
        for address in self.config.listen:
            self._listeners.append(await open_listener(address))
        for each, listeners in zip(self.doors.further, self.door_listeners, strict=True):
            for address in each.addresses:
                listeners.append(await open_listener(address))
            each.kind.listens([listener.address for listener in listeners])
        await self._udp.listen()

    def close_listeners(self, *, keep_operators: bool = False) -> None:
        """Stop accepting connections, except from operators if they are kept."""
        for listener in self._listeners:
            listener.close()
        for opened, listeners in zip(self.doors.further, self.door_listeners, strict=True):
            if keep_operators and opened.door.for_operators:
                continue
            for listener in listeners:
                listener.close()
        self._udp.close()

    def _retire(self) -> None:
        """Close the listeners except those of operators, and show that the server drains."""
        self.world.draining = True
        self.close_listeners(keep_operators=True)

    def shut_sockets(self) -> None:
        """Close the sockets for the last datagrams of sessions without a connection."""
        self._udp.shut()

    @property
    def sessions(self) -> int:
        """The current number of connections, and of sources of datagrams that have a session."""
        # Not counted by the turn, which is notified of a session only when its task runs.
        return self._connected_now.count + self._udp.sessions

    async def begin(self) -> None:
        """Restore the contents of the store, and create the declared channels, queues and routers;
        call it before :meth:`run`.

        :raises StoreError: if the store cannot be read.
        :raises ConfigError: if a declared channel, queue or router cannot be created.
        """
        now = anyio.current_time()
        if self._store is not None and self._journal is not None:
            await anyio.to_thread.run_sync(recover, self._store, self._hub, self._journal, now)
        declare(self.broker, self.config, now, self._hub.take_down)

    @property
    def lost_events(self) -> int:
        """The number of events that were dropped because too many waited for an event handler."""
        return self._turn.lost_events

    def set_router_enabled(self, name: str, enabled: bool) -> bool:
        """Enable a router, or disable it: a disabled router answers as if it did not exist.  Return
        False if there is no router of that name."""
        return self._shell.set_router_enabled(name, enabled)

    async def run(self) -> None:
        """Serve clients until :meth:`stop` is called, then close everything in order.

        It cannot be cancelled, so that clients are always notified when the server stops.
        """
        for each in self._asked:
            each.attach(self._forget_answers)
        self.log_lines.begin()
        self.world.listening = True
        dialling = Dialling(self._shell, self._new_number, random.random)
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._shell.run)
                for listener in self._listeners:
                    self._serve(tasks, listener, None)
                    logger.info("listening on %s", listener.address)
                for opened, listeners in zip(self.doors.further, self.door_listeners, strict=True):
                    for listener in listeners:
                        self._serve(tasks, listener, opened)
                        name = door_name(opened.protocol, listener.address)
                        logger.info("listening on %s", name)
                go_out = functools.partial(self._go_out, tasks, dialling)
                if self._member is None:
                    go_out()
                else:
                    tasks.start_soon(self._member.live, self._shell, tuple(self.addresses), go_out)
                tasks.start_soon(beat, self.world)
                tasks.start_soon(follow_files, self)
                self._udp.serve(tasks, self._shell, self._new_number)
                await self._stopping.wait()
                self._announcing.stop()
                dialling.stop()
                await self._close_all()
                if self._member is not None:
                    await self._member.give_store_back()
                await self._finish_storage()
                if self._member is not None:
                    await self._member.leave()
                tasks.cancel_scope.cancel()
        for each in self._asked:
            each.detach(self._forget_answers)
        self.audit.file.close()
        self.log_lines.end()
        self._over.set()

    def _go_out(self, tasks: anyio.abc.TaskGroup, dialling: Dialling) -> None:
        """Start the connections that the server opens itself."""
        for opened in self.doors.further:
            settings = opened.settings
            door = opened.kind.dialler(opened.door)
            for peer in opened.kind.dials(settings.options):
                dialling.serve(tasks, peer, door, settings.acts_as)
        tasks.start_soon(self._announcing.run)

    def start_soon(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine in the background, until the server ends."""
        assert self._tasks is not None, "it runs"
        self._tasks.start_soon(work)

    def _forget_answers(self, session: int | None) -> None:
        gate = self._hub.gate
        assert gate is not None, "there is a gate where somebody is asked"
        gate.forget_answers(session)

    def apply(self, config: ServerConfig) -> None:
        """Apply the limits of this configuration from now on; other settings stay as they are."""
        before = self.config.rates
        self.config = config
        self._connected_now.limit_to(config.max_connections, config.max_connections_per_address)
        show_limits(self.world, config)
        limit_turn(self._turn, config)
        if config.rates != before:
            self._limit_rates(config)

    def _limit_rates(self, config: ServerConfig) -> None:
        limits = rates_of(config)
        self._arrivals.limit_to(limits)
        self._turn.limit_rates(limits, anyio.current_time())
        self._shell.attend()

    def end_sessions(self, gone: Callable[[Identity], bool], reason: str) -> None:
        """Close the connections of some clients politely."""
        for session, who in self._judge.known().items():
            if gone(who):
                self._turn.finish_session(session, reason, self._shell.now())
        self._shell.attend()

    def drain(self, *, stops: bool) -> None:
        """Stop accepting clients and messages, wait ``drain_timeout_s`` at most until nothing is
        unacknowledged, and disconnect the clients.

        :param stops: call :meth:`stop` afterwards; otherwise continue to serve operators.
        """
        self._shell.drain(stops=stops)

    def stop(self, *, at_once: bool = False) -> None:
        """Make :meth:`run` end, within ``shutdown_timeout_s``.

        :param at_once: wait only for the storage, not for clients.
        """
        self._stopping.set()
        if at_once:
            self._hurry.cancel()

    async def wait_until_over(self) -> None:
        """Wait until :meth:`stop` was called and everything is closed."""
        await self._over.wait()

    async def _close_all(self) -> None:
        """Refuse new connections, close every connection politely, and wait for their end, up to a
        time limit.
        """
        self.world.draining = True
        self.close_listeners()
        self._shell.close_all(SERVER_STOPS)
        with self._hurry, anyio.move_on_after(self.config.shutdown_timeout_s):
            await self._shell.wait_for_none()
            await self._shell.wait_until_told()

    async def _finish_storage(self) -> None:
        """Write the last batch and close the store, within a time limit."""
        seconds = self.config.shutdown_timeout_s
        with anyio.move_on_after(seconds) as scope:
            await self._shell.finish_storage()
        if scope.cancelled_caught:
            logger.error("the storage was not closed: it did not answer for %g s", seconds)

    def _serve(self, tasks: anyio.abc.TaskGroup, listener: Listener, door: OpenDoor | None) -> None:
        admit = functools.partial(self._admit, secure=listener.address.tls, door=door)
        tasks.start_soon(listener.serve, admit)

    def _admit(self, sock: socket.socket, *, secure: bool, door: OpenDoor | None) -> None:
        """Handle a new connection: refuse it beyond the limits, otherwise start its task."""
        assert self._tasks is not None, "only what runs accepts"
        name = peer_name(sock)
        host = "" if sock.family == socket.AF_UNIX else name.rpartition(":")[0]
        if door is not None and not door.settings.allows(host):
            self._refuse(sock, name, f"the door {door.protocol} does not allow it", "door")
            return
        local = not host or Address(host).is_local
        memory = TLS_BYTES if secure else 0
        has_room = self._hub.has_room(memory)
        reason = self._connected_now.admit(host, is_local=local, has_room=has_room)
        if reason:
            self._refuse(sock, name, reason, self._connected_now.limit)
            return
        pause_s = self._arrivals.wait(host, self._shell.now())
        if pause_s < 0.0:
            self._connected_now.leave(host)
            self._refuse(sock, name, "connections come from there too fast", "rate")
            return
        try:
            tune(sock)
            sock.setblocking(False)
        except OSError as error:
            # Some systems say here that the peer has gone already.
            count_one(self._turn.tally.refused, "socket")
            logger.info("%s: closed: %s", name, error)
            sock.close()
            self._connected_now.leave(host)
            return
        self.broker.charge(memory)
        self._tasks.start_soon(self._run_session, sock, name, host, secure, door, pause_s)

    def _refuse(self, sock: socket.socket, name: str, reason: str, kind: str) -> None:
        """Close a connection that is refused."""
        logger.warning("refused %s: %s", name, reason)
        count_one(self._turn.tally.refused, kind)
        sock.close()

    def _new_number(self) -> int:
        """A new session number, never used before."""
        self._last_number += 1
        return self._last_number

    async def _transport(
        self, sock: socket.socket, name: str, tls: tuple[ssl.SSLContext, float] | None
    ) -> Transport | None:
        """The transport of a connection, after the TLS handshake if there is one; None if it failed
        or the server stops.
        """
        if tls is None:
            return SocketTransport(sock, name)
        try:
            transport = await handshake(sock, name, *tls)
            count_one(self._turn.tally.handshakes, "done")
        except OSError as error:
            count_one(self._turn.tally.handshakes, "failed")
            logger.info("%s: closed: %s", name, error)
            return None
        if self._stopping.is_set():
            await transport.aclose()
            return None
        return transport

    async def _run_session(
        self,
        sock: socket.socket,
        name: str,
        host: str,
        secure: bool,
        door: OpenDoor | None,
        pause_s: float,
    ) -> None:
        """Run a connection from its start to its end; a fault is logged and ends only this
        connection.
        """
        try:
            if pause_s > 0.0:  # it came too fast
                with anyio.move_on_after(pause_s):
                    await self._stopping.wait()
            tls = self.tls.of("" if door is None else door.settings.tls_client_auth)
            assert tls is not None or not secure, "who listens so has a certificate"
            transport = await self._transport(sock, name, tls if secure else None)
            if transport is not None:
                number = self._new_number()
                spoken = None
                if door is not None:
                    spoken = door.door
                    transport.acts_as = door.settings.acts_as
                where = host or name
                await Connection(number, transport, where, self._shell, spoken, tls).run()
        except Exception:
            logger.exception("%s: the session failed", name)
        finally:
            if secure:
                self.broker.charge(-TLS_BYTES)
            self._connected_now.leave(host)


def guards(access: Access | None) -> bool:
    """Whether clients must authenticate."""
    return access is not None and access.authenticates
