"""Owns what we add to the protocol: operations under numbers that neither source uses.

The specification's numbers end at 302, the original's at 663 (F19); ours stand between 700 and 799.
A server that does not know them answers 400 (ours) or nothing (the original).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = [
    "EVENT_FORM_SPECIFIED",
    "HEADER_ATTEMPT",
    "HEADER_CURSOR",
    "HEADER_EPOCH",
    "HEADER_EVENT_FORM",
    "HEADER_FROM",
    "HEADER_INCARNATION",
    "HEADER_LIMIT",
    "HEADER_MAX_BYTES",
    "HEADER_PART",
    "HEADER_ROUTER_ENABLED",
    "HEADER_SEQUENCE",
    "HEADER_START",
    "HEADER_TIMEOUT",
    "HEADER_TIMESTAMP",
    "HEADER_TO",
    "HEADER_TRANSACTION",
    "HEADER_WAIT",
    "OP_ABORT_TRANSACTION",
    "OP_COMMIT_CURSOR",
    "OP_COMMIT_GROUP",
    "OP_COMMIT_TRANSACTION",
    "OP_DROP_CURSOR",
    "OP_DROP_GROUP",
    "OP_LIST_CURSORS",
    "OP_LIST_GROUPS",
    "OP_LIST_TRANSACTIONS",
    "OP_OFFSETS",
    "OP_OPEN_GROUP",
    "OP_OPEN_TRANSACTION",
    "OP_PUSH_TRANSACTION",
    "OP_READ_INDEX",
    "OP_READ_RANGE",
    "OP_RESET_GROUP",
    "OP_SET_ROUTER_ENABLED",
    "OP_SPLIT_RANGE",
    "OP_UPDATE_CHANNEL",
    "START_EARLIEST",
    "START_LATEST",
    "ExtensionOperation",
]

OP_SET_ROUTER_ENABLED: Final = 701
OP_UPDATE_CHANNEL: Final = 702
OP_OFFSETS: Final = 711
OP_READ_RANGE: Final = 712
OP_COMMIT_CURSOR: Final = 713
OP_LIST_CURSORS: Final = 714
OP_DROP_CURSOR: Final = 715
OP_OPEN_TRANSACTION: Final = 731
OP_PUSH_TRANSACTION: Final = 732
OP_COMMIT_TRANSACTION: Final = 733
OP_ABORT_TRANSACTION: Final = 734
OP_LIST_TRANSACTIONS: Final = 735
OP_SPLIT_RANGE: Final = 716
OP_OPEN_GROUP: Final = 717
OP_COMMIT_GROUP: Final = 718
OP_LIST_GROUPS: Final = 719
OP_RESET_GROUP: Final = 720
OP_DROP_GROUP: Final = 721
OP_READ_INDEX: Final = 722

#: ``1`` to enable the router that the target names, ``0`` to disable it.
HEADER_ROUTER_ENABLED: Final = "Router-Enabled"

#: On a subscription to an event, with this value: send events in the specification's form, with the
#: headers Channel-Name and Queue-Id, and ActiveClient beside ActiveClients (F129, F130).
HEADER_EVENT_FORM: Final = "Event-Form"
EVENT_FORM_SPECIFIED: Final = "specified"

#: Of what is kept of a queue: the first and the last sequence, how many messages, how many bytes.
HEADER_FROM: Final = "From"
HEADER_TO: Final = "To"
HEADER_LIMIT: Final = "Limit"
HEADER_MAX_BYTES: Final = "Max-Bytes"
#: Which queue of this name is meant.
HEADER_INCARNATION: Final = "Incarnation"
#: A reader's name, up to where it is done, and where it begins.
HEADER_CURSOR: Final = "Cursor"
HEADER_SEQUENCE: Final = "Sequence"
HEADER_START: Final = "Start"
#: Unix time in milliseconds; and how many milliseconds the answer may be held.
HEADER_TIMESTAMP: Final = "Timestamp"
HEADER_WAIT: Final = "Wait"
START_EARLIEST: Final = "earliest"
START_LATEST: Final = "latest"
#: Of an application: which commit of it this is, which part of that, and the part's which attempt.
HEADER_EPOCH: Final = "Epoch"
HEADER_PART: Final = "Part"
HEADER_ATTEMPT: Final = "Attempt"
#: A transaction's number, and after how many milliseconds without a push it is given up.
HEADER_TRANSACTION: Final = "Transaction"
HEADER_TIMEOUT: Final = "Timeout"


class ExtensionOperation(IntEnum):
    """Content types of Server messages from a client that only this project serves."""

    SET_ROUTER_ENABLED = OP_SET_ROUTER_ENABLED
    UPDATE_CHANNEL = OP_UPDATE_CHANNEL
    OFFSETS = OP_OFFSETS
    READ_RANGE = OP_READ_RANGE
    COMMIT_CURSOR = OP_COMMIT_CURSOR
    LIST_CURSORS = OP_LIST_CURSORS
    DROP_CURSOR = OP_DROP_CURSOR
    OPEN_TRANSACTION = OP_OPEN_TRANSACTION
    PUSH_TRANSACTION = OP_PUSH_TRANSACTION
    COMMIT_TRANSACTION = OP_COMMIT_TRANSACTION
    ABORT_TRANSACTION = OP_ABORT_TRANSACTION
    LIST_TRANSACTIONS = OP_LIST_TRANSACTIONS
    SPLIT_RANGE = OP_SPLIT_RANGE
    OPEN_GROUP = OP_OPEN_GROUP
    COMMIT_GROUP = OP_COMMIT_GROUP
    LIST_GROUPS = OP_LIST_GROUPS
    RESET_GROUP = OP_RESET_GROUP
    DROP_GROUP = OP_DROP_GROUP
    READ_INDEX = OP_READ_INDEX
