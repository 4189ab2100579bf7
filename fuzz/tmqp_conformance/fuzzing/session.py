"""A session of several clients against a server, held against the model after every action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tmqp import ConnectionInformation, Frame, MessageType, Operation
from tmqp.testing.conformance import Patience, Stage, UnreachableError
from tmqp.testing.conformance.lines import Entry, Line, Log
from tmqp_conformance.fuzzing.model import CHANNELS, Act, Delivered, Model, WrongError
from tmqp_conformance.keeper import PROBE

__all__ = ["Session", "play_acts"]

_PING: Final = Frame.build(MessageType.PING, ttl=16).raw
_ALL: Final = 1_000
_LAST: Final = "z"


class Session:
    """Clients, and what the model says about them.

    :param suffix: makes the names of this session its own.
    :raises WrongError: (every method) when the server does what the model does not allow.
    :raises UnreachableError: (every method) when the server does not answer.
    """

    def __init__(self, stage: Stage, suffix: str, patience: Patience) -> None:
        self.model = Model()
        self.acts: list[Act] = []
        self.log = Log(stage)
        self._stage = stage
        self._suffix = suffix
        self._patience = patience
        self._lines: dict[str, Line] = {}
        self._requests = 0
        self._came: list[Delivered] = []
        self._confirmed: list[str] = []

    @property
    def entries(self) -> list[Entry]:
        """What was on the wire."""
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

    def do(self, act: Act) -> None:
        """Carry out an action, if it makes sense now, and hold what follows against the model."""
        if not self.model.allows(act):
            return
        self.acts.append(act)
        payload = f"payload of {act.message}".encode()
        if act.what == "connect":
            self._connect(act.line)
        elif act.what == "vanish":
            self._vanish(act.line)
        elif act.what == "pull":
            self._pull(act)
            return
        elif act.what in ("join", "leave"):
            number = Operation.JOIN if act.what == "join" else Operation.LEAVE
            self._request(act.line, (number, act.channel, []))
        elif act.what == "push":
            self._push(act, payload)
        else:
            self._acknowledge(act)
        self._settle(self.model.act(act, payload))

    def finish(self, timeout_s: float = 0.0) -> None:
        """Drain all queues with a new client: nothing may be lost, and nothing invented.

        :param timeout_s: wait so long, until the time for acknowledgements is over, so that also
            messages of clients that are gone must come back; 0 to do without that.
        """
        for line in sorted(self.model.connected):
            self.do(Act("vanish", line))
        self.do(Act("connect", _LAST))
        for name, status in CHANNELS.items():
            self.do(Act("join", _LAST, name))
            if status == "pull":
                self.do(Act("pull", _LAST, name, _ALL))
        if timeout_s:
            self._stage.wait(timeout_s)
            self._settle(self.model.expire())
        removals: list[tuple[int, str, list[tuple[str, str]]]] = [
            (Operation.REMOVE_CHANNEL, name, []) for name in CHANNELS
        ]
        self._request(_LAST, *removals, allowed=(0, 401))

    def close(self) -> None:
        """Leave all connections."""
        for line in self._lines.values():
            line.release()

    # -- actions --------------------------------------------------------------------------------

    def _connect(self, name: str) -> None:
        line = Line(name, self._stage.open(name, PROBE), self.log, pongs=True)
        self._lines[name] = line
        information = ConnectionInformation(f"{name}{len(self.acts)}-{self._suffix}")
        hello = Frame.build(MessageType.SERVER, "", 101, information.encode())
        line.send(b"TMQP/2.0" + hello.raw, hello)
        deadline = self._stage.now() + self._patience.answer
        while not line.accepted:
            if not line.receive(deadline - self._stage.now()):
                raise UnreachableError("a new client was not accepted")
        line.seen.clear()

    def _vanish(self, name: str) -> None:
        line = self._lines.pop(name)
        self._take(name, line)
        line.send(Frame.build(MessageType.TERMINATE).raw, None)
        deadline = self._stage.now() + self._patience.close
        while line.receive(deadline - self._stage.now()):
            pass
        ended = line.ended
        line.release()
        # What was on its way to the client counts as delivered to it.
        if not ended:
            raise WrongError("the server did not close after Terminate")

    def _push(self, act: Act, payload: bytes) -> None:
        frame = Frame.build(
            MessageType.QUEUE_MESSAGE,
            self._name(act.channel),
            1,
            payload,
            message_id=act.message,
            pending_acknowledge=True,
        )
        line = self._lines[act.line]
        line.send(frame.raw, frame)
        self._await(line, lambda each: _answers(each, MessageType.ACKNOWLEDGE, act.message))
        self._take(act.line, line)
        if self._confirmed != [act.message]:
            raise WrongError(f"{act.message} was acknowledged {len(self._confirmed)} times")
        self._confirmed.clear()

    def _acknowledge(self, act: Act) -> None:
        headers = [("Nack-Reason", "no")] if act.what == "refuse" else []
        frame = Frame.build(
            MessageType.ACKNOWLEDGE,
            self._name(act.channel),
            1,
            message_id=act.message,
            headers=headers,
        )
        self._lines[act.line].send(frame.raw, frame)

    def _pull(self, act: Act) -> None:
        self._requests += 1
        request = f"pull{self._requests}"
        frame = Frame.build(
            MessageType.PULL_REQUEST,
            self._name(act.channel),
            1,
            message_id=request,
            headers=[("Count", str(act.number))],
        )
        line = self._lines[act.line]
        line.send(frame.raw, frame)
        self._await(line, lambda each: each.last_header("No-Content") is not None)
        results = [each for each in line.seen if isinstance(each, Frame)]
        line.seen.clear()
        found, ends = [], []
        for each in results:
            if each.last_header("Request-Id") != request:
                raise WrongError(f"a pull was answered by {each!r}")
            if each.last_header("Index") is None:
                ends.append(each.last_header("No-Content"))
            else:
                found.append(Delivered(act.line, act.channel, each.message_id, each.payload))
        if ends not in (["End"], ["Empty"]) or (ends == ["Empty"]) != (not found):
            raise WrongError(f"a pull of {len(found)} messages ended with {ends}")
        self.model.pulled(act, found)

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
        line.send(b"".join([frame.raw for frame in frames]), frames[-1])
        for frame in frames:
            wanted = frame.message_id

            def answers(each: Frame, wanted: str = wanted) -> bool:
                return _answers(each, MessageType.RESPONSE, wanted)

            self._await(line, answers)
            codes = [
                each.content_type for each in line.seen if isinstance(each, Frame) and answers(each)
            ]
            line.seen = [
                each for each in line.seen if not isinstance(each, Frame) or not answers(each)
            ]
            if len(codes) != 1 or codes[0] not in allowed:
                raise WrongError(f"{frame!r} was answered by {codes}")
        self._take(name, line)

    # -- hearing --------------------------------------------------------------------------------

    def _name(self, channel: str) -> str:
        return f"{channel}-{self._suffix}"

    def _await(self, line: Line, wanted: Callable[[Frame], bool]) -> None:
        """Wait for an answer; answers are in no order (F44)."""
        deadline = self._stage.now() + self._patience.answer
        while not any(isinstance(each, Frame) and wanted(each) for each in line.seen):
            if line.complaint:
                raise WrongError(line.complaint)
            if not line.receive(deadline - self._stage.now()):
                break  # what did not come is told by who asked

    def _fence(self) -> None:
        """Wait until the server has read all that all clients have said."""
        for line in self._lines.values():
            line.fenced_by_ping += 1
            line.send(_PING, None, "fence")
        deadline = self._stage.now() + self._patience.answer
        for name, line in self._lines.items():
            while line.fenced_by_ping:
                if line.complaint:
                    raise WrongError(line.complaint)
                if not line.receive(deadline - self._stage.now()):
                    what = "the server closed" if line.ended else "a ping was not answered"
                    raise UnreachableError(f"{what} (client {name})")
            self._take(name, line)

    def _take(self, name: str, line: Line) -> None:
        """Sort what has come on a line."""
        for each in line.seen:
            assert isinstance(each, Frame), "the preamble comes with the hello"
            if each.type == MessageType.QUEUE_MESSAGE:
                channel = each.target.partition("-")[0]
                self._came.append(Delivered(name, channel, each.message_id, each.payload))
            elif each.type == MessageType.ACKNOWLEDGE and each.header("Nack-Reason") is None:
                self._confirmed.append(each.message_id)
            else:
                raise WrongError(f"client {name} got {each!r}")
        line.seen.clear()

    def _settle(self, due: list[tuple[str, set[str]]]) -> None:
        """Hear all clients, and hold what came against what is due."""
        self._fence()
        if len(self._came) < len(due):
            # It may be on its way: a server may deliver in its own time.
            self._stage.wait(self._patience.quiet)
            self._fence()
        came, self._came = self._came, []
        self.model.settle(due, came)


def _answers(frame: Frame, kind: int, message_id: str) -> bool:
    return frame.type == kind and frame.message_id == message_id


def play_acts(
    stage: Stage, acts: list[Act], suffix: str, patience: Patience, timeout_s: float = 0.0
) -> str:
    """Play a session again; returns what is wrong, or an empty text."""
    session = Session(stage, suffix, patience)
    try:
        for act in acts:
            if not session.acts and act == Act("connect", "a"):
                session.begin()
            else:
                session.do(act)
        session.finish(timeout_s)
    except (WrongError, UnreachableError) as error:
        return str(error)
    finally:
        session.close()
    return ""
