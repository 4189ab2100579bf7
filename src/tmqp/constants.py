"""The numbers and words of TMQP/2.0: every constant of the protocol is defined here, except the
masks and sizes of a frame's head (``tmqp.bits``).

Groups that the hot path uses are defined twice: as plain ``Final`` integers or strings, which the
compiler inlines, and as an enumeration with the same values for people, logs and type checkers.
The enumeration is *built from* the plain constants, so the two cannot differ.  Numbers that the hot
path does not use (most result codes) are only in the enumeration.

The content type of a frame has a number of one of four sets; the message type says which:

- type Server from a client: :class:`ServerCode` HELLO as the first message, then
  :class:`Operation` (the wire's numbers) or :class:`DocumentOperation` (the specification's);
- type Server from a server: :class:`ServerCode`, in the connect phase only (F62);
- type Response: :class:`ResultCode`;
- queue message, its acknowledgement, pull request: the queue id.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

# Packed, because one name a line would be a third of this module.
# fmt: off
__all__ = [
    "ACCEPTED_PREAMBLES", "DECIDE_ACK_ALWAYS", "DECIDE_ACK_IF_SAVED", "DECIDE_ACK_NEGATIVE",
    "DECIDE_ACK_NONE", "DEFAULT_TTL", "DOCUMENT_OPERATION_OF_WIRE", "EVENT_SUBSCRIBE",
    "EVENT_UNSUBSCRIBE", "FIRST_CUSTOM_RESULT", "FORBIDDEN_NAME_CHARACTERS", "HEADER_CC",
    "HEADER_CHANNEL_NAME", "HEADER_COUNT", "HEADER_DELIVERY_HANDLER", "HEADER_INDEX",
    "HEADER_MESSAGES", "HEADER_NACK_REASON", "HEADER_NO_CONTENT",
    "HEADER_PRIORITY_MESSAGES", "HEADER_QUEUE_ID", "HEADER_QUEUE_STATUS", "HEADER_QUEUE_TAG",
    "HEADER_REQUEST_ID",
    "HEADER_VALUE_YES", "HEADER_WAIT_FOR_ACKNOWLEDGE", "HELLO_METHOD", "MAX_HEADER_BLOCK_BYTES",
    "MAX_NAME_BYTES", "MAX_QUEUE_ID", "MAX_TTL", "NACK_ERROR", "NACK_NONE", "NACK_NO_CONSUMERS",
    "NACK_TIMEOUT", "NODE_CLIENT_TYPE", "OP_ADD_BINDING", "OP_CHANNEL_CONSUMERS",
    "OP_CHANNEL_INFORMATION", "OP_CHANNEL_LIST", "OP_CLEAR_MESSAGES", "OP_CLIENT_LIST",
    "OP_CREATE_CHANNEL", "OP_CREATE_QUEUE", "OP_CREATE_ROUTER", "OP_DECISION_OVER_NODE",
    "OP_INSTANCE_LIST", "OP_JOIN", "OP_LEAVE", "OP_LIST_BINDINGS", "OP_LIST_ROUTERS",
    "OP_QUEUE_INFORMATION", "OP_QUEUE_LIST", "OP_REMOVE_BINDING", "OP_REMOVE_CHANNEL",
    "OP_REMOVE_QUEUE", "OP_REMOVE_ROUTER", "OP_UPDATE_QUEUE", "ORDER_LIFO", "PING_BYTES",
    "PONG_BYTES", "PREAMBLE", "PREAMBLE_V1", "PUT_BACK_END", "PUT_BACK_NO", "PUT_BACK_START",
    "RESULT_BAD_REQUEST", "RESULT_BUSY", "RESULT_CONFLICT", "RESULT_DUPLICATE", "RESULT_FAILED",
    "RESULT_FORBIDDEN", "RESULT_INTERNAL_SERVER_ERROR", "RESULT_LIMIT_EXCEEDED",
    "RESULT_MISDIRECTED_REQUEST", "RESULT_NOT_FOUND", "RESULT_NOT_IMPLEMENTED", "RESULT_NO_CONTENT",
    "RESULT_OK", "RESULT_REQUESTED_RANGE_NOT_SATISFIABLE", "RESULT_REQUEST_TIMEOUT",
    "RESULT_SEND_ERROR", "RESULT_UNACCEPTABLE", "RESULT_UNAUTHORIZED", "SERVER_ACCEPTED",
    "SERVER_BUSY", "SERVER_HELLO", "SERVER_UNAUTHORIZED", "STATUS_BROADCAST", "STATUS_CACHE",
    "STATUS_EVENT_WORDS", "STATUS_HEADER_WORDS", "STATUS_INFORMATION_WORDS", "STATUS_PAUSED",
    "STATUS_PULL", "STATUS_PUSH", "STATUS_ROUND_ROBIN", "STATUS_STOPPED", "TARGET_NAME_PREFIX",
    "TARGET_TYPE_PREFIX", "TYPE_ACKNOWLEDGE", "TYPE_CUSTOM", "TYPE_DIRECT_MESSAGE", "TYPE_EVENT",
    "TYPE_PING", "TYPE_PONG", "TYPE_PULL_REQUEST", "TYPE_QUEUE_MESSAGE", "TYPE_RESPONSE",
    "TYPE_ROUTER", "TYPE_SERVER", "TYPE_TERMINATE", "WIRE_OPERATION_OF_DOCUMENT",
    "AcknowledgeDecision", "BindingHttpMethod", "BindingInteraction", "BindingType",
    "DocumentOperation", "EventName", "HeaderName", "MessageType", "NackReason", "NoContent",
    "Operation", "PullClear", "PutBack", "QueueStatus", "ResultCode", "RouteMethod", "ServerCode",
    "queue_status_from_word",
]
# fmt: on

# --- Preamble (specification, "Version and Handshaking"; F21-F24) -----------------------------

PREAMBLE: Final = b"TMQP/2.0"
#: The first version's preamble; a server accepts it and answers with the same bytes (F23).
PREAMBLE_V1: Final = b"TMQ/1.01"
ACCEPTED_PREAMBLES: Final = (PREAMBLE, PREAMBLE_V1)

# --- Frame (specification, "Protocol Frame"; F1-F12) ------------------------------------------

#: Message id, source and target are at most this many bytes of UTF-8 (F6).
MAX_NAME_BYTES: Final = 255
#: The header block's length is an unsigned 16-bit number (F6).
MAX_HEADER_BLOCK_BYTES: Final = 65_535
#: Queue ids are the 16-bit content type of a queue message.
MAX_QUEUE_ID: Final = 65_535
#: The time to live of a new message (F11).
DEFAULT_TTL: Final = 16
#: Five bits (F2).
MAX_TTL: Final = 31

PING_BYTES: Final = b"\x89\xff\x00\x00\x00\x00\x00\x00"  # F37
PONG_BYTES: Final = b"\x8a\xff\x00\x00\x00\x00\x00\x00"  # F37

# --- Message types (specification, "Message Types"; F16) --------------------------------------

TYPE_CUSTOM: Final = 0x00
TYPE_TERMINATE: Final = 0x08
TYPE_PING: Final = 0x09
TYPE_PONG: Final = 0x0A
TYPE_SERVER: Final = 0x10
TYPE_QUEUE_MESSAGE: Final = 0x11
TYPE_DIRECT_MESSAGE: Final = 0x12
TYPE_ACKNOWLEDGE: Final = 0x13
TYPE_RESPONSE: Final = 0x14
TYPE_PULL_REQUEST: Final = 0x15
TYPE_EVENT: Final = 0x16
TYPE_ROUTER: Final = 0x17


class MessageType(IntEnum):
    """The low six bits of a frame's first byte (F2, F16)."""

    CUSTOM = TYPE_CUSTOM
    TERMINATE = TYPE_TERMINATE
    PING = TYPE_PING
    PONG = TYPE_PONG
    SERVER = TYPE_SERVER
    QUEUE_MESSAGE = TYPE_QUEUE_MESSAGE
    DIRECT_MESSAGE = TYPE_DIRECT_MESSAGE
    ACKNOWLEDGE = TYPE_ACKNOWLEDGE
    RESPONSE = TYPE_RESPONSE
    PULL_REQUEST = TYPE_PULL_REQUEST
    EVENT = TYPE_EVENT
    ROUTER = TYPE_ROUTER


