"""All outputs of the engine, one module for each subject.

Other packages import effects from here; only the modules of this folder import each other.
"""

from __future__ import annotations

from tmqp_server.engine.effects.base import (
    Effect,
)
from tmqp_server.engine.effects.draining import DrainAsked
from tmqp_server.engine.effects.events import (
    Inform,
    Notify,
    TellHandler,
)
from tmqp_server.engine.effects.messages import (
    AnswerPull,
    Confirm,
    Deliver,
    DeliverPulled,
    EndPull,
    Forward,
    HandOver,
    TellNodes,
)
from tmqp_server.engine.effects.reading import (
    FindOffsets,
    ForgetCursors,
    MeasureStored,
    ReadStored,
    SplitStored,
    StoreCursors,
)
from tmqp_server.engine.effects.routers import (
    AnswerRouted,
    CallHttp,
    RouterFailed,
)
from tmqp_server.engine.effects.runs import (
    AppendRun,
    ConfirmRun,
    DeliverRun,
    EraseRun,
    ForwardRun,
)
from tmqp_server.engine.effects.sessions import (
    Accept,
    BranchClosed,
    BranchOpened,
    CloseSession,
    EventsEnded,
    Lapsed,
    Left,
    PushDecided,
    Refuse,
    Reply,
)
from tmqp_server.engine.effects.storage import (
    Append,
    ClearStored,
    CommitBatch,
    Erase,
    Fetch,
    ForgetChannel,
    ForgetQueue,
    ForgetRouter,
    StoreChannel,
    StoredChange,
    StoreQueue,
    StoreRouter,
)
from tmqp_server.engine.effects.transactions import (
    CommitPart,
    CommitStored,
    DropStaged,
    ForgetMark,
    StageSegment,
)

__all__ = [
    "Accept",
    "AnswerPull",
    "AnswerRouted",
    "Append",
    "AppendRun",
    "BranchClosed",
    "BranchOpened",
    "CallHttp",
    "ClearStored",
    "CloseSession",
    "CommitBatch",
    "CommitPart",
    "CommitStored",
    "Confirm",
    "ConfirmRun",
    "Deliver",
    "DeliverPulled",
    "DeliverRun",
    "DrainAsked",
    "DropStaged",
    "Effect",
    "EndPull",
    "Erase",
    "EraseRun",
    "EventsEnded",
    "Fetch",
    "FindOffsets",
    "ForgetChannel",
    "ForgetCursors",
    "ForgetMark",
    "ForgetQueue",
    "ForgetRouter",
    "Forward",
    "ForwardRun",
    "HandOver",
    "Inform",
    "Lapsed",
    "Left",
    "MeasureStored",
    "Notify",
    "PushDecided",
    "ReadStored",
    "Refuse",
    "Reply",
    "RouterFailed",
    "SplitStored",
    "StageSegment",
    "StoreChannel",
    "StoreCursors",
    "StoreQueue",
    "StoreRouter",
    "StoredChange",
    "TellHandler",
    "TellNodes",
]
