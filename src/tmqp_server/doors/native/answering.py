"""The output of a session of the native door: deliveries and answers."""

from __future__ import annotations

from collections.abc import Sequence

from tmqp.connection import Connection
from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_LIMIT_EXCEEDED,
    TYPE_PULL_REQUEST,
    TYPE_QUEUE_MESSAGE,
    TYPE_ROUTER,
    TYPE_SERVER,
    NoContent,
)
from tmqp.extensions import HEADER_FROM, HEADER_MAX_BYTES, OP_DESCRIBE_CELL, OP_READ_RANGE
from tmqp.frames import Frame
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.answers import (
    acknowledge_frame,
    response_frame,
    response_head,
    router_answer,
)
from tmqp_server.doors.native.browsed import browsed_blocks
from tmqp_server.doors.native.cells import cell_headers, cell_payload
from tmqp_server.doors.native.clients import answered_always
from tmqp_server.doors.native.http import http_answer
from tmqp_server.doors.native.information import AnswerTooLargeError, rendered
from tmqp_server.doors.native.parameters import number_header
from tmqp_server.doors.native.pulls import end_of_pull, pull_answer, pulled_message
from tmqp_server.doors.native.translated import translated
from tmqp_server.doors.port import DoorSession
from tmqp_server.engine.commands import Blocks, CellPortion, CellSnapshot
from tmqp_server.engine.effects import (
    AnswerPull,
    AnswerRouted,
    Confirm,
    DeliverPulled,
    Effect,
    EndPull,
    Reply,
)
from tmqp_server.engine.model.snapshots import BrowseSnapshot

__all__ = ["AnsweringSession"]


