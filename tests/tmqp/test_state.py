"""The walk over the state table: every input in every state, by real bytes and calls.

B1: a connection is driven into each of its states by legal means, then each input is applied as it
would happen, and only four outcomes may exist: it moved as the table says, it ignored what can
be ignored, it ended with a violation and is dead, or the program was told of its misuse and nothing
changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from tmqp import (
    Connection,
    ConnectionClosed,
    ConnectionInformation,
    Event,
    Frame,
    Limits,
    LocalProtocolError,
    MessageType,
    ProtocolViolated,
    RemoteProtocolError,
    Role,
    State,
)
from tmqp.state import (
    CLIENT_CELLS,
    INPUT_OF_TYPE,
    SERVER_CELLS,
    STATE_BITS,
    STATE_MASK,
    TABLE,
    WIDTH,
    Action,
    Input,
)

HELLO: Final = Frame.build(0x10, "", 101, b"CONNECT /\r\nClient-Id: c\r\n").raw
ACCEPTED: Final = Frame.build(0x10, "c", 202).raw
PREAMBLE: Final = b"TMQP/2.0"
PARTIAL: Final = b"\x11\x10\0"

STATES: Final = {
    Role.SERVER: (
        State.AWAIT_PREAMBLE,
        State.AWAIT_HELLO,
        State.AWAIT_DECISION,
        State.OPEN,
        State.CLOSED,
    ),
    Role.CLIENT: (
        State.IDLE,
        State.AWAIT_REPLY,
        State.AWAIT_ACCEPT,
        State.OPEN,
        State.CLOSED,
    ),
}
MESSAGES: Final = [Input(INPUT_OF_TYPE[int(kind)]) for kind in MessageType] + [Input.UNKNOWN_TYPE]
FROM_PROGRAM: Final = (Input.INITIATE, Input.ACCEPT, Input.REFUSE, Input.SEND, Input.CLOSE)
#: Where the peer's eight bytes have not come, everything else is a wrong preamble.
BEFORE_PREAMBLE: Final = (State.AWAIT_PREAMBLE, State.AWAIT_REPLY)
HANDSHAKE: Final = frozenset(State) - {State.OPEN, State.CLOSED}


def initiate(connection: Connection) -> None:
    """The program of a client introduces itself."""
    connection.initiate(ConnectionInformation("c"))


def send(connection: Connection) -> None:
    """The program sends a message."""
    connection.send(Frame.build(0x11, "orders"))


def drive(role: Role, state: State) -> Connection:
    """A connection of that role in that state, brought there as the protocol does."""
    connection = Connection(role, Limits(max_early_bytes=100))
    if state == State.CLOSED:
        connection.close()
    elif state == State.OPEN and role == Role.SERVER:
        connection.receive(PREAMBLE + HELLO, 0.0)
        connection.accept("c")
    elif state == State.OPEN:
        connection.initiate(ConnectionInformation("c"))
        connection.receive(PREAMBLE + ACCEPTED, 0.0)
    elif state == State.AWAIT_HELLO:
        connection.receive(PREAMBLE, 0.0)
    elif state == State.AWAIT_DECISION:
        connection.receive(PREAMBLE + HELLO, 0.0)
    elif state == State.AWAIT_REPLY:
        connection.initiate(ConnectionInformation("c"))
    elif state == State.AWAIT_ACCEPT:
        connection.initiate(ConnectionInformation("c"))
        connection.receive(PREAMBLE, 0.0)
    connection.data_to_send()
    assert connection.state == state
    return connection


def frame_bytes(item: Input) -> bytes:
    """A message of the type that is this input."""
    kind = 0x3F if item == Input.UNKNOWN_TYPE else int(MessageType[item.name])
    return Frame.build(kind, message_id="m").raw


def tear(connection: Connection) -> list[Event]:
    """The stream ends inside a message, or inside the preamble."""
    piece = b"TMQ" if connection.state in BEFORE_PREAMBLE else PARTIAL
    if connection.state != State.IDLE:
        assert connection.receive(piece, 0.0) == []
    return connection.receive_eof(0.0)


def keep_silent(connection: Connection) -> list[Event]:
    """Let the time come at which silence is noticed."""
    due = connection.next_deadline()
    return connection.on_deadline(1e9 if due is None else due)


def die(connection: Connection) -> list[Event]:
    """Let the time come at which silence is too long."""
    return keep_silent(connection) + keep_silent(connection)


STIMULI: Final[dict[Input, Callable[[Connection], list[Event] | None]]] = {
    **{
        item: lambda connection, item=item: connection.receive(  # type: ignore[misc]
            frame_bytes(item), 0.0
        )
        for item in MESSAGES
    },
    Input.PREAMBLE: lambda connection: connection.receive(PREAMBLE, 0.0),
    Input.WRONG_PREAMBLE: lambda connection: connection.receive(b"GET / HTTP/1.1\r\n\r\n", 0.0),
    Input.HELLO: lambda connection: connection.receive(HELLO, 0.0),
    Input.ACCEPTED: lambda connection: connection.receive(ACCEPTED, 0.0),
    Input.REFUSED: lambda connection: connection.receive(Frame.build(0x10, "", 401).raw, 0.0),
    Input.FAULT: lambda connection: connection.reject(RemoteProtocolError("rule", "a fault")),
    Input.END: lambda connection: connection.receive_eof(0.0),
    Input.TORN: tear,
    Input.HANDSHAKE_EXPIRED: lambda connection: connection.on_deadline(10.0),
    Input.SILENCE: keep_silent,
    Input.LIFELESS: die,
    Input.INITIATE: initiate,
    Input.ACCEPT: lambda connection: connection.accept("c"),
    Input.REFUSE: lambda connection: connection.refuse(401),
    Input.SEND: send,
    Input.CLOSE: lambda connection: connection.close(),
}


def meaning(role: Role, state: State, item: Input) -> Input | None:
    """Which input a stimulus *is* in this state; None if it is none: bytes that wait for more.

    What bytes mean depends on where the connection stands, so some cells can never be looked up;
    :func:`test_cells_that_cannot_be_reached_hold_nothing` checks that nothing lurks in them.
    """
    if item in FROM_PROGRAM or item in (Input.FAULT, Input.END) or state == State.CLOSED:
        return item
    if item == Input.TORN:
        torn_anywhere = state not in (State.IDLE, State.AWAIT_DECISION)
        return Input.TORN if torn_anywhere else Input.END
    if item in (Input.HANDSHAKE_EXPIRED, Input.SILENCE, Input.LIFELESS):
        if state in HANDSHAKE:
            return Input.HANDSHAKE_EXPIRED
        return None if item == Input.HANDSHAKE_EXPIRED else item
    # From here on: bytes.
    if state == State.IDLE:
        return Input.FAULT  # the server may not speak first
    if state == State.AWAIT_DECISION:
        return None  # held until the program has decided
    if state in BEFORE_PREAMBLE:
        return item if item == Input.PREAMBLE else Input.WRONG_PREAMBLE
    if item in (Input.PREAMBLE, Input.WRONG_PREAMBLE):
        return None  # the beginning of a frame
    if item == Input.HELLO:
        return item if state == State.AWAIT_HELLO else Input.SERVER
    if item in (Input.ACCEPTED, Input.REFUSED):
        return item if state == State.AWAIT_ACCEPT else Input.SERVER
    return item


def cell(role: Role, state: State, item: Input) -> tuple[Action, State]:
    """What the readable table says, its silence included."""
    default = (Action.MISUSE, state) if item in FROM_PROGRAM else (Action.VIOLATE, State.CLOSED)
    return TABLE[role].get(state, {}).get(item, default)


def outcome_of(connection: Connection, item: Input) -> tuple[str, list[Event], bytes]:
    """Apply an input and say in one word what came of it."""
    before = connection.state
    try:
        result = STIMULI[item](connection)
    except LocalProtocolError:
        return "misuse", [], connection.data_to_send()
    events = result or []
    sent = connection.data_to_send()
    if any(isinstance(event, ProtocolViolated) for event in events):
        return "violation", events, sent
    if connection.state != before or events or sent:
        return "moved", events, sent
    return "nothing", events, sent


@pytest.mark.parametrize(
    ("role", "state"), [(role, state) for role in Role for state in STATES[role]]
)
def test_every_input_in_every_state_does_what_the_table_says(role: Role, state: State) -> None:
    for item in Input:
        connection = drive(role, state)
        word, events, sent = outcome_of(connection, item)
        meant = meaning(role, state, item)
        where = f"{role.name} {state.name} {item.name}: {word} {events!r}"
        if meant is None:
            assert (word, connection.state) == ("nothing", state), where
            continue
        action, following = cell(role, state, meant)
        assert connection.state == following, where
        if action == Action.VIOLATE:
            assert word == "violation", where
            assert [type(event) for event in events[-2:]] == [ProtocolViolated, ConnectionClosed]
            assert isinstance(connection.error, RemoteProtocolError)
        elif action == Action.MISUSE:
            assert (word, sent) == ("misuse", b""), where
        elif action == Action.IGNORE:
            assert word == "nothing", where
        else:
            assert word == "moved", where
        if connection.state == State.CLOSED:
            assert_dead(connection)
        if state != State.CLOSED and following == State.CLOSED:
            assert isinstance(events[-1], ConnectionClosed), where
            assert sum(isinstance(event, ConnectionClosed) for event in events) == 1


def assert_dead(connection: Connection) -> None:
    """A closed connection ignores the peer and the clock, and refuses the program."""
    assert connection.receive(PREAMBLE, 1.0) == []
    assert connection.receive_eof(1.0) == []
    assert connection.next_deadline() is None
    assert connection.on_deadline(1e9) == []
    assert connection.close() == []
    assert connection.reject(RemoteProtocolError("rule", "again")) == []
    with pytest.raises(LocalProtocolError, match="CLOSED"):
        connection.send(Frame.build(0x11))
    assert connection.data_to_send() == b""
    assert connection.state == State.CLOSED


def test_the_walk_visits_every_cell_and_counts_them() -> None:
    """Of the cells a state of a role can have, each is either applied as itself, or is listed here
    as one that no bytes, call or time can be in that state."""
    applied: set[tuple[Role, State, Input]] = set()
    for role in Role:
        for state in STATES[role]:
            for item in Input:
                meant = meaning(role, state, item)
                if meant is not None:
                    applied.add((role, state, meant))
    assert set(STIMULI) == set(Input)
    total = sum(len(STATES[role]) * len(Input) for role in Role)
    print(f"\n{total} stimuli; {len(applied)} different cells were looked up by them")
    assert total == 290
    named = {
        (role, state, item)
        for role, rows in TABLE.items()
        for state, row in rows.items()
        for item in row
    }
    assert named <= applied, f"in the table, but no input is ever that: {named - applied}"


def test_cells_that_cannot_be_reached_hold_nothing() -> None:
    """A state of the other role has no row, and so only refusals."""
    for role, cells in ((Role.SERVER, SERVER_CELLS), (Role.CLIENT, CLIENT_CELLS)):
        for state in State:
            if state in STATES[role]:
                continue
            assert state not in TABLE[role]
            for item in Input:
                value = cells[int(state) * WIDTH + int(item)]
                action = Action(value >> STATE_BITS)
                assert action == (Action.MISUSE if item in FROM_PROGRAM else Action.VIOLATE)


def test_the_flat_lists_say_what_the_table_says() -> None:
    for role, cells in ((Role.SERVER, SERVER_CELLS), (Role.CLIENT, CLIENT_CELLS)):
        assert len(cells) == len(State) * WIDTH
        for state in State:
            for item in Input:
                value = cells[int(state) * WIDTH + int(item)]
                assert (Action(value >> STATE_BITS), State(value & STATE_MASK)) == cell(
                    role, state, item
                )
    assert max(State) <= STATE_MASK
    assert len(Input) == WIDTH


def test_the_table_never_reopens_what_is_closed() -> None:
    for role in Role:
        for action, following in TABLE[role][State.CLOSED].values():
            assert (action, following) == (Action.IGNORE, State.CLOSED)


def test_every_action_but_the_silent_ones_is_used_by_the_table() -> None:
    used = {
        action for rows in TABLE.values() for row in rows.values() for action, _ in row.values()
    }
    # MISUSE is what the table does not say.
    assert used == set(Action) - {Action.MISUSE}


def test_each_type_is_its_own_input_and_unknown_ones_share_one() -> None:
    for kind in range(64):
        known = {int(member): member.name for member in MessageType}
        assert Input(INPUT_OF_TYPE[kind]).name == known.get(kind, "UNKNOWN_TYPE")
    assert len(INPUT_OF_TYPE) == 64


def test_what_was_held_while_the_program_decided_is_read_after_it_accepted() -> None:
    connection = drive(Role.SERVER, State.AWAIT_DECISION)
    for item in (Input.PING, Input.CUSTOM):
        assert connection.receive(frame_bytes(item), 0.0) == []
    names = [type(event).__name__ for event in connection.accept("c")]
    assert names == ["PingReceived", "CustomMessageReceived"]
