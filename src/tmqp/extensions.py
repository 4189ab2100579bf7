"""What we add to the protocol: operations under numbers that neither source uses.

The specification's numbers end at 302, the original's at 663 (F19); ours are between 700 and 799.
A server that does not know them answers 400 (ours) or nothing (the original).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = [
    "CELL_COUNTER",
    "CELL_VALUE",
    "CHANGE_ADD",
    "CHANGE_ADD_TIMEOUT",
    "CHANGE_SET",
    "CHANGE_SET_TIMEOUT",
    "CHANGE_SUBTRACT",
    "CHANGE_SUBTRACT_TIMEOUT",
    "DEAD_LETTER_HEADERS",
    "EVENT_FORM_SPECIFIED",
    "FILTER_HEADERS",
    "FILTER_PREFIX",
    "FORM_REFERENCES",
    "HEADER_ACKNOWLEDGE_TIMEOUT",
    "HEADER_AMOUNT",
    "HEADER_ATTEMPT",
    "HEADER_CELL_KEY",
    "HEADER_CELL_KIND",
    "HEADER_CHANGE",
    "HEADER_COLUMNS",
    "HEADER_CONSUMER_PRIORITY",
    "HEADER_COUNTED",
    "HEADER_CREDIT",
    "HEADER_CURSOR",
    "HEADER_DEAD_LETTER_ATTEMPTS",
    "HEADER_DEAD_LETTER_QUEUE",
    "HEADER_DEAD_LETTER_REASON",
    "HEADER_DELAY",
    "HEADER_DELIVER_AT",
    "HEADER_EPOCH",
    "HEADER_EVENT_FORM",
    "HEADER_EXCLUSIVE",
    "HEADER_FEED_CHANNEL",
    "HEADER_FEED_QUEUE",
    "HEADER_FILTER",
    "HEADER_FILTER_LANGUAGE",
    "HEADER_FORM",
    "HEADER_FROM",
    "HEADER_GROUP_KEY",
    "HEADER_INCARNATION",
    "HEADER_INITIAL",
    "HEADER_LIMIT",
    "HEADER_MAX_BYTES",
    "HEADER_MESSAGE_ID",
    "HEADER_MESSAGE_TIMEOUT",
    "HEADER_NODE_ADDRESS",
    "HEADER_PART",
    "HEADER_PRIORITY",
    "HEADER_PUT_BACK",
    "HEADER_REASON",
    "HEADER_RECEIVERS",
    "HEADER_RETURN",
    "HEADER_ROUTER_ENABLED",
    "HEADER_SEQUENCE",
    "HEADER_START",
    "HEADER_STATE",
    "HEADER_STOP",
    "HEADER_TELL_LAPSED",
    "HEADER_TIMEOUT",
    "HEADER_TIMESTAMP",
    "HEADER_TO",
    "HEADER_TRANSACTION",
    "HEADER_WAIT",
    "HEADER_WINDOW",
    "KEYS_NONE",
    "KEYS_STICKY",
    "KEYS_STRICT",
    "LAPSE_ANSWERED",
    "LAPSE_REMOVED",
    "LAPSE_TIMED_OUT",
    "LIFETIME_CONSUMERS",
    "LIFETIME_OWNER",
    "OP_ABORT_TRANSACTION",
    "OP_ADD_FEED",
    "OP_APPLY_BATCH",
    "OP_BROWSE",
    "OP_CANCEL_MESSAGE",
    "OP_CHANGE_CELL",
    "OP_COMMIT_CURSOR",
    "OP_COMMIT_GROUP",
    "OP_COMMIT_TRANSACTION",
    "OP_DESCRIBE_CELL",
    "OP_DESCRIBE_SERVER",
    "OP_DRAIN",
    "OP_DROP_CELL",
    "OP_DROP_CURSOR",
    "OP_DROP_GROUP",
    "OP_EXTEND",
    "OP_GRANT_CREDIT",
    "OP_LAPSED",
    "OP_LIST_CELLS",
    "OP_LIST_CURSORS",
    "OP_LIST_FEEDS",
    "OP_LIST_GROUPS",
    "OP_LIST_TRANSACTIONS",
    "OP_MAKE_COUNTER",
    "OP_OFFSETS",
    "OP_OPEN_GROUP",
    "OP_OPEN_TRANSACTION",
    "OP_PUSH_TRANSACTION",
    "OP_PUT_VALUE",
    "OP_READ_CELL",
    "OP_READ_INDEX",
    "OP_READ_RANGE",
    "OP_REMOVE_FEED",
    "OP_REMOVE_MESSAGE",
    "OP_RESET_GROUP",
    "OP_SET_ROUTER_ENABLED",
    "OP_SET_TERMS",
    "OP_SPLIT_RANGE",
    "OP_UPDATE_CHANNEL",
    "PRIORITIES_TEN",
    "PRIORITIES_TWO",
    "PUT_BACK_WORD_END",
    "PUT_BACK_WORD_FRONT",
    "REASON_RELEASE",
    "RETURN_WORD_TIMEOUT",
    "START_EARLIEST",
    "START_LATEST",
    "STATE_DEFERRED",
    "STATE_IN_FLIGHT",
    "STATE_WAITING",
    "WHEN_FULL_DEAD_LETTER",
    "WHEN_FULL_DROP_OLDEST",
    "WHEN_FULL_REFUSE",
    "ExtensionOperation",
]

OP_SET_ROUTER_ENABLED: Final = 701
OP_UPDATE_CHANNEL: Final = 702
OP_DESCRIBE_SERVER: Final = 703
OP_DRAIN: Final = 704
OP_OFFSETS: Final = 711
OP_READ_RANGE: Final = 712
OP_COMMIT_CURSOR: Final = 713
OP_LIST_CURSORS: Final = 714
OP_DROP_CURSOR: Final = 715
OP_SET_TERMS: Final = 741
OP_GRANT_CREDIT: Final = 742
OP_EXTEND: Final = 743
OP_OPEN_TRANSACTION: Final = 731
OP_PUSH_TRANSACTION: Final = 732
OP_COMMIT_TRANSACTION: Final = 733
OP_ABORT_TRANSACTION: Final = 734
OP_LIST_TRANSACTIONS: Final = 735
OP_APPLY_BATCH: Final = 736
OP_BROWSE: Final = 744
OP_CANCEL_MESSAGE: Final = 745
OP_ADD_FEED: Final = 746
OP_REMOVE_FEED: Final = 747
OP_LIST_FEEDS: Final = 748
OP_REMOVE_MESSAGE: Final = 749
OP_MAKE_COUNTER: Final = 751
OP_PUT_VALUE: Final = 752
OP_READ_CELL: Final = 753
OP_CHANGE_CELL: Final = 754
OP_DROP_CELL: Final = 755
OP_LIST_CELLS: Final = 756
OP_DESCRIBE_CELL: Final = 757
#: From a server: a delivery is no longer in flight to the client, if the client requested this.
OP_LAPSED: Final = 758
OP_SPLIT_RANGE: Final = 716
OP_OPEN_GROUP: Final = 717
OP_COMMIT_GROUP: Final = 718
OP_LIST_GROUPS: Final = 719
OP_RESET_GROUP: Final = 720
OP_DROP_GROUP: Final = 721
OP_READ_INDEX: Final = 722

#: ``1`` to enable the router that the target names, ``0`` to disable it.
HEADER_ROUTER_ENABLED: Final = "Router-Enabled"

#: With the value ``yes``: stop the server when it has drained.
HEADER_STOP: Final = "Stop"

#: On a subscription to an event, with this value: send events in the specification's form, with the
#: headers Channel-Name and Queue-Id, and ActiveClient beside ActiveClients (F129, F130).
HEADER_EVENT_FORM: Final = "Event-Form"
EVENT_FORM_SPECIFIED: Final = "specified"

#: The queue that a feed copies into.
HEADER_FEED_CHANNEL: Final = "Feed-Channel"
HEADER_FEED_QUEUE: Final = "Feed-Queue"
#: On a join, a feed or a request to browse: the filter of messages, and its language.
HEADER_FILTER: Final = "Filter"
HEADER_FILTER_LANGUAGE: Final = "Filter-Language"
FILTER_HEADERS: Final = "headers"
FILTER_PREFIX: Final = "prefix"

#: Of a request for kept messages: first and last sequence, the most messages, the most bytes.
HEADER_FROM: Final = "From"
HEADER_TO: Final = "To"
HEADER_LIMIT: Final = "Limit"
HEADER_MAX_BYTES: Final = "Max-Bytes"
#: The form of the answer: references to blocks (:mod:`tmqp.references`).
HEADER_FORM: Final = "Form"
FORM_REFERENCES: Final = "references"
#: The names of the requested columns (:mod:`tmqp.block_columns`).
HEADER_COLUMNS: Final = "Columns"
#: Distinguishes a queue from a later one of the same name.
HEADER_INCARNATION: Final = "Incarnation"
#: A reader's name, the last sequence that it has processed, and where it begins.
HEADER_CURSOR: Final = "Cursor"
HEADER_SEQUENCE: Final = "Sequence"
HEADER_START: Final = "Start"
#: Unix time in milliseconds; and how many milliseconds the answer may be delayed.
HEADER_TIMESTAMP: Final = "Timestamp"
HEADER_WAIT: Final = "Wait"
START_EARLIEST: Final = "earliest"
START_LATEST: Final = "latest"
#: Of a transaction: the application's epoch, the part of the epoch, and the attempt at the part.
HEADER_EPOCH: Final = "Epoch"
HEADER_PART: Final = "Part"
HEADER_ATTEMPT: Final = "Attempt"
#: A transaction's number, and after how many milliseconds without a push it is aborted.
HEADER_TRANSACTION: Final = "Transaction"
HEADER_TIMEOUT: Final = "Timeout"
#: On a refusal with 421: the address of the server that serves clients.
HEADER_NODE_ADDRESS: Final = "Node-Address"
#: On a dead letter: why it is one, the queue that it was moved from first (``channel;id``), and how
#: often it had been sent there.
HEADER_DEAD_LETTER_REASON: Final = "Dead-Letter-Reason"
HEADER_DEAD_LETTER_QUEUE: Final = "Dead-Letter-Queue"
HEADER_DEAD_LETTER_ATTEMPTS: Final = "Dead-Letter-Attempts"
DEAD_LETTER_HEADERS: Final = (
    HEADER_DEAD_LETTER_REASON,
    HEADER_DEAD_LETTER_QUEUE,
    HEADER_DEAD_LETTER_ATTEMPTS,
)
#: On a push: the priority of JMS, 0 to 9, see the option Priorities of queues.
HEADER_PRIORITY: Final = "Priority"
#: On a push: the key of the message; see the option GroupKeys of queues.
HEADER_GROUP_KEY: Final = "Group-Key"
#: On a push: for how many milliseconds the message is deferred, or until which Unix time in
#: milliseconds; and after how many milliseconds it expires, counted from the push.
HEADER_DELAY: Final = "Delay"
HEADER_DELIVER_AT: Final = "Deliver-At"
HEADER_MESSAGE_TIMEOUT: Final = "Message-Timeout"
#: On a push, with the value ``yes``: let the acknowledgement tell how many consumers the message
#: went to at once.  On that acknowledge: the number.
HEADER_RECEIVERS: Final = "Receivers"
#: On a request to browse: the states of the wanted messages, separated by commas.
HEADER_STATE: Final = "State"
STATE_WAITING: Final = "waiting"
STATE_DEFERRED: Final = "deferred"
STATE_IN_FLIGHT: Final = "in-flight"
#: The message that an operation is about.
HEADER_MESSAGE_ID: Final = "Message-Id"

#: Of a cell: its key, in which ``%xx`` is a byte; in an answer, its kind.
HEADER_CELL_KEY: Final = "Cell-Key"
HEADER_CELL_KIND: Final = "Cell-Kind"
CELL_COUNTER: Final = "counter"
CELL_VALUE: Final = "value"
#: A number; the kind of a change; and the initial count of a counter that does not exist.
HEADER_AMOUNT: Final = "Amount"
HEADER_CHANGE: Final = "Change"
HEADER_INITIAL: Final = "Initial"
CHANGE_SET: Final = "set"
CHANGE_ADD: Final = "add"
CHANGE_SUBTRACT: Final = "subtract"
CHANGE_SET_TIMEOUT: Final = "set-timeout"
CHANGE_ADD_TIMEOUT: Final = "add-timeout"
CHANGE_SUBTRACT_TIMEOUT: Final = "subtract-timeout"

#: On a negative acknowledgement: the consumer returns the message, to the front or the end of
#: its queue.  Servers that do not know these headers see a negative acknowledgement with this
#: reason.
HEADER_PUT_BACK: Final = "Put-Back"
PUT_BACK_WORD_FRONT: Final = "front"
PUT_BACK_WORD_END: Final = "end"
REASON_RELEASE: Final = "release"
#: ``0`` if returning a message does not count as a put-back (F98).
HEADER_COUNTED: Final = "Counted"

#: Of a join: how many deliveries may be unanswered at a time, and how many more may be sent, both
#: -1 for no limit; its own acknowledgement timeout in milliseconds, 0 for the queue's, -1 for none;
#: what happens to unanswered messages when it ends; its priority; ``1`` for an exclusive consumer.
HEADER_WINDOW: Final = "Window"
HEADER_CREDIT: Final = "Credit"
HEADER_ACKNOWLEDGE_TIMEOUT: Final = "Acknowledge-Timeout"
HEADER_RETURN: Final = "Return"
RETURN_WORD_TIMEOUT: Final = "timeout"
HEADER_CONSUMER_PRIORITY: Final = "Consumer-Priority"
HEADER_EXCLUSIVE: Final = "Exclusive"
#: On a join: report when a delivery is no longer in flight to this client (``OP_LAPSED``); in that
#: report, the reason, one of the words below.
HEADER_TELL_LAPSED: Final = "Tell-Lapsed"
HEADER_REASON: Final = "Reason"
LAPSE_TIMED_OUT: Final = "timed-out"
LAPSE_REMOVED: Final = "removed"
LAPSE_ANSWERED: Final = "answered"
#: Lifetimes of channels: until the creating connection ends, or the last consumer leaves.
LIFETIME_OWNER: Final = "owner"
LIFETIME_CONSUMERS: Final = "consumers"

#: What a push into a full queue does.
WHEN_FULL_REFUSE: Final = "refuse"
WHEN_FULL_DROP_OLDEST: Final = "drop-oldest"
WHEN_FULL_DEAD_LETTER: Final = "dead-letter"

#: How messages with the same key are delivered.
KEYS_NONE: Final = "none"
KEYS_STICKY: Final = "sticky"
KEYS_STRICT: Final = "strict"

#: How many priorities order a queue.
PRIORITIES_TWO: Final = "two"
PRIORITIES_TEN: Final = "ten"


class ExtensionOperation(IntEnum):
    """Content types of Server messages from a client that only this project serves."""

    SET_ROUTER_ENABLED = OP_SET_ROUTER_ENABLED
    UPDATE_CHANNEL = OP_UPDATE_CHANNEL
    DESCRIBE_SERVER = OP_DESCRIBE_SERVER
    DRAIN = OP_DRAIN
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
    APPLY_BATCH = OP_APPLY_BATCH
    SPLIT_RANGE = OP_SPLIT_RANGE
    OPEN_GROUP = OP_OPEN_GROUP
    COMMIT_GROUP = OP_COMMIT_GROUP
    LIST_GROUPS = OP_LIST_GROUPS
    RESET_GROUP = OP_RESET_GROUP
    DROP_GROUP = OP_DROP_GROUP
    READ_INDEX = OP_READ_INDEX
    SET_TERMS = OP_SET_TERMS
    GRANT_CREDIT = OP_GRANT_CREDIT
    EXTEND = OP_EXTEND
    BROWSE = OP_BROWSE
    CANCEL_MESSAGE = OP_CANCEL_MESSAGE
    ADD_FEED = OP_ADD_FEED
    REMOVE_FEED = OP_REMOVE_FEED
    LIST_FEEDS = OP_LIST_FEEDS
    REMOVE_MESSAGE = OP_REMOVE_MESSAGE
    MAKE_COUNTER = OP_MAKE_COUNTER
    PUT_VALUE = OP_PUT_VALUE
    READ_CELL = OP_READ_CELL
    CHANGE_CELL = OP_CHANGE_CELL
    DROP_CELL = OP_DROP_CELL
    LIST_CELLS = OP_LIST_CELLS
    DESCRIBE_CELL = OP_DESCRIBE_CELL