# --- Result codes (specification, "Response Messages"; F18) -------------------------------------

#: Numbers from here on are free for applications; the protocol's own are smaller.
FIRST_CUSTOM_RESULT: Final = 1000

RESULT_OK: Final = 0
RESULT_FAILED: Final = 1
RESULT_NO_CONTENT: Final = 204
RESULT_BAD_REQUEST: Final = 400
RESULT_UNAUTHORIZED: Final = 401
RESULT_FORBIDDEN: Final = 403
RESULT_NOT_FOUND: Final = 404
RESULT_UNACCEPTABLE: Final = 406
RESULT_REQUEST_TIMEOUT: Final = 408
RESULT_CONFLICT: Final = 409
RESULT_REQUESTED_RANGE_NOT_SATISFIABLE: Final = 416
RESULT_MISDIRECTED_REQUEST: Final = 421
RESULT_DUPLICATE: Final = 481
RESULT_LIMIT_EXCEEDED: Final = 482
RESULT_INTERNAL_SERVER_ERROR: Final = 500
RESULT_NOT_IMPLEMENTED: Final = 501
RESULT_BUSY: Final = 503
RESULT_SEND_ERROR: Final = 581


class ResultCode(IntEnum):
    """The content type of a Response (F18).

    ``REQUEST_TIMEOUT`` and ``SEND_ERROR`` are never sent: a client reports them to its own program.
    """

    OK = RESULT_OK
    FAILED = RESULT_FAILED
    NO_CONTENT = RESULT_NO_CONTENT
    BAD_REQUEST = RESULT_BAD_REQUEST
    UNAUTHORIZED = RESULT_UNAUTHORIZED
    PAYMENT_REQUIRED = 402
    FORBIDDEN = RESULT_FORBIDDEN
    NOT_FOUND = RESULT_NOT_FOUND
    METHOD_NOT_ALLOWED = 405
    UNACCEPTABLE = RESULT_UNACCEPTABLE
    REQUEST_TIMEOUT = RESULT_REQUEST_TIMEOUT
    CONFLICT = RESULT_CONFLICT
    GONE = 410
    LENGTH_REQUIRED = 411
    PRECONDITION_FAILED = 412
    REQUEST_ENTITY_TOO_LARGE = 413
    REQUEST_URI_TOO_LONG = 414
    UNSUPPORTED_MEDIA_TYPE = 415
    REQUESTED_RANGE_NOT_SATISFIABLE = RESULT_REQUESTED_RANGE_NOT_SATISFIABLE
    EXPECTATION_FAILED = 417
    MISDIRECTED_REQUEST = RESULT_MISDIRECTED_REQUEST
    UNPROCESSABLE_ENTITY = 422
    LOCKED = 423
    FAILED_DEPENDENCY = 424
    UPGRADE_REQUIRED = 426
    PRECONDITION_REQUIRED = 428
    TOO_MANY_REQUESTS = 429
    REQUEST_HEADER_FIELDS_TOO_LARGE = 431
    UNAVAILABLE_FOR_LEGAL_REASONS = 451
    DUPLICATE = RESULT_DUPLICATE
    LIMIT_EXCEEDED = RESULT_LIMIT_EXCEEDED
    INTERNAL_SERVER_ERROR = RESULT_INTERNAL_SERVER_ERROR
    NOT_IMPLEMENTED = RESULT_NOT_IMPLEMENTED
    BAD_GATEWAY = 502
    BUSY = RESULT_BUSY
    GATEWAY_TIMEOUT = 504
    HTTP_VERSION_NOT_SUPPORTED = 505
    VARIANT_ALSO_NEGOTIATES = 506
    INSUFFICIENT_STORAGE = 507
    LOOP_DETECTED = 508
    NOT_EXTENDED = 510
    NETWORK_AUTHENTICATION_REQUIRED = 511
    SEND_ERROR = RESULT_SEND_ERROR


