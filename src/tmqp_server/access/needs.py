"""The table of needs: which command needs which right.

The gate refuses commands that are not in the table: so a new command of the engine is refused to
everybody until its right is listed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from tmqp.constants import (
    TARGET_NAME_PREFIX,
    TARGET_TYPE_PREFIX,
)
from tmqp_server.access.rights import (
    ANSWER,
    BROWSE,
    CANCEL,
    CELLS_READ,
    CELLS_WRITE,
    CLEAR_MESSAGES,
    CONFIGURE,
    CREATE_CHANNEL,
    CREATE_QUEUE,
    CUSTOM,
    DIRECT,
    FEED,
    JOIN,
    MANAGE_CLIENTS,
    MANAGE_ROUTERS,
    MANAGE_SERVER,
    PUBLISH,
    PULL,
    PUSH,
    REMOVE_CHANNEL,
    REMOVE_QUEUE,
    SEE_AUDIT,
    SEE_CHANNEL,
    SEE_CLIENTS,
    SEE_CONSUMERS,
    SEE_METRICS,
    SEE_NODES,
    SEE_ROUTERS,
    SEE_SERVER,
    SUBSCRIBE,
    TRANSACT,
    UPDATE_CHANNEL,
    UPDATE_QUEUE,
)
from tmqp_server.engine.commands import (
    BY_NAME,
    BY_TYPE,
    AbortTransaction,
    Acknowledge,
    AcknowledgeRun,
    AddBinding,
    AddFeed,
    AskRight,
    Block,
    Browse,
    CancelMessage,
    ChangeCell,
    ClearMessages,
    CloseBranch,
    Command,
    CommitCursor,
    CommitGroup,
    CommitTransaction,
    Configure,
    CreateChannel,
    CreateQueue,
    CreateRouter,
    Decline,
    DescribeCell,
    DescribeChannel,
    DescribeClient,
    DescribeQueue,
    DescribeServer,
    Disconnect,
    DisconnectClient,
    Drain,
    DropCell,
    DropGroup,
    Extend,
    Grant,
    GroupCommand,
    Join,
    Leave,
    ListBindings,
    ListCells,
    ListChannels,
    ListClients,
    ListConsumers,
    ListCursors,
    ListFeeds,
    ListGroups,
    ListNodes,
    ListOffsets,
    ListQueues,
    ListRouters,
    ListTransactions,
    MakeCounter,
    Manage,
    Miss,
    MoveMessage,
    OpenBranch,
    OpenCursor,
    OpenGroup,
    OpenTransaction,
    PassAnswer,
    PassAnswerRun,
    Publish,
    Pull,
    Push,
    PushRun,
    PushTransaction,
    PutValue,
    ReadCell,
    ReadIndex,
    ReadRange,
    Release,
    RemoveBinding,
    RemoveChannel,
    RemoveChannels,
    RemoveCursor,
    RemoveFeed,
    RemoveMessage,
    RemoveQueue,
    RemoveRouter,
    ResetGroup,
    SeeAudit,
    SeeMetrics,
    SeeServer,
    SendCustom,
    SendDirect,
    SendDirectRun,
    SetRouterEnabled,
    SetTerms,
    SplitRange,
    SubscribeEvent,
    SurveyChannels,
    SurveyClients,
    SurveyQueues,
    Unblock,
    UpdateChannel,
    UpdateQueue,
    targets_of,
)

__all__ = [
    "FREE",
    "NEEDS",
    "NO_QUEUE",
    "OF_CHANNELS",
    "SEVERAL",
    "Need",
    "all_needs",
    "need_of_feed",
    "need_of_message_set",
    "need_of_place",
    "needed",
]

#: Stands for no queue in particular.
NO_QUEUE: Final = -1

#: A right, the name of what it is about, a queue or NO_QUEUE, and one bit of ``events.py`` or 0.
Need: TypeAlias = tuple[str, str, int, int]


def needed(command: Command) -> Need | None:
    """The right that a client needs for its command.

    The right is empty if every client may give the command; None if the table does not have it.  A
    batch needs what its parts need, and connecting is a question of its own; options of queues may
    need more (``all_needs``).
    """
    if type(command) in FREE:
        return _NOTHING
    need = NEEDS.get(type(command))
    return None if need is None else need(command)


_NOTHING: Final[Need] = ("", "", NO_QUEUE, 0)

#: Needs no right: these give up what the client has, or are the server's own words about it.
FREE: Final[frozenset[type[Command]]] = frozenset(
    {
        Disconnect,
        Block,
        Unblock,
        OpenBranch,
        CloseBranch,
        Leave,
        Grant,
        SetTerms,
        Release,
        Extend,
        Miss,
        Decline,
    }
)

#: What a channel's own authenticator is asked about.  Not about creating it: whoever creates a
#: channel chooses its authenticator, so that is for the server-wide one to allow.  Changing it may
#: replace the authenticator, so that is for the one which it has.
OF_CHANNELS: Final = frozenset(
    {
        BROWSE,
        CANCEL,
        CLEAR_MESSAGES,
        CREATE_QUEUE,
        FEED,
        JOIN,
        PULL,
        PUSH,
        REMOVE_CHANNEL,
        REMOVE_QUEUE,
        SEE_CHANNEL,
        SEE_CONSUMERS,
        SUBSCRIBE,
        UPDATE_CHANNEL,
        UPDATE_QUEUE,
    }
)

_Needing: TypeAlias = Callable[[Command], Need]


def _on_channel(right: str) -> _Needing:
    def need(command: Command) -> Need:
        channel: str = getattr(command, "channel")  # noqa: B009 - one of several classes
        return (right, channel, NO_QUEUE, 0)

    return need


def _on_queue(right: str) -> _Needing:
    def need(command: Command) -> Need:
        channel: str = getattr(command, "channel")  # noqa: B009 - one of several classes
        queue_id: int = getattr(command, "queue_id")  # noqa: B009
        return (right, channel, queue_id, 0)

    return need


def _on_router(right: str) -> _Needing:
    def need(command: Command) -> Need:
        router: str = getattr(command, "router")  # noqa: B009 - one of several classes
        return (right, router, NO_QUEUE, 0)

    return need


def _on_space(right: str) -> _Needing:
    def need(command: Command) -> Need:
        space: str = getattr(command, "space")  # noqa: B009 - one of several classes
        return (right, space, NO_QUEUE, 0)

    return need


def _on_everything(right: str) -> _Needing:
    def need(_command: Command) -> Need:
        return (right, "", NO_QUEUE, 0)

    return need


def _asked(command: Command) -> Need:
    assert isinstance(command, AskRight)
    return (command.right, command.subject, command.queue_id, 0)


def _managed(command: Command) -> Need:
    assert isinstance(command, Manage)
    return (command.right, "", NO_QUEUE, 0)


def _on_application(command: Command) -> Need:
    application: str = getattr(command, "application")  # noqa: B009 - one of several classes
    return (TRANSACT, application, NO_QUEUE, 0)


def _direct(command: Command) -> Need:
    """The target as the client writes it (F113)."""
    assert isinstance(command, (SendDirect, SendDirectRun))
    prefix = ""
    if command.by == BY_NAME:
        prefix = TARGET_NAME_PREFIX
    elif command.by == BY_TYPE:
        prefix = TARGET_TYPE_PREFIX
    return (DIRECT, prefix + command.who, NO_QUEUE, 0)


def _remove_channels(command: Command) -> Need:
    """Each channel needs the right; return the need of the first one."""
    assert isinstance(command, RemoveChannels)
    return all_needs(command)[0]


def _pass_answer(command: Command) -> Need:
    assert isinstance(command, (PassAnswer, PassAnswerRun))
    return (ANSWER, command.client_id, NO_QUEUE, 0)


def _acknowledge(command: Command) -> Need:
    assert isinstance(command, (Acknowledge, AcknowledgeRun))
    return (ANSWER, command.channel, NO_QUEUE, 0)


def _group(command: Command) -> Need:
    """Each queue needs the right; return the need of the first one."""
    assert isinstance(command, GroupCommand)
    return need_of_place(command, 0) if command.places else _NOTHING


def _subscribe(command: Command) -> Need:
    """Unsubscribing is always allowed."""
    assert isinstance(command, SubscribeEvent)
    if not command.wanted:
        return _NOTHING
    queue_id = NO_QUEUE if command.queue_id is None else command.queue_id
    return (SUBSCRIBE, command.channel, queue_id, command.event)


NEEDS: Final[dict[type[Command], _Needing]] = {
    AbortTransaction: _on_application,
    Acknowledge: _acknowledge,
    AcknowledgeRun: _acknowledge,
    AddBinding: _on_router(MANAGE_ROUTERS),
    AddFeed: _on_queue(FEED),
    Browse: _on_queue(BROWSE),
    CancelMessage: _on_queue(CANCEL),
    ChangeCell: _on_space(CELLS_WRITE),
    ClearMessages: _on_queue(CLEAR_MESSAGES),
    CommitCursor: _on_queue(PULL),
    CommitTransaction: _on_application,
    CommitGroup: _group,
    AskRight: _asked,
    Configure: _on_everything(CONFIGURE),
    CreateChannel: _on_channel(CREATE_CHANNEL),
    CreateQueue: _on_queue(CREATE_QUEUE),
    CreateRouter: _on_router(MANAGE_ROUTERS),
    DescribeCell: _on_space(CELLS_READ),
    DescribeChannel: _on_channel(SEE_CHANNEL),
    DescribeClient: _on_everything(SEE_CLIENTS),
    DescribeQueue: _on_queue(SEE_CHANNEL),
    DescribeServer: _on_everything(SEE_NODES),
    DisconnectClient: _on_everything(MANAGE_CLIENTS),
    Drain: _on_everything(MANAGE_SERVER),
    DropCell: _on_space(CELLS_WRITE),
    DropGroup: _group,
    Join: _on_channel(JOIN),
    ListBindings: _on_router(SEE_ROUTERS),
    ListCells: _on_space(CELLS_READ),
    ListChannels: _on_everything(SEE_CHANNEL),
    ListClients: _on_everything(SEE_CLIENTS),
    ListConsumers: _on_channel(SEE_CONSUMERS),
    ListCursors: _on_queue(SEE_CHANNEL),
    ListFeeds: _on_channel(SEE_CHANNEL),
    ListGroups: _on_everything(SEE_CHANNEL),
    ListNodes: _on_everything(SEE_NODES),
    ListOffsets: _on_everything(SEE_CHANNEL),
    ListQueues: _on_channel(SEE_CHANNEL),
    ListRouters: _on_everything(SEE_ROUTERS),
    ListTransactions: _on_everything(TRANSACT),
    Manage: _managed,
    MakeCounter: _on_space(CELLS_WRITE),
    OpenCursor: _on_queue(PULL),
    OpenGroup: _group,
    OpenTransaction: _on_application,
    PassAnswer: _pass_answer,
    PassAnswerRun: _pass_answer,
    Publish: _on_router(PUBLISH),
    Pull: _on_queue(PULL),
    Push: _on_queue(PUSH),
    PushRun: _on_queue(PUSH),
    PushTransaction: _on_application,
    PutValue: _on_space(CELLS_WRITE),
    ReadCell: _on_space(CELLS_READ),
    ReadIndex: _on_queue(PULL),
    ReadRange: _on_queue(PULL),
    RemoveBinding: _on_router(MANAGE_ROUTERS),
    RemoveChannel: _on_channel(REMOVE_CHANNEL),
    RemoveChannels: _remove_channels,
    RemoveCursor: _on_queue(PULL),
    RemoveFeed: _on_queue(FEED),
    RemoveMessage: _on_queue(CLEAR_MESSAGES),
    MoveMessage: _on_queue(CLEAR_MESSAGES),
    RemoveQueue: _on_queue(REMOVE_QUEUE),
    RemoveRouter: _on_router(MANAGE_ROUTERS),
    ResetGroup: _group,
    SeeAudit: _on_everything(SEE_AUDIT),
    SeeMetrics: _on_everything(SEE_METRICS),
    SeeServer: _on_everything(SEE_SERVER),
    SetRouterEnabled: _on_router(MANAGE_ROUTERS),
    SendCustom: _on_everything(CUSTOM),
    SendDirect: _direct,
    SendDirectRun: _direct,
    SplitRange: _on_queue(PULL),
    SubscribeEvent: _subscribe,
    SurveyChannels: _on_everything(SEE_CHANNEL),
    SurveyClients: _on_everything(SEE_CLIENTS),
    SurveyQueues: _on_everything(SEE_CHANNEL),
    UpdateChannel: _on_channel(UPDATE_CHANNEL),
    UpdateQueue: _on_queue(UPDATE_QUEUE),
}


def need_of_message_set(command: PushTransaction, place: int) -> Need:
    """What a push into a transaction needs at one place: first the transaction, then the message
    sets.
    """
    if place == 0:
        return (TRANSACT, command.application, NO_QUEUE, 0)
    message_set = command.message_sets[place - 1]
    return (PUSH, message_set.channel, message_set.queue_id, 0)


#: Commands that need several rights: those that say which options channels and queues have, the
#: removal of several channels, and the move of a message.
SEVERAL: Final = (
    CreateChannel,
    CreateQueue,
    MoveMessage,
    UpdateChannel,
    UpdateQueue,
    RemoveChannels,
)


def all_needs(command: Command) -> list[Need]:
    """All rights that a command of ``SEVERAL`` needs.

    These are its own right; the right to push into the dead letter queues that it sets and into the
    target of a move; and the right to add the feed that a new queue is for.  To remove channels
    needs the right for each channel.
    """
    if isinstance(command, RemoveChannels):
        return [(REMOVE_CHANNEL, name, NO_QUEUE, 0) for name in command.channels]
    own = needed(command)
    assert own is not None, "somebody has decided that"
    found = [own]
    if isinstance(command, MoveMessage):
        found.append((PUSH, command.push.channel, command.push.queue_id, 0))
    for channel, queue_id in targets_of(command):
        found.append((PUSH, channel, queue_id, 0))
    if isinstance(command, CreateQueue) and command.source is not None:
        found.append((FEED, command.source[0], command.source[1], 0))
        found.append((FEED, command.channel, command.queue_id, 0))
    return found


def need_of_feed(command: AddFeed, place: int) -> Need:
    """What adding a feed needs at one place: first the source, then the target."""
    if place == 0:
        return (FEED, command.channel, command.queue_id, 0)
    return (FEED, command.target, command.target_queue, 0)


def need_of_place(command: GroupCommand, place: int) -> Need:
    """What a command about a group needs at one place: each place is a queue."""
    assert command.places is not None, "the queues are found first"
    each = command.places[place]
    return (PULL, each.channel, each.queue_id, 0)
