"""Every change of a connection's state: one readable table, flattened at import.

Theory of operation.  A connection is in one :class:`State`; whatever happens to it (a message of
some type arrived, the stream ended, time ran out, the program called a method) is one
:class:`Input`.  For each role, state and input the table has the :class:`Action` to carry out and
the next state.  An input that the table does not have is not allowed: from the peer it is a
violation, which ends the connection; from the program it is a mistake, which raises an error and
changes nothing.

``docs/states.svg`` is drawn from :data:`TABLE`, and a test walks every cell of it.  The hot path
reads :data:`SERVER_CELLS` and :data:`CLIENT_CELLS` instead: flat lists, indexed by ``state * WIDTH
+ input``, of numbers that combine the action and the next state.  A test compares them with the
table.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from tmqp.constants import MessageType

__all__ = [
    "CLIENT_CELLS",
    "INPUT_OF_TYPE",
    "SERVER_CELLS",
    "STATE_BITS",
    "STATE_MASK",
    "TABLE",
    "WIDTH",
    "Action",
    "Input",
    "Role",
    "State",
]


class Role(IntEnum):
    """The side of a connection: client or server."""

    CLIENT = 0
    SERVER = 1


class State(IntEnum):
    """The state of a connection."""

    IDLE = 0
    """Client: nothing sent yet."""
    AWAIT_PREAMBLE = 1
    """Server: the client's eight bytes are not complete."""
    AWAIT_HELLO = 2
    """Server: the preamble is answered; the connection information has not come."""
    AWAIT_DECISION = 3
    """Server: the program must accept or refuse the client."""
    AWAIT_REPLY = 4
    """Client: preamble and connection information are sent; the server's eight bytes are not
    complete."""
    AWAIT_ACCEPT = 5
    """Client: the protocol is agreed; the server has not yet said whether it accepts."""
    OPEN = 6
    """Messages flow."""
    CLOSED = 7
    """Nothing more is read or written."""


class Input(IntEnum):
    """What can happen to a connection."""

    # from the peer: one per message type (F16), in front so that INPUT_OF_TYPE is easy to read
    CUSTOM = 0
    TERMINATE = 1
    PING = 2
    PONG = 3
    SERVER = 4
    QUEUE_MESSAGE = 5
    DIRECT_MESSAGE = 6
    ACKNOWLEDGE = 7
    RESPONSE = 8
    PULL_REQUEST = 9
    EVENT = 10
    ROUTER = 11
    UNKNOWN_TYPE = 12
    # from the peer: not a message, or a message that means more
    PREAMBLE = 13
    WRONG_PREAMBLE = 14
    HELLO = 15
    ACCEPTED = 16
    REFUSED = 17
    FAULT = 18
    """The bytes break a rule of the frame, a limit or the form of the connection information."""
    END = 19
    """The stream ended between two messages."""
    TORN = 20
    """The stream ended inside a message."""
    # from the clock
    HANDSHAKE_EXPIRED = 21
    SILENCE = 22
    LIFELESS = 23
    # from the program
    INITIATE = 24
    ACCEPT = 25
    REFUSE = 26
    SEND = 27
    CLOSE = 28


class Action(IntEnum):
    """What a connection does about an input."""

    VIOLATE = 0
    """The peer broke a rule: say so, close."""
    MISUSE = 1
    """The program asked for what this state forbids: raise, change nothing."""
    IGNORE = 2
    """Nothing happens (only in CLOSED)."""
    DROP = 3
    """The message is legal, but nobody's business (F17): tell the program, go on."""
    DELIVER = 4
    """Hand the message to the program."""
    ANSWER_PREAMBLE = 5
    CONFIRM_PREAMBLE = 6
    RECEIVE_HELLO = 7
    RECEIVE_ACCEPT = 8
    RECEIVE_REFUSAL = 9
    ANSWER_PING = 10
    NOTE_PONG = 11
    RECEIVE_TERMINATE = 12
    END_STREAM = 13
    SEND_PING = 14
    INITIATE = 15
    ACCEPT = 16
    REFUSE = 17
    SEND = 18
    CLOSE = 19


WIDTH: Final = len(Input)
STATE_BITS: Final = 4
STATE_MASK: Final = 15

_FROM_PROGRAM: Final = (Input.INITIATE, Input.ACCEPT, Input.REFUSE, Input.SEND, Input.CLOSE)

_Row = dict[Input, tuple[Action, State]]


def _always() -> _Row:
    """The row entries of every state of an open connection."""
    return {
        Input.END: (Action.END_STREAM, State.CLOSED),
        Input.CLOSE: (Action.CLOSE, State.CLOSED),
    }