# --- Server messages of the connect phase (F19, F26, F31-F33, F62) ------------------------------

SERVER_HELLO: Final = 101
SERVER_ACCEPTED: Final = 202
SERVER_UNAUTHORIZED: Final = 401
SERVER_BUSY: Final = 503


class ServerCode(IntEnum):
    """Content types of Server messages that are not operations.

    A client sends HELLO as its first message; a server sends the others only while the client
    connects (F62); later codes are in Responses, as :class:`ResultCode`.
    """

    HELLO = SERVER_HELLO
    OK = 200
    ACCEPTED = SERVER_ACCEPTED
    BAD_REQUEST = 400
    UNAUTHORIZED = SERVER_UNAUTHORIZED
    NOT_FOUND = 404
    UNACCEPTABLE = 406
    DUPLICATE = 481
    LIMIT_EXCEEDED = 482
    INTERNAL_SERVER_ERROR = 500
    BUSY = SERVER_BUSY


# --- Operations, the wire's numbers (F19, F48-F63) ----------------------------------------------

OP_JOIN: Final = 601
OP_LEAVE: Final = 602
OP_CREATE_CHANNEL: Final = 603
OP_REMOVE_CHANNEL: Final = 604
OP_CHANNEL_INFORMATION: Final = 605
OP_CHANNEL_LIST: Final = 606
OP_CHANNEL_CONSUMERS: Final = 607
OP_CREATE_QUEUE: Final = 610
OP_REMOVE_QUEUE: Final = 611
OP_UPDATE_QUEUE: Final = 612
OP_CLEAR_MESSAGES: Final = 613
OP_QUEUE_INFORMATION: Final = 615
OP_QUEUE_LIST: Final = 616
OP_INSTANCE_LIST: Final = 621
OP_CLIENT_LIST: Final = 631
OP_DECISION_OVER_NODE: Final = 641
OP_LIST_ROUTERS: Final = 651
OP_CREATE_ROUTER: Final = 652
OP_REMOVE_ROUTER: Final = 653
OP_LIST_BINDINGS: Final = 661
OP_ADD_BINDING: Final = 662
OP_REMOVE_BINDING: Final = 663


