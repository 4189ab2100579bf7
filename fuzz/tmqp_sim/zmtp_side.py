"""The part of a run that speaks ZMTP: its sockets, their items, and the door of each life."""

from __future__ import annotations

from random import Random
from typing import Final, Protocol

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.names import exact_channel, foreign_name
from tmqp_server.doors.zmtp.context import ZmtpContext
from tmqp_server.doors.zmtp.door import ZmtpDoor
from tmqp_server.doors.zmtp.message import QUEUE as QUEUE_ID
from tmqp_server.doors.zmtp.options import ZmtpLimits, ZmtpOptions
from tmqp_server.doors.zmtp.roles import SubscribingRole
from tmqp_server.doors.zmtp.session import ZmtpSession
from tmqp_server.engine.commands import CreateQueue
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue
from tmqp_server.engine.options import QueueChanges
from tmqp_sim.disk import Disk
from tmqp_sim.host import ZMTP
from tmqp_sim.network import Link
from tmqp_sim.operators import Operator
from tmqp_sim.plan import Plan
from tmqp_sim.side import Side
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation
from tmqp_sim.zmtp import (
    HEARTBEAT_S,
    PATIENCE_S,
    Asker,
    Publisher,
    Puller,
    Pusher,
    Subscriber,
    Worker,
    ZmtpSocket,
)
from tmqp_sim.zmtp_books import QUEUE, SERVICE, TOPIC, Item, ZmtpBooks

__all__ = ["ZmtpSide"]

_HANDSHAKE_S: Final = 3.0
#: How often the server tries to connect to sockets that listen.
_DIAL_EVERY_S: Final = 0.3
#: What a server that has was suspended may be late.
_SLACK_S: Final = 5.0
#: A fault behind which the disk may not have what it was given.
_UNSTEADY: Final = "disk-full"
_HALF_OPEN: Final = "half-open"


class _Run(Stage, Protocol):
    """One run, with its disk."""

    disk: Disk
    operator: Operator


