"""A session of several clients against a server, held against the model after every action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp import ConnectionInformation, Frame, MessageType, Operation
from tmqp.testing.conformance import Patience, Stage, UnreachableError
from tmqp.testing.conformance.lines import Entry, Line, Log
from tmqp_conformance.fuzzing.model import CHANNELS, Act, Delivered, Due, Model, WrongError
from tmqp_conformance.keeper import PROBE

__all__ = ["Session", "play_acts"]

_PING: Final = Frame.build(MessageType.PING, ttl=16).raw
_TERMINATE: Final = Frame.build(MessageType.TERMINATE).raw
_ALL: Final = 1_000
#: The client that drains the queues at the end.
_LAST: Final = "z"
_DRAINS: Final = tuple(Act("join", _LAST, name) for name in CHANNELS)


class Session:
    """Clients, and the model of their queues.

    An action and the following ping are sent in one write: the answer to the ping proves that the
    server has read the action.  The session reads immediately from clients that must get a message.
    It reads from the others when they act, and before an action that widens what is allowed; their
    streams are in order, so surplus messages are detected nevertheless.

    :param suffix: makes the names of this session unique.
    :raises WrongError: (every method) if the server does something that the model does not allow.
    :raises UnreachableError: (every method) if the server does not answer.
    """

    def __init__(self, stage: Stage, suffix: str, patience: Patience) -> None:
        self.model = Model()
        self.acts: list[Act] = []
        self.log = Log(stage)
        self._stage = stage
        self._suffix = suffix
        self._patience = patience
        self._lines: dict[str, Line] = {}
        self._connections = 0
        self._requests = 0
        self._answers: dict[str, int] = {}
        self._leaving = ""
        self._pulling = ""
        self._pulled: list[Frame] = []
        self._came: list[Delivered] = []
        self._confirmed: list[str] = []

    @property
    def entries(self) -> list[Entry]:
        """The traffic on the wire."""
        return self.log.entries

    def begin(self) -> None:
        """Connect the first client, and create the queues."""
        self.do(Act("connect", "a"))
        self._request(
            "a",
            *[
                (Operation.CREATE_QUEUE, name, [("Queue-Id", "1"), ("Queue-Status", status)])
                for name, status in CHANNELS.items()
            ],
        )
        self._settle([])

    def do(self, act: Act) -> None:
        """Carry out an action, if it is possible now, and compare the results with the model."""
        if not self.model.allows(act):
            return
        self.acts.append(act)
        self._carry_out(act)

    def finish(self, timeout_s: float = 0.0) -> None:
        """Drain all queues with a new client: no message may be lost or invented.

        :param timeout_s: wait for this time, until acknowledgements have timed out, so that the
            messages of disconnected clients must return, too; 0 to skip this.
        """
        self._disconnect(sorted(self.model.connected))
        self._carry_out(Act("connect", _LAST))
        self._request(_LAST, *[(Operation.JOIN, act.channel, []) for act in _DRAINS])
        self._settle([due for act in _DRAINS for due in self.model.act(act)])
        for name, status in CHANNELS.items():
            if status == "pull":
                self._carry_out(Act("pull", _LAST, name, _ALL))
        if timeout_s:
            self._stage.wait(timeout_s)
            self._settle(self.model.expire())
        removals: list[tuple[int, str, list[tuple[str, str]]]] = [
            (Operation.REMOVE_CHANNEL, name, []) for name in CHANNELS
        ]
        self._request(_LAST, *removals, allowed=(0, 401))
        self._settle([])

    def close(self) -> None:
        """Leave all connections."""
        for line in self._lines.values():
            line.release()

    # -- actions --------------------------------------------------------------------------------

    def _carry_out(self, act: Act) -> None:
        if act.what == "connect":
            self._connect(act.line)
            self.model.act(act)
        elif act.what == "vanish":
            self._disconnect([act.line])
        elif act.what == "pull":
            self._pull(act)
        elif act.what == "join":
            self._request(act.line, (Operation.JOIN, act.channel, []))
            self._settle(self.model.act(act))
        elif act.what == "leave":
            self._leaving = act.line
            self._request(act.line, (Operation.LEAVE, act.channel, []))
            self._leaving = ""
            self.model.act(act)
            self._settle([])
        elif act.what == "push":
            self._push(act)
        else:
            self._acknowledge(act)

    def _connect(self, name: str) -> None:
        line = Line(name, self._stage.open(name, PROBE), self.log, pongs=True)
        self._lines[name] = line
        self._connections += 1
        information = ConnectionInformation(f"{name}{self._connections}-{self._suffix}")
        hello = Frame.build(MessageType.SERVER, "", 101, information.encode())
        line.send(b"TMQP/2.0" + hello.raw, hello)
        deadline = self._stage.now() + self._patience.answer
        while not line.accepted:
            if line.complaint:
                raise WrongError(line.complaint)
            if not line.receive(deadline - self._stage.now()):
                raise UnreachableError("a new client was not accepted")
        line.seen.clear()

    def _disconnect(self, names: list[str]) -> None:
        """Disconnect clients, all at once, and wait until the server closes."""
        self._hear_all()
        self._settle([])
        gone = [(name, self._lines.pop(name)) for name in names]
        for _, line in gone:
            line.send(_TERMINATE, None)
        deadline = self._stage.now() + self._patience.close
        for name, line in gone:
            while line.receive(deadline - self._stage.now()):
                pass
            ended = line.ended
            line.release()
            if not ended:
                raise WrongError("the server did not close after Terminate")
            # Messages on their way to the client count as delivered to it.
            self._take(name, line)
        came, self._came = self._came, []
        self.model.check_payloads(came)
        for name in names:
            self.model.act(Act("vanish", name))

    def _push(self, act: Act) -> None:
        payload = f"payload of {act.message}".encode()
        frame = Frame.build(
            MessageType.QUEUE_MESSAGE,
            self._name(act.channel),
            1,
            payload,
            message_id=act.message,
            pending_acknowledge=True,
        )
        line = self._lines[act.line]
        self._say(line, frame)
        self._await(act.line, line, lambda: bool(self._confirmed))
        if self._confirmed != [act.message]:
            raise WrongError(f"{act.message} was acknowledged {len(self._confirmed)} times")
        self._confirmed.clear()
        self._settle(self.model.act(act, payload))

    def _acknowledge(self, act: Act) -> None:
        if act.what == "refuse":
            # From here on the message may be redelivered: earlier deliveries must not count as
            # that.
            self._hear_all()
            self._settle([])
        headers = [("Nack-Reason", "no")] if act.what == "refuse" else []
        frame = Frame.build(
            MessageType.ACKNOWLEDGE,
            self._name(act.channel),
            1,
            message_id=act.message,
            headers=headers,
        )
        line = self._lines[act.line]
        self._say(line, frame)
        due = self.model.act(act)
        self._await(act.line, line, lambda: True)
        self._settle(due)

    def _pull(self, act: Act) -> None:
        self._requests += 1
        self._pulling = f"pull{self._requests}"
        frame = Frame.build(
            MessageType.PULL_REQUEST,
            self._name(act.channel),
            1,
            message_id=self._pulling,
            headers=[("Count", str(act.number))],
        )
        line = self._lines[act.line]
        self._say(line, frame)
        self._await(act.line, line, self._is_pulled)
        results, self._pulled, self._pulling = self._pulled, [], ""
        self._settle([])
        found, ends = [], []
        for each in results:
            if each.last_header("Index") is None:
                ends.append(each.last_header("No-Content"))
            else:
                found.append(Delivered(act.line, act.channel, each.message_id, each.payload))
        if ends not in (["End"], ["Empty"]) or (ends == ["Empty"]) != (not found):
            raise WrongError(f"a pull of {len(found)} messages ended with {ends}")
        self.model.pulled(act, found)

    def _is_pulled(self) -> bool:
        return bool(self._pulled) and self._pulled[-1].last_header("No-Content") is not None

    def _request(
        self,
        name: str,
        *requests: tuple[int, str, list[tuple[str, str]]],
        allowed: tuple[int, ...] = (0,),
    ) -> None:
        """Request operations (number, channel, headers) and wait for all their answers."""
        line = self._lines[name]
        frames = []
        for number, channel, headers in requests:
            self._requests += 1
            frames.append(
                Frame.build(
                    MessageType.SERVER,
                    self._name(channel),
                    number,
                    message_id=f"r{self._requests}",
                    headers=headers,
                    pending_response=True,
                )
            )
        self._answers = {frame.message_id: -1 for frame in frames}
        self._say(line, *frames)
        self._await(name, line, lambda: -1 not in self._answers.values())
        for frame in frames:
            code = self._answers[frame.message_id]
            if code not in allowed:
                how = f"answered by {code}" if code >= 0 else "not answered"
                raise WrongError(f"{frame!r} was {how}")
        self._answers = {}

    # -- hearing --------------------------------------------------------------------------------

    def _name(self, channel: str) -> str:
        return f"{channel}-{self._suffix}"

    def _say(self, line: Line, *frames: Frame) -> None:
        """Send messages and a ping in one write."""
        line.fenced_by_ping += 1
        line.send(b"".join([frame.raw for frame in frames]) + _PING, frames[-1])

    def _await(self, name: str, line: Line, answered: Callable[[], bool]) -> None:
        """Wait until the ping is answered, and the action; answers are in no order (F44)."""
        deadline = self._stage.now() + self._patience.answer
        while True:
            self._take(name, line)
            fenced = not line.fenced_by_ping
            if fenced and answered():
                return
            if line.complaint:
                raise WrongError(line.complaint)
            if not line.receive(deadline - self._stage.now()):
                break
        if line.ended:
            raise UnreachableError(f"the server closed (client {name})")
        if not fenced:
            raise UnreachableError(f"a ping was not answered (client {name})")
        # The caller reports a missing answer.

    def _hear_all(self) -> None:
        """Wait until the server has sent all that it had to send to each client."""
        for line in self._lines.values():
            line.fenced_by_ping += 1
            line.send(_PING, None, "fence")
        for name, line in self._lines.items():
            self._await(name, line, lambda: True)

    def _take(self, name: str, line: Line) -> None:
        """Sort the messages that arrived on a line."""
        for each in line.seen:
            assert isinstance(each, Frame), "the preamble comes with the hello"
            if self._pulling and each.last_header("Request-Id") == self._pulling:
                self._pulled.append(each)
            elif each.type == MessageType.QUEUE_MESSAGE:
                channel = each.target.partition("-")[0]
                self._came.append(Delivered(name, channel, each.message_id, each.payload))
            elif each.type == MessageType.ACKNOWLEDGE and each.header("Nack-Reason") is None:
                self._confirmed.append(each.message_id)
            elif self._answers.get(each.message_id) == -1 and each.type == MessageType.RESPONSE:
                self._answers[each.message_id] = each.content_type
                if self._leaving == name:
                    # Earlier messages were sent while the client had joined.
                    self._settle([])
            else:
                raise WrongError(f"client {name} got {each!r}")
        line.seen.clear()

    def _settle(self, due: list[Due]) -> None:
        """Read from the clients that must get a message, and compare the messages with the
        model."""
        if due and not self._has_come(due):
            for name in sorted({name for each in due for name in each.lines}):
                line = self._lines[name]
                while not self._has_come(due) and line.receive(0.0):
                    self._take(name, line)
        if due and not self._has_come(due):
            self._hear_all()
            if not self._has_come(due):
                # It may be on its way: a server may deliver in its own time.
                self._stage.wait(self._patience.quiet)
                self._hear_all()
        came, self._came = self._came, []
        self.model.settle(due, came)

    def _has_come(self, due: list[Due]) -> bool:
        """Return whether nothing is missing."""
        came = [each.message for each in self._came]
        return all(
            came.count(each.message) >= (len(each.lines) if each.to_each else 1) for each in due
        )


def play_acts(
    stage: Stage, acts: list[Act], suffix: str, patience: Patience, timeout_s: float = 0.0
) -> str:
    """Replay a session; return the fault, or an empty text."""
    session = Session(stage, suffix, patience)
    try:
        session.begin()
        for act in acts:
            session.do(act)
        session.finish(timeout_s)
    except (WrongError, UnreachableError) as error:
        return str(error)
    finally:
        session.close()
    return ""