class Operation(IntEnum):
    """Content types of Server messages from a client, with the numbers on the wire (F19).

    DECISION_OVER_NODE is reserved between nodes and no client sends it (F63).
    """

    JOIN = OP_JOIN
    LEAVE = OP_LEAVE
    CREATE_CHANNEL = OP_CREATE_CHANNEL
    REMOVE_CHANNEL = OP_REMOVE_CHANNEL
    CHANNEL_INFORMATION = OP_CHANNEL_INFORMATION
    CHANNEL_LIST = OP_CHANNEL_LIST
    CHANNEL_CONSUMERS = OP_CHANNEL_CONSUMERS
    CREATE_QUEUE = OP_CREATE_QUEUE
    REMOVE_QUEUE = OP_REMOVE_QUEUE
    UPDATE_QUEUE = OP_UPDATE_QUEUE
    CLEAR_MESSAGES = OP_CLEAR_MESSAGES
    QUEUE_INFORMATION = OP_QUEUE_INFORMATION
    QUEUE_LIST = OP_QUEUE_LIST
    INSTANCE_LIST = OP_INSTANCE_LIST
    CLIENT_LIST = OP_CLIENT_LIST
    DECISION_OVER_NODE = OP_DECISION_OVER_NODE
    LIST_ROUTERS = OP_LIST_ROUTERS
    CREATE_ROUTER = OP_CREATE_ROUTER
    REMOVE_ROUTER = OP_REMOVE_ROUTER
    LIST_BINDINGS = OP_LIST_BINDINGS
    ADD_BINDING = OP_ADD_BINDING
    REMOVE_BINDING = OP_REMOVE_BINDING


# --- Operations, the specification's numbers ("Server Operations") ------------------------------