class ZmtpSide(Side):
    """Sockets of ZeroMQ, and what happened to their messages."""

    host = ZMTP

    def __init__(self, simulation: _Run, plan: Plan) -> None:
        self._simulation = simulation
        self._world = simulation.world
        self._ids = self._world.child("zmtp ids")
        own = Random(f"{plan.seed}/zmtp side")
        self._mark = own.choice((2, 5, 1_000, 1_000))
        self._room = own.choice((0, 0, 3))
        kinds = {fault.kind for fault in plan.faults}
        steady = not plan.disk.fails and _UNSTEADY not in kinds
        #: Who asks for signs of life: the server, the sockets, or both.  Sockets alone are not
        #: enough for one that is half-open before it has said a word.
        choices = ((True, False), (True, True), (False, True))
        self._server_beats, beats = own.choice(choices[: 2 if _HALF_OPEN in kinds else 3])
        self.books = ZmtpBooks(
            self._world,
            durable=plan.zmtp_durable,
            mark=self._mark,
            steady=steady,
            calm=plan.quiet,
            asks=self._server_beats,
            room=own.choice((400, 2_000, 65_536)),
        )
        self.books.watches = simulation.watched
        self.books.drains = "restart" in kinds
        self._context: ZmtpContext | None = None
        self._dialled: dict[str, Link] = {}
        #: By connection, the last message that was due when nothing was on its way.
        self._arrived: dict[int, str] = {}
        restless = 0.0 if plan.quiet else own.choice((0.0, 0.1, 0.3))
        leaves = 0.0 if plan.quiet else own.choice((0.1, 0.3, 0.6))
        books = self.books
        self._pushers = [
            Pusher(simulation, f"zmtp-push-{n}", books, restless) for n in range(own.choice((1, 2)))
        ]
        self._pullers = [
            Puller(
                simulation, f"zmtp-pull-{n}", "PULL", books, leaves,
                own.choice((0.0, 0.3, 1.0)), beats=beats,
            )
            for n in range(own.choice((1, 2, 3)))
        ]  # fmt: skip
        self._subscribers = [
            Subscriber(
                simulation, f"zmtp-sub-{n}", books, restless,
                own.choice((0.0, 0.1, 1.0)), beats=beats,
            )
            for n in range(own.choice((1, 2, 3)))
        ]  # fmt: skip
        self._publisher = Publisher(
            simulation, "zmtp-pub", books, restless, self._is_news_wanted, beats=beats
        )
        self._askers = [
            Asker(
                simulation, f"zmtp-ask-{n}", own.choice(("REQ", "REQ", "DEALER")), books, restless,
                own.choice((b"", f"zmtp-ask-{n}".encode())), beats=beats,
            )
            for n in range(own.choice((1, 2)))
        ]  # fmt: skip
        self._workers = [
            Worker(
                simulation, f"zmtp-work-{n}", own.choice(("REP", "REP", "ROUTER")), books, restless,
                listens=own.random() < 0.3, beats=beats,
            )
            for n in range(own.choice((1, 2)))
        ]  # fmt: skip
        self._give(plan, own)
        self._begin(plan, own)

    def _begin(self, plan: Plan, own: Random) -> None:
        """Let all of them come; until somebody pulls, what is pushed waits."""
        late_s = own.choice((0.5, 0.5, plan.duration_s * 0.9))
        for socket in self.sockets:
            if isinstance(socket, Worker) and socket.listens:
                self._world.at(own.random() * 0.5, self._dial, socket)
            else:
                is_late = isinstance(socket, Puller) and not isinstance(socket, Subscriber)
                self._world.at(own.random() * (late_s if is_late else 0.5), socket.connect)

    def _give(self, plan: Plan, own: Random) -> None:
        most = own.choice((0, 30, 100, 100))
        moments = [own.random() * plan.duration_s * 0.9 for _ in range(3)]
        bursts = own.random() < 0.6
        for number in range(plan.zmtp):
            uid = f"z{number}"
            parts = [f"{uid} {'x' * own.randint(0, most)}".encode()]
            while own.random() < 0.4:
                parts.append(b"y" * own.choice((0, 1, most)))
            at = own.choice(moments) if bursts else own.random() * plan.duration_s * 0.9
            self._world.at(at, own.choice(self._pushers).give, Item(uid, parts))
        for number in range(plan.zmtp):
            at = own.random() * plan.duration_s * 0.9
            self._world.at(at, own.choice(self._askers).give, f"r{number}")

    @property
    def sockets(self) -> list[ZmtpSocket]:
        """All of them."""
        return [
            *self._pushers, *self._pullers, *self._subscribers, self._publisher, *self._askers,
            *self._workers,
        ]  # fmt: skip

    def _is_news_wanted(self) -> bool:
        return any(each.owes for each in self._subscribers)

    def watcher(self) -> ZmtpBooks:
        """What is owed to them."""
        return self.books

    # -- the server's side ----------------------------------------------------------------------

    def door(self, letters: Letters) -> ZmtpDoor:
        """The door of a life that begins."""
        options = ZmtpOptions(
            durable=self.books.durable,
            heartbeat_ms=round(HEARTBEAT_S * 1_000) if self._server_beats else 0,
        )
        limits = ZmtpLimits(
            high_water_mark=self._mark, handshake_s=_HANDSHAKE_S, heartbeat_timeout_s=PATIENCE_S
        )
        door = ZmtpDoor(self._new_id, limits, options, letters)
        letters.add(door)
        self._context = door.context
        return door

    def _new_id(self) -> str:
        return f"{self._ids.getrandbits(128):032x}"

    def began(self) -> None:
        """A life of the server has begun, with what the disk has."""
        found: list[tuple[bytes, Message]] = []
        for queue in self._simulation.broker.queues():
            if self.is_of(queue):
                name = foreign_name(queue.channel_name)
                found += [(name, each) for each in queue.regular.messages()]
        self.books.holds = self._simulation.broker.holds
        self.books.waits = self._waits
        self.books.began(found)
        context = self._context
        if self._room and context is not None:
            changes = QueueChanges(
                status=context.of_queue.status,
                request_acknowledge=True,
                durable=self.books.durable,
                put_back_limit=-1,
                message_limit=self._room,
            )
            operator = self._simulation.operator
            for name in (QUEUE, SERVICE):
                channel = exact_channel(name)
                operator.ask(CreateQueue(operator.number, None, channel, QUEUE_ID, changes))

    def _waits(self, number: int) -> int:
        server = self._simulation.server
        out = server.turn.outbound(number)
        session = server.hub._sessions.get(number)
        if out is None or session is None:
            return 0
        return out.bytes + session.outbound_bytes

    def _dial(self, worker: Worker) -> None:
        """Keep a connection to a socket that listens."""
        self._world.after(_DIAL_EVERY_S, self._dial, worker)
        server = self._simulation.server
        link = self._dialled.get(worker.name)
        if not server.up or server.asleep or (link is not None and link.number in server.sessions):
            return
        link = self._dialled[worker.name] = self._simulation.network.open()
        self._world.mark("ZeroMQ socket was connected to")
        worker.replace(link)
        server.accept(link)

    # -- the end --------------------------------------------------------------------------------

    def check_end(self) -> None:
        """Everything has come home.

        :raises Violation: when something is owed, or somebody has a session who is long gone.
        """
        self._check_dead()
        skipped = 0
        for queue in self._simulation.broker.queues():
            if foreign_name(queue.channel_name) == TOPIC:
                skipped = queue.counters.skipped + queue.counters.untracked
        living = [
            each.link.number
            for each in self._subscribers
            if each.usable and not each.link.dead and not each.link.gone
        ]
        uncounted: dict[int, int] = {}
        for number, session in self._simulation.server.hub._sessions.items():
            role = session._role if isinstance(session, ZmtpSession) else None
            if isinstance(role, SubscribingRole):
                uncounted[number] = role._missed
        self.books.check_end(uncounted, skipped, living)

    def _check_dead(self) -> None:
        """Nobody whose connection is half-open has a session for long, if somebody asks him for
        signs of life."""
        server = self._simulation.server
        silent = {each.name for each in self._pushers}
        for session in server.sessions.values():
            if not session.host.startswith(ZMTP) or not session.end.link.dead:
                continue
            name = session.host.removeprefix(ZMTP).partition(" ")[0]
            if not self._server_beats and name in silent:
                continue
            silent_s = self._world.now - session.received_at
            if silent_s - HEARTBEAT_S - PATIENCE_S - server.lateness_s > _SLACK_S:
                text = f"{session.host} is silent for {silent_s:.1f} s, and still there"
                raise Violation("zmtp", text)

    def is_of(self, queue: Queue) -> bool:
        """Whether a queue is one whose messages must be dealt with."""
        return foreign_name(queue.channel_name) in (QUEUE, SERVICE)

    def _behind(self, subscriber: Subscriber) -> int:
        """Bytes that are on their way to a socket: what has not come is not dropped yet (seed
        16666).

        Signs of life are nearly always on their way where the network is slow, to one socket or the
        other (seed 57228): once all that was sent has come, or nothing is on its way, there is
        nothing to wait for until more is sent.
        """
        if not subscriber.usable or subscriber.link.over or subscriber.link.dead:
            return 0
        number = subscriber.link.number
        out = self._simulation.server.turn.outbound(number)
        behind = subscriber.link.down.taken + (0 if out is None else out.bytes)
        last = self.books.last_due(number)
        if not behind or not last:
            self._arrived[number] = last
        return 0 if self._arrived.get(number) == last else behind

    def owed(self) -> dict[str, int]:
        """What is left, by who has it."""
        left: dict[str, int] = {}
        left.update({each.name: each.owes for each in self._pushers})
        left.update({each.name: each.owes + self._behind(each) for each in self._subscribers})
        left.update({each.name: each.owes for each in self._askers})
        for socket in self.sockets:
            there = socket.usable and not socket.link.dead
            left[f"{socket.name}, waiting to be let in,"] = int(not there)
        return left