class AnsweringSession(DoorSession):
    """The writing part of a TMQP connection.

    :param wall_clock_offset_s: what to add to the engine's times for seconds since 1970.
    :param letters: reads messages that arrived through doors of other protocols.
    """

    def __init__(
        self, connection: Connection, wall_clock_offset_s: float, letters: Letters
    ) -> None:
        super().__init__()
        self._letters = letters
        self._connection = connection
        self._limits = connection.limits
        self._wall_clock_offset_s = wall_clock_offset_s

    def next_deadline(self) -> float | None:
        """The connection's."""
        return self._connection.next_deadline()

    def excuse_silence(self, now: float) -> None:
        """The connection's."""
        self._connection.excuse_silence(now)

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        self.outbound_bytes = 0
        return self._connection.data_to_send()

    def next_to_send(self) -> bytes:
        """What was queued since the last call; large pieces are returned one by one."""
        self.outbound_bytes = 0
        return self._connection.next_to_send()

    def _send(self, data: bytes) -> None:
        """Queue a message, unless the connection has closed.

        It may close while earlier messages of the same chunk are still being answered: a Terminate
        or a violation follows them.
        """
        if not self.closed:
            self.outbound_bytes += len(data)
            self._connection.send_bytes(data)

    def deliver(self, data: bytes) -> None:
        """Queue a delivery made by :meth:`NativeDoor.encode_delivery`."""
        self._send(data)

    def _answers_message(self, effect: Effect) -> bool:
        """Whether an effect answers a message that a node forwarded.

        The node's own server answers its client, who would otherwise get each answer twice.
        """
        if isinstance(effect, Reply):
            frame = effect.request
            return isinstance(frame, Frame) and frame.type != TYPE_SERVER
        return isinstance(effect, (Confirm, AnswerRouted))

    def _answer_pull(self, effect: DeliverPulled | EndPull | AnswerPull) -> None:
        if isinstance(effect, DeliverPulled):
            self.deliver(pulled_message(effect, self._letters))
        elif isinstance(effect, AnswerPull):
            self._send(pull_answer(effect, self._connection.client_id, self._letters).raw)
        else:
            assert isinstance(effect.request, Frame), "the token of every request is its frame"
            self._send(end_of_pull(effect.request, effect.reason).raw)

    def _answer_routed(self, effect: AnswerRouted) -> None:
        """Send a called program's answer to the publisher, like a receiver's answer."""
        frame = effect.request
        assert isinstance(frame, Frame), "the token of every request is its frame"
        if frame.message_id:
            most_bytes = self._limits.max_payload_bytes
            self._send(http_answer(frame, effect, self._connection.client_id, most_bytes).raw)

    def _answer(self, effect: Reply) -> None:
        frame = effect.request
        assert isinstance(frame, Frame), "the token of every request is its frame"
        code = effect.code
        body = b""
        headers: list[tuple[str, str]] = []
        if isinstance(effect.body, Blocks):
            blocks = effect.body
            if frame.content_type == OP_READ_RANGE:
                blocks = translated(blocks, self._letters)
            self._answer_blocks(frame, code, blocks)
            return
        if isinstance(effect.body, str):
            self._reply(frame, code, effect.body.encode("utf-8", "replace"))
            return
        if isinstance(effect.body, CellSnapshot) and frame.content_type != OP_DESCRIBE_CELL:
            body = cell_payload(effect.body)
            if len(body) > self._limits.max_payload_bytes:
                self._reply(frame, RESULT_LIMIT_EXCEEDED, b"")
            else:
                self._reply(frame, code, body, cell_headers(effect.body))
            return
        if isinstance(effect.body, BrowseSnapshot):
            blocks = browsed_blocks(effect.body, self._letters, self._wall_clock_offset_s)
            self._answer_blocks(frame, code, blocks)
            return
        if effect.body is not None and (frame.pending_response or answered_always(frame)):
            try:
                # A client with the same limit as this server could not read a larger answer.
                most_bytes = self._limits.max_payload_bytes
                told = effect.body
                if isinstance(told, CellPortion):
                    if told.following:
                        headers.append((HEADER_FROM, str(told.following)))
                    told = told.cells
                body = rendered(told, self._wall_clock_offset_s, most_bytes)
            except AnswerTooLargeError:
                code = RESULT_LIMIT_EXCEEDED
        self._reply(frame, code, body, headers)

    def _answer_blocks(self, frame: Frame, code: int, blocks: Blocks) -> None:
        """Answer with stored blocks, whose pieces are joined only when they are sent."""
        # The first message may be larger than requested.
        asked_bytes = number_header(frame, HEADER_MAX_BYTES) or 0
        if blocks.size > max(self._limits.max_payload_bytes, asked_bytes):
            self._reply(frame, RESULT_LIMIT_EXCEEDED, b"")
        elif not blocks.size or not (frame.message_id and frame.pending_response):
            self._reply(frame, code, b"")
        else:
            client_id = self._connection.client_id
            self._send(response_head(frame, code, client_id, blocks.size))
            for piece in blocks.pieces:
                self._send(piece)
            if frame.pending_acknowledge:
                self._send(acknowledge_frame(frame, code).raw)

    def _reply(
        self, frame: Frame, code: int, body: bytes, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Send each kind of answer that a request asks for.

        Refused pushes, pulls and subscriptions are always answered (F75, F112, F115, F127).
        """
        if frame.type == TYPE_QUEUE_MESSAGE:
            self._send(response_frame(frame, code, frame.target).raw)
            return
        if frame.type == TYPE_PULL_REQUEST:
            self._send(response_frame(frame, code, self._connection.client_id).raw)
            return
        if not frame.message_id:
            return
        if frame.type == TYPE_ROUTER:
            answer = router_answer(frame, code, self._connection.client_id)
            if answer is not None:
                self._send(answer.raw)
            return
        if answered_always(frame, code) or frame.pending_response:
            answer = response_frame(frame, code, self._connection.client_id, body, headers)
            self._send(answer.raw)
        if frame.pending_acknowledge:
            self._send(acknowledge_frame(frame, code).raw)

    def _refuse_push(self, frame: Frame, code: int) -> None:
        """Refuse a push that the engine never sees as the engine would (F75, contradiction 22)."""
        self._send(response_frame(frame, code, frame.target).raw)
        if frame.pending_acknowledge:
            self._send(acknowledge_frame(frame, code).raw)

    def _refuse_name(self, frame: Frame) -> None:
        """Refuse a target that begins with the mark of exact names: the mark is for doors of other
        protocols, and no name in TMQP begins with a control character."""
        if frame.type == TYPE_QUEUE_MESSAGE:
            self._refuse_push(frame, RESULT_BAD_REQUEST)
        elif frame.type == TYPE_PULL_REQUEST:
            self._send(end_of_pull(frame, NoContent.NO_CHANNEL.value).raw)
        elif frame.pending_response:
            self._reply(frame, RESULT_BAD_REQUEST, b"")