class DocumentOperation(IntEnum):
    """The same operations as the specification numbers them.

    No released program sends them (F19), but a server understands both sets, which do not overlap
    (see :class:`Operation`).  101 is HELLO only as the first message of a connection; later it is
    CREATE_CHANNEL.  202 from a client is UPDATE_QUEUE; ACCEPTED only ever comes from a server.
    """

    CREATE_CHANNEL = 101
    REMOVE_CHANNEL = 103
    CHANNEL_LIST = 104
    CHANNEL_INFORMATION = 105
    JOIN = 110
    LEAVE = 111
    CREATE_QUEUE = 201
    UPDATE_QUEUE = 202
    REMOVE_QUEUE = 203
    QUEUE_LIST = 204
    QUEUE_INFORMATION = 205
    INSTANCE_LIST = 301
    CLIENT_LIST = 302


#: From the specification's number to the wire's, for a server that reads both.
WIRE_OPERATION_OF_DOCUMENT: Final[dict[int, int]] = {
    DocumentOperation.CREATE_CHANNEL.value: OP_CREATE_CHANNEL,
    DocumentOperation.REMOVE_CHANNEL.value: OP_REMOVE_CHANNEL,
    DocumentOperation.CHANNEL_LIST.value: OP_CHANNEL_LIST,
    DocumentOperation.CHANNEL_INFORMATION.value: OP_CHANNEL_INFORMATION,
    DocumentOperation.JOIN.value: OP_JOIN,
    DocumentOperation.LEAVE.value: OP_LEAVE,
    DocumentOperation.CREATE_QUEUE.value: OP_CREATE_QUEUE,
    DocumentOperation.UPDATE_QUEUE.value: OP_UPDATE_QUEUE,
    DocumentOperation.REMOVE_QUEUE.value: OP_REMOVE_QUEUE,
    DocumentOperation.QUEUE_LIST.value: OP_QUEUE_LIST,
    DocumentOperation.QUEUE_INFORMATION.value: OP_QUEUE_INFORMATION,
    DocumentOperation.INSTANCE_LIST.value: OP_INSTANCE_LIST,
    DocumentOperation.CLIENT_LIST.value: OP_CLIENT_LIST,
}

#: From the wire's number to the specification's; 607, 613 and the router operations have none.
DOCUMENT_OPERATION_OF_WIRE: Final[dict[int, int]] = {
    wire: document for document, wire in WIRE_OPERATION_OF_DOCUMENT.items()
}

# --- Queue statuses (specification, "Queue Statuses"; F55, F68, F72, F130) ----------------------

STATUS_BROADCAST: Final = 0
STATUS_PUSH: Final = 1
STATUS_ROUND_ROBIN: Final = 2
STATUS_PULL: Final = 3
STATUS_CACHE: Final = 4
STATUS_PAUSED: Final = 5
STATUS_STOPPED: Final = 6


class QueueStatus(IntEnum):
    """The status of a queue; the number is the JSON property ``Status``.

    The numbers are the specification's and the original server's.  The original v3 client counts
    Paused as 4 and Stopped as 5 (F72): it uses these numbers with another meaning.
    """

    BROADCAST = STATUS_BROADCAST
    PUSH = STATUS_PUSH
    ROUND_ROBIN = STATUS_ROUND_ROBIN
    PULL = STATUS_PULL
    CACHE = STATUS_CACHE
    PAUSED = STATUS_PAUSED
    STOPPED = STATUS_STOPPED


#: The words of the header Queue-Status, in lower case, each with its status (F55).
STATUS_HEADER_WORDS: Final[dict[str, QueueStatus]] = {
    "broadcast": QueueStatus.BROADCAST,
    "push": QueueStatus.PUSH,
    "round": QueueStatus.ROUND_ROBIN,
    "roundrobin": QueueStatus.ROUND_ROBIN,
    "round-robin": QueueStatus.ROUND_ROBIN,
    "pull": QueueStatus.PULL,
    "cache": QueueStatus.CACHE,
    "pause": QueueStatus.PAUSED,
    "paused": QueueStatus.PAUSED,
    "stop": QueueStatus.STOPPED,
    "stoped": QueueStatus.STOPPED,
    "stopped": QueueStatus.STOPPED,
}