def _handshake() -> _Row:
    return {**_always(), Input.HANDSHAKE_EXPIRED: (Action.VIOLATE, State.CLOSED)}


def _flowing(state: State) -> _Row:
    """The row entries of all states in which messages flow, for both roles; ``state`` is kept."""
    return {
        **_always(),
        Input.TERMINATE: (Action.RECEIVE_TERMINATE, State.CLOSED),
        Input.PING: (Action.ANSWER_PING, state),
        Input.PONG: (Action.NOTE_PONG, state),
        Input.CUSTOM: (Action.DELIVER, state),
        Input.SERVER: (Action.DELIVER, state),
        Input.QUEUE_MESSAGE: (Action.DELIVER, state),
        Input.DIRECT_MESSAGE: (Action.DELIVER, state),
        Input.ACKNOWLEDGE: (Action.DELIVER, state),
        Input.RESPONSE: (Action.DELIVER, state),
        Input.EVENT: (Action.DELIVER, state),
        Input.ROUTER: (Action.DELIVER, state),
        Input.UNKNOWN_TYPE: (Action.DROP, state),
        Input.SEND: (Action.SEND, state),
    }


def _closed() -> _Row:
    """The row of a closed connection: it ignores everything, and may be closed again."""
    row: _Row = {item: (Action.IGNORE, State.CLOSED) for item in Input if item not in _FROM_PROGRAM}
    row[Input.CLOSE] = (Action.IGNORE, State.CLOSED)
    return row


_SERVER: dict[State, _Row] = {
    State.AWAIT_PREAMBLE: {
        **_handshake(),
        Input.PREAMBLE: (Action.ANSWER_PREAMBLE, State.AWAIT_HELLO),
    },
    State.AWAIT_HELLO: {
        **_handshake(),
        Input.HELLO: (Action.RECEIVE_HELLO, State.AWAIT_DECISION),
        Input.TERMINATE: (Action.RECEIVE_TERMINATE, State.CLOSED),
    },
    State.AWAIT_DECISION: {
        **_handshake(),
        Input.ACCEPT: (Action.ACCEPT, State.OPEN),
        Input.REFUSE: (Action.REFUSE, State.CLOSED),
    },
    State.OPEN: {
        **_flowing(State.OPEN),
        Input.PULL_REQUEST: (Action.DELIVER, State.OPEN),
        Input.SILENCE: (Action.SEND_PING, State.OPEN),
    },
    State.CLOSED: _closed(),
}

_CLIENT: dict[State, _Row] = {
    State.IDLE: {
        Input.INITIATE: (Action.INITIATE, State.AWAIT_REPLY),
        **_handshake(),
    },
    State.AWAIT_REPLY: {
        **_handshake(),
        Input.PREAMBLE: (Action.CONFIRM_PREAMBLE, State.AWAIT_ACCEPT),
        # A client need not wait for anything before it sends (F21, F35).
        Input.SEND: (Action.SEND, State.AWAIT_REPLY),
    },
    State.AWAIT_ACCEPT: {
        **_handshake(),
        **_flowing(State.AWAIT_ACCEPT),
        Input.PULL_REQUEST: (Action.DROP, State.AWAIT_ACCEPT),
        Input.ACCEPTED: (Action.RECEIVE_ACCEPT, State.OPEN),
        Input.REFUSED: (Action.RECEIVE_REFUSAL, State.CLOSED),
    },
    State.OPEN: {
        **_flowing(State.OPEN),
        Input.PULL_REQUEST: (Action.DROP, State.OPEN),
        Input.SILENCE: (Action.SEND_PING, State.OPEN),
    },
    State.CLOSED: _closed(),
}

#: Role -> state -> input -> (action, next state); a missing input is VIOLATE or MISUSE.
TABLE: Final[dict[Role, dict[State, _Row]]] = {Role.SERVER: _SERVER, Role.CLIENT: _CLIENT}


def _flatten(rows: dict[State, _Row]) -> list[int]:
    cells: list[int] = []
    for state in State:
        row = rows.get(state, {})
        for item in Input:
            if item in row:
                action, following = row[item]
            elif item in _FROM_PROGRAM:
                action, following = Action.MISUSE, state
            else:
                action, following = Action.VIOLATE, State.CLOSED
            cells.append(int(action) << STATE_BITS | int(following))
    return cells


SERVER_CELLS: Final = _flatten(_SERVER)
CLIENT_CELLS: Final = _flatten(_CLIENT)

#: The input of a message of each of the 64 types.
INPUT_OF_TYPE: Final = [
    int(Input[MessageType(number).name])
    if number in MessageType._value2member_map_
    else int(Input.UNKNOWN_TYPE)
    for number in range(64)
]
