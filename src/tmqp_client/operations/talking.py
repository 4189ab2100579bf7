"""The client's methods for direct messages, custom messages and the server's events."""

from __future__ import annotations

from tmqp_client._core.arguments import Headers, Payload, payload_bytes
from tmqp_client._core.letters import DirectRequest
from tmqp_client._core.pending import Kind
from tmqp_client._port import Operations
from tmqp_client.custom import CustomMessages, CustomRequest
from tmqp_client.direct import DirectMessages, Response
from tmqp_client.events import Events
from tmqp_client.parts import with_parts

__all__ = ["Talking"]


class Talking(Operations):
    """The methods of :class:`tmqp_client.Client` for messages outside channels, and for events."""

    async def send_direct(
        self,
        target: str,
        payload: Payload,
        *,
        content_type: int = 0,
        headers: Headers = (),
        first_only: bool = False,
        high_priority: bool = False,
        wait: bool = False,
        timeout_s: float | None = None,
        nowait: bool = False,
    ) -> str:
        """Send a message to other clients; return its id (F113).

        :param target: a client's id, :func:`to_name` or :func:`to_type` of one.
        :param content_type: any number, 0..65,535.
        :param first_only: of several matching clients, only the one that connected first gets it.
        :param wait: return when one of them has acknowledged it.  Without waiting, a refusal only
            appears in :meth:`Client.unclaimed`.
        :param nowait: raise :class:`WouldBlock` if it cannot be queued at once.
        :return: its id; empty when it was dropped (``when_full``).
        :raises NegativeAcknowledge: when a receiver refuses it.
        :raises OperationFailed: when the server refuses it: 404 if no client matches, 503 for one
            that reads too slowly, 482.
        """
        kind = Kind.DIRECT if wait else Kind.OPERATION
        request = DirectRequest(
            kind,
            target,
            content_type,
            payload_bytes(payload),
            with_parts(payload, headers),
            first_only,
            high_priority,
        )
        return await self._session.deliver(request, timeout_s, wait=wait, nowait=nowait)

    async def request(
        self,
        target: str,
        payload: Payload,
        timeout_s: float | None = None,
        *,
        content_type: int = 0,
        headers: Headers = (),
        first_only: bool = False,
        high_priority: bool = False,
        nowait: bool = False,
    ) -> Response:
        """Send a message to another client and return its response, whatever its code (F117).

        Up to ``max_outstanding`` requests may be in progress at a time.  Of several answers the
        first one counts.  Parameters as :meth:`send_direct`.

        :raises OperationFailed: when the server answers instead: 404 if no client matches, 503,
            482.
        :raises OperationTimeout: when no answer arrives in time (``response_timeout_s``).
        """
        request = DirectRequest(
            Kind.REQUEST,
            target,
            content_type,
            payload_bytes(payload),
            with_parts(payload, headers),
            first_only,
            high_priority,
        )
        answer = (await self._session.ask(request, timeout_s, nowait=nowait)).answer
        assert answer is not None, "a request is settled by a response"
        return Response(answer.content_type, answer.payload, answer.source)

    def direct_messages(self) -> DirectMessages:
        """Return the direct messages to this client, as an async iterator; see
        :class:`DirectMessages`.  It begins with the messages that arrived earlier and that
        :meth:`Client.unclaimed` still has.

        :raises AlreadyListening: if it is opened while another one is open.
        """
        return DirectMessages(self._port)

    async def send_custom(
        self,
        payload: Payload,
        *,
        target: str = "",
        content_type: int = 0,
        headers: Headers = (),
        high_priority: bool = False,
        nowait: bool = False,
    ) -> str:
        """Send a custom message to the operator's code in the server; return its id (F17).

        A server without such code ignores it.

        :param target: any text.
        :param content_type: any number, 0..65,535.
        :param nowait: raise :class:`WouldBlock` if it cannot be queued at once.
        :return: its id; empty when it was dropped (``when_full``).
        """
        request = CustomRequest(
            Kind.OPERATION,
            target,
            content_type,
            payload_bytes(payload),
            with_parts(payload, headers),
            high_priority,
        )
        return await self._session.deliver(request, None, wait=False, nowait=nowait)

    async def request_custom(
        self,
        payload: Payload,
        timeout_s: float | None = None,
        *,
        target: str = "",
        content_type: int = 0,
        headers: Headers = (),
        high_priority: bool = False,
    ) -> Response:
        """Send a custom message and return the response of the operator's code in the server.

        Parameters as :meth:`send_custom`.

        :raises OperationFailed: if the code of the answer is not 0: 401 without the right to send
            custom messages, 500 if the code in the server failed.
        :raises OperationTimeout: if it does not answer in time, or the server has no such code.
        """
        request = CustomRequest(
            Kind.REQUEST,
            target,
            content_type,
            payload_bytes(payload),
            with_parts(payload, headers),
            high_priority,
        )
        answer = (await self._session.ask(request, timeout_s)).answer
        assert answer is not None, "a request is settled by a response"
        return Response(answer.content_type, answer.payload, answer.source)

    def custom_messages(self) -> CustomMessages:
        """Return the custom messages to this client, as an async iterator; see
        :class:`CustomMessages`.  It begins with the messages that arrived earlier and that
        :meth:`Client.unclaimed` still has.

        :raises AlreadyListening: if it is opened while another one is open.
        """
        return CustomMessages(self._port)

    def events(self, name: str, channel: str | None = None, queue_id: int | None = None) -> Events:
        """Return events of the server, as an async iterator of their models; see :class:`Events`.

        :param name: a :class:`tmqp.EventName`, or its text.
        :param channel: required for ClientJoined, ClientLeft, the events of queues, and
            MessageProduced.
        :param queue_id: required for MessageProduced.
        :raises LocalProtocolError: if the event is unknown, or the channel or queue is missing or
            not allowed.
        :raises AlreadyListening: if it is opened while another one for the same event is open.
        """
        return Events(self._port, name, channel, queue_id)