#: The property Status of a queue event, by status number (F130).
STATUS_EVENT_WORDS: Final = (
    "Broadcast",
    "Push",
    "RoundRobin",
    "Pull",
    "Cache",
    "Paused",
    "Stopped",
)

#: The property Status of queue information, by status number (F68).  Each is a header word too.
STATUS_INFORMATION_WORDS: Final = tuple(word.lower() for word in STATUS_EVENT_WORDS)


def queue_status_from_word(word: str) -> QueueStatus | None:
    """Return the status that *word* names, or None for a word the protocol does not know.

    Reads the header Queue-Status and both Status properties, in any case (F55).  The original
    server treats an unknown word as broadcast; callers that need this do it themselves.
    """
    return STATUS_HEADER_WORDS.get(word.lower())


# --- Header names (specification, "Queues and Messaging"; F7, F8) -------------------------------

HEADER_CHANNEL_NAME: Final = "Channel-Name"
HEADER_QUEUE_ID: Final = "Queue-Id"
HEADER_QUEUE_STATUS: Final = "Queue-Status"
HEADER_QUEUE_TAG: Final = "Queue-Tag"
HEADER_DELIVERY_HANDLER: Final = "Delivery-Handler"
HEADER_WAIT_FOR_ACKNOWLEDGE: Final = "Wait-For-Acknowledge"
HEADER_NACK_REASON: Final = "Nack-Reason"
HEADER_REQUEST_ID: Final = "Request-Id"
HEADER_INDEX: Final = "Index"
HEADER_COUNT: Final = "Count"
HEADER_PRIORITY_MESSAGES: Final = "Priority-Messages"
HEADER_MESSAGES: Final = "Messages"
HEADER_NO_CONTENT: Final = "No-Content"
HEADER_CC: Final = "CC"


class HeaderName(StrEnum):
    """Keys of header lines, and of the connection information (``CLIENT_...``; F29).

    Look-ups ignore the case; write these spellings (F8).
    """

    CHANNEL_NAME = HEADER_CHANNEL_NAME
    CHANNEL_TOPIC = "Channel-Topic"
    QUEUE_ID = HEADER_QUEUE_ID
    QUEUE_STATUS = HEADER_QUEUE_STATUS
    QUEUE_TAG = HEADER_QUEUE_TAG
    DELIVERY_HANDLER = HEADER_DELIVERY_HANDLER
    WAIT_FOR_ACKNOWLEDGE = HEADER_WAIT_FOR_ACKNOWLEDGE
    NACK_REASON = HEADER_NACK_REASON
    REQUEST_ID = HEADER_REQUEST_ID
    INDEX = HEADER_INDEX
    COUNT = HEADER_COUNT
    ORDER = "Order"
    CLEAR = "Clear"
    INFO = "Info"
    PRIORITY_MESSAGES = HEADER_PRIORITY_MESSAGES
    MESSAGES = HEADER_MESSAGES
    NO_CONTENT = HEADER_NO_CONTENT
    CC = HEADER_CC
    ROUTE_METHOD = "Route-Method"
    BINDING_NAME = "Binding-Name"
    CLIENT_ID = "Client-Id"
    CLIENT_NAME = "Client-Name"
    CLIENT_TYPE = "Client-Type"
    CLIENT_TOKEN = "Client-Token"


#: The method on the first line of the connection information (F27).
HELLO_METHOD: Final = "CONNECT"
#: The Client-Type with which a node joins another node (F133).
NODE_CLIENT_TYPE: Final = "server"

#: The true value of Info, Priority-Messages and Messages in a request; read in any case (F58).
HEADER_VALUE_YES: Final = "yes"
#: The value of Order that asks for the newest message first; first in first out is the default.
ORDER_LIFO: Final = "LIFO"


class PullClear(StrEnum):
    """Values of the header Clear of a pull request, read in any case (F104)."""

    NONE = "none"
    ALL = "all"
    HIGH_PRIORITY = "High-Priority"
    DEFAULT_PRIORITY = "Default-Priority"


# --- Negative acknowledges and pull endings (F81, F105-F108) ------------------------------------

NACK_NONE: Final = "none"
NACK_ERROR: Final = "error"
NACK_NO_CONSUMERS: Final = "no-consumers"
NACK_TIMEOUT: Final = "timeout"


