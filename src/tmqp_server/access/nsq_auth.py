"""Authenticate clients of NSQ with auth servers, as nsqd does (N45 to N54).

In the configuration::

    [access]
    kind = "tmqp_server:NsqAuthServer"
    arguments = { addresses = ["127.0.0.1:4181"] }

The auth server identifies a client that sends AUTH. Its answer is valid for its ``ttl``; after
that, the next command of the client causes a new request.  If an auth server cannot be reached or
its answer is invalid, the next one is tried; if none is left, the client is refused.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, final

import anyio

from tmqp_server.access.auth import Access, Admission, Answer, Applicant, Identity
from tmqp_server.access.rights import (
    CREATE_CHANNEL,
    CREATE_QUEUE,
    FEED,
    JOIN,
    PUSH,
    SEE_CHANNEL,
)
from tmqp_wires.nsq.auth_server import (
    MAX_ANSWER_BYTES,
    AuthAnswer,
    AuthAnswerError,
    AuthQuestion,
    AuthRequest,
    read_answer,
)

__all__ = ["NsqAuthServer"]

logger = logging.getLogger("tmqp_server.nsq")

#: Sends a request and returns status and body; raises OSError when that is not possible.
_Asker = Callable[[AuthRequest], Awaitable[tuple[int, bytes]]]

#: Types of clients that bring no secret, and are let in: HTTP is not covered by AUTH (N54), nor are
#: those that ask a lookupd.
_OPEN: Final = ("http", "nsqlookupd")
#: The caller limits the time.
_NO_TIMEOUT: Final = None
#: What making a channel of a topic, or publishing to it, needs besides.
_AROUND: Final = (CREATE_CHANNEL, CREATE_QUEUE, FEED, SEE_CHANNEL)


@final
class _Client:
    """An auth server's ``answer`` about a client; it is valid until ``until_s``."""

    __slots__ = ("answer", "question", "until_s")

    def __init__(self, question: AuthQuestion, answer: AuthAnswer, now: float) -> None:
        self.question = question
        self.answer = answer
        self.until_s = now + answer.ttl_s


class NsqAuthServer(Access):
    """Access rules for clients of NSQ, from auth servers.

    :param addresses: ``HOST:PORT`` or URLs; one is chosen at random, the others are tried after it.
    :param method: ``get`` or ``post``.
    :param timeout_s: seconds to wait for one of them.
    :param grace_s: seconds after the ``ttl`` for which an answer remains valid if no auth server
        can be reached.
    :param open_types: types of clients that need no secret and have all rights.
    :param ask: the function that sends a request; one that uses httpx if None.
    :raises ValueError: if a value is invalid.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        method: str = "get",
        timeout_s: float = 2.0,
        grace_s: float = 0.0,
        open_types: Sequence[str] = _OPEN,
        ask: _Asker | None = None,
    ) -> None:
        if isinstance(addresses, str) or not addresses:
            raise ValueError("addresses must be a list of at least one auth server")
        if method not in ("get", "post"):
            raise ValueError(f"method must be get or post, not {method!r}")
        if not timeout_s > 0 or grace_s < 0:
            raise ValueError("timeout_s must be positive and grace_s not negative")
        self._addresses = list(addresses)
        self._method = method
        self._timeout_s = timeout_s
        self._grace_s = grace_s
        self._open_types = frozenset(open_types)
        self._ask = _by_httpx if ask is None else ask

    async def authenticate(self, applicant: Applicant) -> bool | Admission:
        """Accept clients that an auth server knows, and clients that need no secret."""
        if not applicant.token:
            if applicant.client_type in self._open_types or applicant.door in self._open_types:
                return Admission(authenticated=False)
            return False
        host = applicant.peer.rpartition(":")[0] or applicant.peer
        question = AuthQuestion(host, applicant.token, applicant.secure, applicant.common_name)
        answer = await self._answer(question)
        if answer is None:
            return False
        who = (answer.identity, answer.identity_url, len(answer.authorizations))
        client = _Client(question, answer, anyio.current_time())
        return Admission(data=client, identity=who)

    async def may(self, who: Identity, right: str, subject: str, queue_id: int) -> bool | Answer:
        """Decide by the auth server's answer; request a new one if it has expired."""
        client = who.data
        if client is None:
            return True
        assert isinstance(client, _Client), "who was let in is known"
        now = anyio.current_time()
        if now >= client.until_s:
            answer = await self._answer(client.question)
            if answer is not None:
                client.answer = answer
                client.until_s = now + answer.ttl_s
            elif now >= client.until_s + self._grace_s:
                return False
        allowed = _allows(client.answer, right, subject)
        return Answer(allowed, max(client.until_s - now, 0.0))

    async def _answer(self, question: AuthQuestion) -> AuthAnswer | None:
        """The answer of the first auth server that has one."""
        start = random.randrange(len(self._addresses))  # noqa: S311 - it spreads questions
        for address in self._addresses[start:] + self._addresses[:start]:
            try:
                with anyio.fail_after(self._timeout_s):
                    status, body = await self._ask(question.request(address, self._method))
                return read_answer(status, body)
            except (AuthAnswerError, OSError) as error:  # a timeout is an OSError
                logger.warning("auth server %s: %s", address, str(error) or "no answer in time")
        return None


def _allows(answer: AuthAnswer, right: str, subject: str) -> bool:
    """Whether an answer covers a right to a topic, or to a channel of one."""
    topic, _, channel = subject.partition(":")
    if not channel:
        return answer.allows(topic) if right == PUSH else right in _AROUND and answer.knows(topic)
    return right in (JOIN, *_AROUND) and answer.allows(topic, channel)


async def _by_httpx(request: AuthRequest) -> tuple[int, bytes]:
    """Send a request and read the answer, up to the allowed size.

    :raises OSError: when that is not possible.
    """
    import httpx  # noqa: PLC0415 - an extra

    try:
        async with (
            httpx.AsyncClient(timeout=_NO_TIMEOUT, trust_env=False) as client,
            client.stream(
                request.method, request.url, headers=request.headers, content=request.body or None
            ) as response,
        ):
            body = b""
            async for part in response.aiter_raw():
                body += part
                if len(body) > MAX_ANSWER_BYTES:
                    break
            return response.status_code, body
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OSError(str(error) or type(error).__name__) from error
