"""Connects and disconnects clients, and tracks which of them read."""

from __future__ import annotations

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_BUSY,
    RESULT_NOT_FOUND,
    RESULT_OK,
)
from tmqp.names import fault_of_name
from tmqp_server.engine.books import session_bytes
from tmqp_server.engine.commands import (
    Block,
    CloseBranch,
    Command,
    Connect,
    Disconnect,
    OpenBranch,
    Unblock,
    connection_of,
)
from tmqp_server.engine.core import Core, Performers
from tmqp_server.engine.delivery.holding import Holding
from tmqp_server.engine.delivery.pulls import Puller
from tmqp_server.engine.delivery.sending import Sender
from tmqp_server.engine.effects import (
    Accept,
    BranchClosed,
    BranchOpened,
    CloseSession,
    Refuse,
    Reply,
)
from tmqp_server.engine.events import CLIENT_CONNECTED, CLIENT_DISCONNECTED
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.operations.administration import Administration
from tmqp_server.engine.operations.branches import with_branches
from tmqp_server.engine.reading.browsing import Browsing
from tmqp_server.engine.reading.readers import Readers
from tmqp_server.engine.reading.watching import Watching

__all__ = ["Clients"]


class Clients:
    """Begins and ends sessions."""

    __slots__ = (
        "_administration",
        "_browsing",
        "_core",
        "_holding",
        "_puller",
        "_readers",
        "_sender",
        "_watching",
    )

    def __init__(
        self,
        core: Core,
        administration: Administration,
        puller: Puller,
        readers: Readers,
        watching: Watching,
        browsing: Browsing,
        sender: Sender,
        holding: Holding,
    ) -> None:
        self._core = core
        self._administration = administration
        self._puller = puller
        self._readers = readers
        self._watching = watching
        self._browsing = browsing
        self._sender = sender
        self._holding = holding

    def performers(self) -> Performers:
        """Which method serves which command of a connected session."""
        return {
            Disconnect: self.disconnect,
            Block: self.block,
            Unblock: self.unblock,
            OpenBranch: self.open_branch,
            CloseBranch: self.close_branch,
        }

    def connect(self, command: Connect) -> None:
        """Accept a client, or refuse it (F32, F33)."""
        core = self._core
        if command.session in core.sessions:
            raise ValueError(f"session number {command.session} is in use")
        client_id = command.client_id
        older = core.clients.get(client_id)
        size = session_bytes(client_id, command.name, command.client_type, command.kept)
        code = self._problem(command, older, size)
        if code != RESULT_OK:
            core.out.append(Refuse(command.session, command.request, code, client_id))
            return
        if older is not None:
            self.let_go(older)
            core.out.append(CloseSession(older.number, "another client took over the client id"))
        node = command.node and core.takes_nodes
        session = Session(
            command.session,
            client_id,
            command.name,
            command.client_type,
            command.door,
            command.kept,
            command.authenticated,
            core.now,
            node,
            command.host,
        )
        session.hears_lapses = command.hears_lapses
        session.memory = size
        core.charge(size)
        core.add_session(session)
        core.notify_client(CLIENT_CONNECTED, session)  # before the accept (F36)
        core.out.append(Accept(command.session, command.request, client_id, node))

    def _problem(self, command: Connect, older: Session | None, size: int) -> int:
        """0 if a client can be accepted, otherwise the result code of the refusal."""
        limits = self._core.limits
        client_id = command.client_id
        length = len(client_id.encode("utf-8", "surrogatepass"))
        if not 0 < length <= limits.max_name_bytes or fault_of_name(client_id):
            return RESULT_BAD_REQUEST
        if older is not None:
            return RESULT_OK if command.take_over else RESULT_BUSY
        if self._core.client_count() >= limits.max_sessions:
            return self._core.reached("max_sessions")
        if not self._core.has_room_for_client(size):
            return self._core.reached("max_total_bytes")  # 503 says that the id is in use (F32)
        return RESULT_OK

    def disconnect(self, command: Command, session: Session) -> None:
        """Handle the end of a connection."""
        assert isinstance(command, Disconnect)
        self.let_go(session)

    def let_go(self, session: Session) -> None:
        """Forget a session; its deliveries in flight are returned later, see ``workflow.py``."""
        core = self._core
        if session.branches:
            for branch in list(session.branches.values()):
                self._end_branch(branch)
        session.alive = False
        self._holding.forget(session)
        self._puller.forget(session)
        self._readers.forget(session)
        self._watching.forget(session)
        self._browsing.forget(session)
        core.remove_session(session)
        self._administration.leave_all(session)
        self._administration.remove_owned(session)
        core.notify_client(CLIENT_DISCONNECTED, session)
        core.end_session(session)

    def block(self, command: Command, session: Session) -> None:
        """Record that the session's outbound buffer is full."""
        assert isinstance(command, Block)
        for each in with_branches(session):
            self._sender.block(each, True)

    def unblock(self, command: Command, session: Session) -> None:
        """Record that the session's outbound buffer has drained."""
        assert isinstance(command, Unblock)
        self._readers.unblock(session)
        for each in with_branches(session):
            self._sender.block(each, False)

    # -- branches -------------------------------------------------------------------------------

    def open_branch(self, command: Command, session: Session) -> None:
        """Open a branch of the connection; it is blocked if the connection is."""
        assert isinstance(command, OpenBranch)
        core = self._core
        number = command.branch
        if number in core.sessions or connection_of(number) != session.number:
            raise ValueError(f"session {session.number} cannot open the branch {number}")
        opened = 0 if session.branches is None else len(session.branches)
        size = session_bytes(
            session.client_id, session.name, session.client_type, session.properties
        )
        code = RESULT_OK
        if opened >= core.limits.max_branches_per_session:
            code = core.reached("max_branches_per_session")
        elif not core.has_room_for_client(size):
            code = core.no_room()
        if code != RESULT_OK:
            if command.request is not None:
                core.out.append(Reply(session.number, command.request, code))
            return
        branch = Session(
            number,
            session.client_id,
            session.name,
            session.client_type,
            session.door,
            session.properties,
            session.authenticated,
            core.now,
        )
        branch.memory = size
        branch.blocked = session.blocked
        core.charge(size)
        branch.parent = session
        if session.branches is None:
            session.branches = {}
        branch.hears_lapses = session.hears_lapses
        session.branches[number] = core.sessions[number] = branch
        core.branches += 1
        core.out.append(BranchOpened(session.number, command.request, number))

    def close_branch(self, command: Command, session: Session) -> None:
        """Close a branch of the connection."""
        assert isinstance(command, CloseBranch)
        branches = session.branches
        branch = None if branches is None else branches.get(command.branch)
        if branch is not None:
            self._end_branch(branch)
            effect = BranchClosed(session.number, command.request, command.branch)
            self._core.out.append(effect)
        elif command.request is not None:
            self._core.out.append(Reply(session.number, command.request, RESULT_NOT_FOUND))

    def _end_branch(self, branch: Session) -> None:
        core = self._core
        branch.alive = False
        self._holding.forget(branch)
        self._puller.forget(branch)
        self._readers.forget(branch)
        self._watching.forget(branch)
        self._browsing.forget(branch)
        assert branch.parent is not None, "a branch has a client"
        branches = branch.parent.branches
        assert branches is not None, "it has this branch at least"
        del branches[branch.number], core.sessions[branch.number]
        core.branches -= 1
        self._administration.leave_all(branch)
        core.end_session(branch)
