"""What a broker's memory is filled with, a case for each kind of command: see ``filling.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tests.tmqp_server.engine.filling_parts import (
    DURABLE,
    ME,
    PULLED,
    YEARS_MS,
    frame,
    name,
    push,
    queue,
)
from tests.tmqp_server.engine.letters import Letter
from tmqp.constants import STATUS_PULL
from tmqp_server.engine import commands as c
from tmqp_server.engine import events
from tmqp_server.engine.commands import (
    BY_NAME,
    BY_TYPE,
    AbortTransaction,
    AcknowledgeRun,
    AddBinding,
    CommitCursor,
    CommitGroup,
    CommitTransaction,
    CreateRouter,
    Decline,
    DescribeChannel,
    DescribeQueue,
    DescribeServer,
    DropGroup,
    GroupPlace,
    ListBindings,
    ListChannels,
    ListClients,
    ListConsumers,
    ListCursors,
    ListGroups,
    ListNodes,
    ListOffsets,
    ListQueues,
    ListRouters,
    ListTransactions,
    MessageSet,
    OpenCursor,
    OpenGroup,
    OpenTransaction,
    PassAnswer,
    Publish,
    PushRun,
    PushTransaction,
    ReadIndex,
    ReadRange,
    RemoveBinding,
    RemoveCursor,
    RemoveRouter,
    ResetGroup,
    RunNotes,
    RunWire,
    SendCustom,
    SendDirect,
    SetRouterEnabled,
    SplitRange,
    SubscribeEvent,
)
from tmqp_server.engine.options import (
    ASKS_NOTHING,
    ASKS_RESPONSE,
    TO_QUEUE,
    TO_TAG,
    BindingOptions,
    ChannelChanges,
    QueueChanges,
)

__all__ = ["CASES", "Case", "Some", "kinds"]

Some = c.Command | Iterable[c.Command]
#: What is prepared, and the command, or commands, of each number.
Case = tuple[Sequence[c.Command], Callable[[int], Some]]


def channels(count: int) -> list[c.Command]:
    """Create so many channels."""
    return [c.CreateChannel(ME, "r", name(number)) for number in range(count)]


def feeding(targets: Iterable[int]) -> list[c.Command]:
    """Create a queue that feeds others."""
    commands = [queue(1)]
    for queue_id in targets:
        commands.append(queue(queue_id, PULLED))
        commands.append(c.AddFeed(ME, "r", "ch", 1, "ch", queue_id))
    return commands


class _Wire(RunWire):
    """A run of pushes or answers."""

    def __init__(self, first: int) -> None:
        self.frames = [frame(first + number) for number in range(20)]

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        sizes = [len(each.raw) for each in self.frames]
        return [each.message_id for each in self.frames], sizes, list(self.frames)

    def pushes(self, run: PushRun) -> list[c.Push]:
        return [
            c.Push(run.session, each.message_id, "ch", 1, False, False, len(each.raw), each)
            for each in self.frames
        ]

    def acknowledges(self, run: AcknowledgeRun) -> list[c.Acknowledge]:
        return [c.Acknowledge(run.session, each, "ch", 1) for each in run.message_ids]


def run(number: int) -> PushRun:
    """Twenty pushes at once."""
    wire = _Wire(number * 20)
    _, sizes, _ = wire.contents()
    return PushRun(ME, "ch", 1, False, False, 20, sum(sizes), max(sizes), wire, RunNotes())


def gone_producer(number: int) -> list[c.Command]:
    """Each message has a producer of its own, with long names, that goes at once."""
    session = number + 10
    who = name(number, 30)
    return [
        c.Connect(session, None, who, "N" * 255, "T" * 255, kept={"k" * 99: "v" * 99}),
        push(number, 1, session),
        c.Disconnect(session),
    ]


def gone_consumer(number: int) -> list[c.Command]:
    """Each message is in the hands of a consumer of its own, that goes at once."""
    session = number + 10
    who = name(number, 30)
    return [
        c.Connect(session, None, who, "N" * 255, "T" * 255, kept={"k" * 99: "v" * 99}),
        c.Join(session, "r", "ch"),
        push(number),
        c.Disconnect(session),
    ]


def broadcast(consumers: int) -> list[c.Command]:
    """So many consumers that answer nothing."""
    made: list[c.Command] = [queue()]
    for number in range(consumers):
        made += [
            c.Connect(number + 10, None, name(number), None, "many"),
            c.Join(number + 10, "r", "ch"),
        ]
    return made


def binding(number: int, kind: int = TO_QUEUE, target: str = "") -> AddBinding:
    """One more binding."""
    options = BindingOptions(name(number), kind, target or name(number), 1, 0, ASKS_NOTHING, 0)
    return AddBinding(ME, "r", "router", options)


def removed_queue(number: int) -> list[c.Command]:
    """A queue with a message that expires in years is removed again."""
    return [
        queue(1, QueueChanges(status=STATUS_PULL, tag="tag")),
        push(number, ttl_ms=YEARS_MS - number * 1_000),
        Publish(ME, "r", f"r{number % 500}", 10, Letter(name(number))),
        c.RemoveQueue(ME, "r", "ch", 1),
    ]


def tagged_routers() -> list[c.Command]:
    """Many routers that send to queues of a tag."""
    made: list[c.Command] = [c.CreateChannel(ME, "r", "ch")]
    for number in range(500):
        made.append(CreateRouter(ME, "r", f"r{number}", 0))
        options = BindingOptions(
            "b", TO_TAG, f"t*{number % 2}" if number % 3 else "tag", 1, 0, 0, 0
        )
        made.append(AddBinding(ME, "r", f"r{number}", options))
    return made


def message_set(number: int) -> MessageSet:
    """One message of a transaction."""
    data = bytes(100) + number.to_bytes(8, "big")
    return MessageSet("", "ch", 1, data, 1, 0, 100, 100, None)


_ROUTER: Final = [CreateRouter(ME, "r", "router", 0)]
_OPEN: Final = [queue(1, DURABLE), OpenTransaction(ME, "r", "app", 1)]
_CURSORS: Final = [
    queue(1, DURABLE),
    *[OpenCursor(ME, "r", "ch", 1, name(n), False) for n in range(99)],
]
_WAITING: Final = [queue(1, PULLED), c.Join(2, "r", "ch"), c.Block(2)]
_PLACES: Final = [GroupPlace("ch", 1)]

#: By the command and what is special about it.
CASES: Final[dict[str, Case]] = {
    "Connect": ((), lambda n: c.Connect(n + 10, None, name(n, 30), name(n), "type")),
    "Connect: long names": (
        (),
        lambda n: c.Connect(n + 10, None, name(n, 255), "N" + name(n, 254), "T" + name(n, 254)),
    ),
    "Connect: properties": (
        (),
        lambda n: c.Connect(
            n + 10, None, name(n), kept={f"{n}k{k}": f"{n}{'v' * 100}" for k in range(30)}
        ),
    ),
    "Disconnect": ((), lambda n: [c.Connect(n + 10, None, name(n)), c.Disconnect(n + 10)]),
    "OpenBranch": ((), lambda n: c.OpenBranch(ME, "r", c.branch_number(ME, n + 1))),
    "CloseBranch": (
        (),
        lambda n: [
            c.OpenBranch(ME, "r", c.branch_number(ME, n + 1)),
            c.CloseBranch(ME, "r", c.branch_number(ME, n + 1)),
        ],
    ),
    "Block": ((), lambda _: c.Block(ME)),
    "Unblock": ((), lambda _: c.Unblock(ME)),
    "CreateChannel": ((), lambda n: c.CreateChannel(ME, "r", name(n))),
    "CreateChannel: long names": (
        (),
        lambda n: c.CreateChannel(ME, "r", "\U0001f600" * 4 + name(n, 200)),
    ),
    "CreateChannel: options": (
        (),
        lambda n: c.CreateChannel(
            ME,
            "r",
            name(n),
            ChannelChanges(
                allowed_queues=tuple(range(1_000, 2_000)), queue=QueueChanges(tag=name(n, 2_000))
            ),
        ),
    ),
    "RemoveChannel": (
        (),
        lambda n: [queue(), push(n, ttl_ms=YEARS_MS), c.RemoveChannel(ME, "r", "ch")],
    ),
    "RemoveChannels": (
        (),
        lambda n: [queue(), push(n, ttl_ms=YEARS_MS), c.RemoveChannels(ME, "r", ["ch", name(n)])],
    ),
    "Join": ((), lambda n: c.Join(ME, "r", name(n))),
    "Join: of one channel": (
        (),
        lambda n: [c.Connect(n + 10, None, name(n)), c.Join(n + 10, "r", "ch"), push(n, 2)],
    ),
    "Leave": ((), lambda _: [c.Join(ME, "r", "ch"), c.Leave(ME, "r", "ch")]),
    "Grant": ((c.Join(ME, "r", "ch"),), lambda n: c.Grant(ME, "ch", n)),
    "SetTerms": (
        (c.Join(ME, "r", "ch"),),
        lambda n: c.SetTerms(ME, "r", "ch", c.Terms(n, 0, n % 3, n % 9)),
    ),
    "Join: with terms": (
        (queue(), c.Join(2, "r", "ch", -1, None, c.Terms(-1, 10**6, 1))),
        push,
    ),
    "Extend": (
        (queue(), c.Join(2, "r", "ch")),
        lambda n: [push(n), c.Extend(2, "r", f"{n:032x}", "ch", 1, 10**6 + n)],
    ),
    "CreateQueue": ((), queue),
    "CreateQueue: channels": ((), lambda n: queue(1, channel=name(n))),
    "CreateQueue: options": (
        (),
        lambda n: queue(n, QueueChanges(tag=name(n, 500), dead_letter=(name(n, 200), n))),
    ),
    "Miss": ((queue(),), lambda n: c.Miss(ME, "ch", 1, n)),
    "Decline": ((), lambda n: Decline(ME, frame(n), 400)),
    "UpdateChannel": (
        channels(300),
        lambda n: c.UpdateChannel(
            ME, "r", name(n % 300), ChannelChanges(allowed_queues=tuple(range(n % 9, 65_000)))
        ),
    ),
    "UpdateQueue": (
        [queue(n) for n in range(300)],
        lambda n: c.UpdateQueue(ME, "r", "ch", n % 300, QueueChanges(tag=name(n, 65_000))),
    ),
    "RemoveQueue": (tagged_routers(), removed_queue),
    "Push: deferred": (
        (queue(1, PULLED),),
        lambda n: push(n, delay_ms=YEARS_MS),
    ),
    "CancelMessage": (
        (queue(1, PULLED),),
        lambda n: [
            push(n, delay_ms=YEARS_MS),
            c.CancelMessage(ME, "r", "ch", 1, f"{n:032x}"),
        ],
    ),
    "AddFeed": (
        [queue(n) for n in range(300)],
        lambda n: c.AddFeed(
            ME, "r", "ch", n // 150 % 150, "ch", 150 + n % 150, None, "x", name(n, 200)
        ),
    ),
    "Push: into feeds": (feeding(range(2, 50)), push),
    "RemoveFeed": (
        [queue(1), queue(2)],
        lambda n: [
            c.AddFeed(ME, "r", "ch", 1, "ch", 2, None, "x", name(n)),
            c.RemoveFeed(ME, "r", "ch", 1, "ch", 2),
        ],
    ),
    "ListFeeds": (
        feeding(range(2, 50)),
        lambda n: c.ListFeeds(ME, n, "ch"),
    ),
    "MakeCounter": (
        (),
        lambda n: c.MakeCounter(ME, "r", "s", name(n).encode(), 2**60 + n, YEARS_MS),
    ),
    "MakeCounter: spaces": (
        (),
        lambda n: c.MakeCounter(ME, "r", name(n % 1_000, 200), name(n).encode(), n, YEARS_MS + n),
    ),
    "PutValue": (
        (),
        lambda n: c.PutValue(ME, "r", "s", name(n, 200).encode(), bytes(n % 900), YEARS_MS),
    ),
    "PutValue: again": (
        (),
        lambda n: c.PutValue(ME, "r", "s", b"key", bytes(n % 60_000), YEARS_MS + n),
    ),
    "ReadCell": (
        (c.PutValue(ME, "r", "s", b"key", b"value", YEARS_MS),),
        lambda n: c.ReadCell(ME, n, "s", b"key"),
    ),
    "ChangeCell": (
        (),
        lambda n: c.ChangeCell(
            ME, "r", "s", name(n).encode(), c.CELL_COUNT, c.ADD, n, initial=n, ttl=YEARS_MS
        ),
    ),
    "ChangeCell: times": (
        (c.MakeCounter(ME, "r", "s", b"key", 0, YEARS_MS),),
        lambda n: c.ChangeCell(ME, "r", "s", b"key", c.CELL_TTL, n % 3, n + 1),
    ),
    "DropCell": (
        (),
        lambda n: [
            c.MakeCounter(ME, "r", "s", name(n).encode(), n, YEARS_MS + 1_000 * n),
            c.DropCell(ME, "r", "s", name(n).encode()),
        ],
    ),
    "ListCells": (
        [c.MakeCounter(ME, "r", "s", name(n).encode(), n, YEARS_MS) for n in range(1_500)],
        lambda n: c.ListCells(ME, n, "s", n % 1_500),
    ),
    "DescribeCell": (
        (c.MakeCounter(ME, "r", "s", b"key", 0, YEARS_MS),),
        lambda n: c.DescribeCell(ME, n, "s", b"key"),
    ),
    "MoveMessage": (
        (queue(1, PULLED), queue(2, PULLED)),
        lambda n: [push(n), c.MoveMessage(ME, "r", "ch", 1, f"{n:032x}", push(n, 2))],
    ),
    "RemoveMessage": (
        (queue(1, PULLED),),
        lambda n: [push(n), c.RemoveMessage(ME, "r", "ch", 1, f"{n:032x}")],
    ),
    "Browse": (
        (queue(1, PULLED), *[push(number) for number in range(2_000)]),
        lambda n: c.Browse(ME, "r", "ch", 1, n % 2_000, 100, 0, 7, ""),
    ),
    "ClearMessages": (
        (queue(1, PULLED),),
        lambda n: [push(n, ttl_ms=YEARS_MS), c.ClearMessages(ME, "r", "ch", 1, True, True)],
    ),
    "Batch": (
        (queue(1, PULLED),),
        lambda n: c.Batch(ME, "r", [push(n * 9 + k) for k in range(9)]),
    ),
    "Pull": (
        _WAITING,
        lambda n: [push(n), c.Pull(2, frame(n, 500), "ch", 1, 1, size=len(frame(n, 500).raw))],
    ),
    "Push": ((queue(1, PULLED),), push),
    "Push: many queues": ((), lambda n: push(n, n)),
    "Push: producers that have gone": ((queue(1, PULLED),), gone_producer),
    "Push: consumers that have gone": ((queue(),), gone_consumer),
    "Push: a consumer that answers nothing": (broadcast(1), push),
    "Push: many consumers that answer nothing": (broadcast(200), push),
    "Push: ends sooner and sooner": (
        (queue(),),
        lambda n: [
            push(n, ttl_ms=YEARS_MS - n * 1_000),
            c.Join(2, "r", "ch"),
            c.Acknowledge(2, f"{n:032x}", "ch", 1),
            c.Leave(2, "r", "ch"),
        ],
    ),
    "PushRun": ((queue(1, PULLED),), run),
    "PushRun: in flight": ((queue(), c.Join(2, "r", "ch")), run),
    "Acknowledge": (
        (queue(), c.Join(2, "r", "ch")),
        lambda n: [push(n), c.Acknowledge(2, f"{n:032x}", "ch", 1)],
    ),
    "Release": (
        (queue(), c.Join(2, "r", "ch")),
        lambda n: [push(n), c.Release(2, "r", f"{n:032x}", "ch", 1)],
    ),
    "Release: for later": (
        (queue(), c.Join(2, "r", "ch")),
        lambda n: [push(n), c.Release(2, "r", f"{n:032x}", "ch", 1, 2, 10**9)],
    ),
    "Acknowledge: of nothing": ((queue(),), lambda n: c.Acknowledge(2, f"{n:032x}", "ch", 1)),
    "AcknowledgeRun": (
        (queue(), c.Join(2, "r", "ch")),
        lambda n: [
            run(n),
            AcknowledgeRun(2, "ch", 1, _Wire(n * 20).contents()[0], _Wire(n * 20), RunNotes()),
        ],
    ),
    "DescribeChannel": ((queue(),), lambda _: DescribeChannel(ME, "r", "ch")),
    "ListChannels": ((queue(),), lambda n: ListChannels(ME, "r", name(n))),
    "ListConsumers": ((queue(),), lambda _: ListConsumers(ME, "r", "ch")),
    "DescribeQueue": ((queue(),), lambda _: DescribeQueue(ME, "r", "ch", 1)),
    "ListQueues": ((queue(),), lambda _: ListQueues(ME, "r", "ch")),
    "ListClients": ((), lambda n: ListClients(ME, "r", name(n))),
    "SurveyChannels": (channels(50), lambda _: c.SurveyChannels(ME, "r")),
    "SurveyQueues": (channels(50), lambda _: c.SurveyQueues(ME, "r")),
    "SurveyClients": ((), lambda _: c.SurveyClients(ME, "r")),
    "DescribeClient": ((), lambda _: c.DescribeClient(ME, "r", "2")),
    "DisconnectClient": ((), lambda n: c.DisconnectClient(ME, "r", name(n))),
    "Configure": ((), lambda _: c.Configure(ME, "r")),
    "SeeMetrics": ((), lambda _: c.SeeMetrics(ME, "r")),
    "Manage": ((), lambda _: c.Manage(ME, "r", "manage-server", "backup")),
    "SeeAudit": ((), lambda _: c.SeeAudit(ME, "r")),
    "SeeServer": ((), lambda _: c.SeeServer(ME, "r")),
    "AskRight": ((), lambda _: c.AskRight(ME, "r", "push", "c")),
    "Drain": ((), lambda _: c.Drain(ME, "r", True)),
    "DescribeServer": ((), lambda _: DescribeServer(ME, "r")),
    "ListNodes": ((), lambda _: ListNodes(ME, "r")),
    "CreateRouter": ((), lambda n: CreateRouter(ME, "r", name(n), 0)),
    "RemoveRouter": (
        (),
        lambda n: [*_ROUTER, binding(n), RemoveRouter(ME, "r", "router")],
    ),
    "ListRouters": (_ROUTER, lambda _: ListRouters(ME, "r")),
    "AddBinding": (
        (),
        lambda n: [
            CreateRouter(ME, "r", name(n // 50), 0),
            AddBinding(
                ME,
                "r",
                name(n // 50),
                BindingOptions(name(n), TO_QUEUE, name(n, 200), 1, 0, ASKS_NOTHING, 0),
            ),
        ],
    ),
    "RemoveBinding": (
        _ROUTER,
        lambda n: [binding(n), RemoveBinding(ME, "r", "router", name(n))],
    ),
    "ListBindings": (_ROUTER, lambda _: ListBindings(ME, "r", "router")),
    "SetRouterEnabled": (_ROUTER, lambda n: SetRouterEnabled(ME, "r", "router", bool(n % 2))),
    "Publish": (
        (*_ROUTER, queue(1, PULLED), binding(0, TO_QUEUE, "ch")),
        lambda n: Publish(ME, "publish", "router", 10, Letter(name(n))),
    ),
    "SendDirect": ((), lambda n: SendDirect(ME, 0, name(n), False, 10, frame(n))),
    "SendDirect: that asks": (
        channels(0),
        lambda n: SendDirect(
            ME, BY_NAME, "client", False, 10, frame(n), message_id=f"{n:032x}", asks=ASKS_RESPONSE
        ),
    ),
    "SendDirect: that asks many": (
        broadcast(300),
        lambda n: SendDirect(
            ME, BY_TYPE, "many", False, 10, frame(n), message_id=f"{n:032x}", asks=ASKS_RESPONSE
        ),
    ),
    "PassAnswer": ((), lambda n: PassAnswer(ME, name(n), 10, frame(n), name(n), ASKS_RESPONSE)),
    "SendCustom": ((), lambda n: SendCustom(ME, frame(n))),
    "SubscribeEvent": (
        channels(3_000),
        lambda n: SubscribeEvent(ME, "r", 1 << (2 + n // 3_000), name(n % 3_000)),
    ),
    "SubscribeEvent: one event": (
        (queue(),),
        lambda n: [
            c.Connect(n + 10, None, name(n)),
            SubscribeEvent(n + 10, "r", events.QUEUE_CREATED, "ch"),
        ],
    ),
    "ListOffsets": (
        (queue(1, DURABLE),),
        lambda n: ListOffsets(ME, "r", name(n, 500)[:1] + "*" * 400, wait_ms=60_000),
    ),
    "ReadRange": ((queue(1, DURABLE),), lambda _: ReadRange(ME, "r", "no", 1)),
    "ReadIndex": ((queue(1, DURABLE),), lambda _: ReadIndex(ME, "r", "no", 1)),
    "SplitRange": ((queue(1, DURABLE),), lambda _: SplitRange(ME, "r", "no", 1)),
    "OpenCursor": (
        (queue(1, DURABLE),),
        lambda n: OpenCursor(ME, "r", "ch", 1, name(n, 200), False),
    ),
    "CommitCursor": (_CURSORS, lambda n: CommitCursor(ME, "r", "ch", 1, name(n % 99), 0)),
    "ListCursors": (_CURSORS, lambda _: ListCursors(ME, "r", "ch", 1)),
    "RemoveCursor": (
        (queue(1, DURABLE),),
        lambda n: [
            OpenCursor(ME, "r", "ch", 1, name(n), False),
            RemoveCursor(ME, "r", "ch", 1, name(n)),
        ],
    ),
    "OpenTransaction": ((), lambda n: OpenTransaction(ME, "r", name(n), n)),
    "PushTransaction": (
        # One that is refused releases what its transaction holds: that is a small part.
        (*_OPEN, *[OpenTransaction(ME, "r", "app", 1) for _ in range(31)]),
        lambda n: PushTransaction(ME, "r", "app", 1 + n % 32, [message_set(n)]),
    ),
    "CommitTransaction": (
        (queue(1, DURABLE),),
        lambda n: [
            OpenTransaction(ME, "r", name(n, 100), 1),
            CommitTransaction(ME, "r", name(n, 100), 1, [n + 1], [0]),
        ],
    ),
    "AbortTransaction": (
        (),
        lambda n: [
            OpenTransaction(ME, "r", name(n), 1),
            AbortTransaction(ME, "r", name(n), n + 1),
        ],
    ),
    "ListTransactions": (_OPEN, lambda n: ListTransactions(ME, "r", name(n))),
    "OpenGroup": (
        [queue(n, DURABLE) for n in range(10)],
        lambda n: OpenGroup(ME, "r", name(n, 30), "ch", None, False),
    ),
    "CommitGroup": (_CURSORS, lambda n: CommitGroup(ME, "r", name(n % 99), _PLACES)),
    "ListGroups": ((queue(1, DURABLE),), lambda n: ListGroups(ME, "r", "no", cursor=name(n))),
    "ResetGroup": (_CURSORS, lambda n: ResetGroup(ME, "r", name(n % 99), "no", None, None)),
    "DropGroup": (
        (queue(1, DURABLE),),
        lambda n: [
            OpenGroup(ME, "r", name(n), "ch", None, False),
            DropGroup(ME, "r", name(n), "ch", None),
        ],
    ),
}


def kinds(case: str) -> str:
    """The command that a case is about."""
    return case.partition(":")[0]