class NackReason(StrEnum):
    """Known values of the header Nack-Reason.

    Any text is allowed: the *presence* of the header makes an acknowledgement negative (F81).
    """

    NONE = NACK_NONE
    ERROR = NACK_ERROR
    NO_CONSUMERS = NACK_NO_CONSUMERS
    TIMEOUT = NACK_TIMEOUT


class NoContent(StrEnum):
    """Values of the header No-Content, which ends a pull (F105-F108)."""

    EMPTY = "Empty"
    UNACCEPTABLE = "Unacceptable"
    UNAUTHORIZED = "Unauthorized"
    NO_CHANNEL = "No-Channel"
    NO_QUEUE = "No-Queue"
    ID_REQUIRED = "Id-Required"
    END = "End"


# --- Events (specification, "Events"; F127-F131) ------------------------------------------------

#: Content types of an Event message from a client (F127).
EVENT_UNSUBSCRIBE: Final = 0
EVENT_SUBSCRIBE: Final = 1


class EventName(StrEnum):
    """Names of events, exact in case: ten of the specification and two about nodes (F131)."""

    CLIENT_CONNECTED = "ClientConnected"
    CLIENT_DISCONNECTED = "ClientDisconnected"
    CLIENT_JOINED = "ClientJoined"
    CLIENT_LEFT = "ClientLeft"
    CHANNEL_CREATED = "ChannelCreated"
    CHANNEL_REMOVED = "ChannelRemoved"
    QUEUE_CREATED = "QueueCreated"
    QUEUE_UPDATED = "QueueUpdated"
    QUEUE_REMOVED = "QueueRemoved"
    MESSAGE_PRODUCED = "MessageProduced"
    NODE_CONNECTED = "NodeConnected"
    NODE_DISCONNECTED = "NodeDisconnected"


# --- Routers, bindings (F120) -------------------------------------------------------------------


class RouteMethod(IntEnum):
    """How a router, or a direct binding, picks receivers; the header Route-Method (F120)."""

    DISTRIBUTE = 0
    ROUND_ROBIN = 1
    ONLY_FIRST = 2


class BindingType(IntEnum):
    """What a binding sends to (F120)."""

    DIRECT = 0
    QUEUE = 1
    HTTP = 2
    TAG = 3


class BindingInteraction(IntEnum):
    """What a routed message asks of the receiver (F120)."""

    NONE = 0
    ACKNOWLEDGE = 1
    RESPONSE = 2


class BindingHttpMethod(IntEnum):
    """The content type of an HTTP binding (F120)."""

    GET = 0
    POST = 1
    PUT = 2
    PATCH = 3
    DELETE = 4


# --- Decisions of a delivery handler (specification, "Decisions"; F103) -------------------------

PUT_BACK_NO: Final = 0
PUT_BACK_START: Final = 1
PUT_BACK_END: Final = 2


class PutBack(IntEnum):
    """Where a message goes that was not settled (F98, F103)."""

    NO = PUT_BACK_NO
    START = PUT_BACK_START
    END = PUT_BACK_END


DECIDE_ACK_NONE: Final = 0
DECIDE_ACK_ALWAYS: Final = 1
DECIDE_ACK_IF_SAVED: Final = 2
DECIDE_ACK_NEGATIVE: Final = 3


class AcknowledgeDecision(IntEnum):
    """What a step of the delivery tells the producer (F103)."""

    NONE = DECIDE_ACK_NONE
    ALWAYS = DECIDE_ACK_ALWAYS
    IF_SAVED = DECIDE_ACK_IF_SAVED
    NEGATIVE = DECIDE_ACK_NEGATIVE


# --- Names and targets (F47, F113) --------------------------------------------------------------

#: Characters that a channel or router name must not contain (F47).
FORBIDDEN_NAME_CHARACTERS: Final = "@ ;*"
#: Targets of a direct message that name many clients; lower case and without quotes (F113).
TARGET_NAME_PREFIX: Final = "@name:"
TARGET_TYPE_PREFIX: Final = "@type:"
