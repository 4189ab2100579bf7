"""Requests of nsqd to an auth server over HTTP, and their answers (N49 to N52).

An answer is valid for some time.  Its patterns may match anywhere in a name.  They come from the
auth server, which is trusted: matching a pattern may take long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, final
from urllib.parse import urlencode

__all__ = [
    "MAX_ANSWER_BYTES",
    "AuthAnswer",
    "AuthAnswerError",
    "AuthQuestion",
    "AuthRequest",
    "Authorization",
    "read_answer",
]

#: Largest answer of an auth server.
MAX_ANSWER_BYTES: Final = 1_048_576
_MAX_AUTHORIZATIONS: Final = 1_000
_MAX_PATTERNS: Final = 1_000
_MAX_PATTERN: Final = 1_024
_PERMISSIONS: Final = ("subscribe", "publish")
_ACCEPT: Final = ("Accept", "application/vnd.nsq; version=1.0")
_GOOD: Final = 200


class AuthAnswerError(Exception):
    """An answer that cannot be used; its text says why."""


@final
@dataclass(frozen=True, slots=True)
class AuthRequest:
    """An HTTP request."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@final
@dataclass(frozen=True, slots=True)
class AuthQuestion:
    """A question about a client, with its secret and other facts."""

    remote_ip: str
    secret: str = field(repr=False)
    tls: bool = False
    common_name: str = ""

    def request(self, address: str, method: str = "get") -> AuthRequest:
        """The request to an auth server.

        :param address: ``HOST:PORT``, or a whole URL.
        :param method: ``get`` or ``post``.
        """
        url = address if "://" in address else f"http://{address}/auth"
        values = {
            "common_name": self.common_name,
            "remote_ip": self.remote_ip,
            "secret": self.secret,
            "tls": "true" if self.tls else "false",
        }
        if method == "get":
            return AuthRequest("GET", f"{url}?{urlencode(values)}", (_ACCEPT,), b"")
        listed = {key: [value] for key, value in values.items()}
        body = json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode()
        return AuthRequest("POST", url, (_ACCEPT, ("Content-Type", "application/json")), body)


@final
class Authorization:
    """The permissions for some topics and some of their channels."""

    __slots__ = ("channels", "permissions", "topic")

    def __init__(
        self,
        topic: re.Pattern[str],
        channels: Sequence[re.Pattern[str]],
        permissions: frozenset[str],
    ) -> None:
        self.topic = topic
        self.channels = channels
        self.permissions = permissions

    def allows(self, topic: str, channel: str) -> bool:
        """Whether a client may consume a channel or, if *channel* is empty, publish: then a pattern
        for channels must match the empty name (N51)."""
        wanted = "subscribe" if channel else "publish"
        return (
            wanted in self.permissions
            and self.topic.search(topic) is not None
            and any([each.search(channel) is not None for each in self.channels])
        )


@final
class AuthAnswer:
    """The permissions of a client.

    Attributes: ``ttl_s``, for how many seconds the answer is valid; ``identity`` and
    ``identity_url``, who the client is; ``authorizations``, empty for a client that may do nothing.
    """

    __slots__ = ("authorizations", "identity", "identity_url", "ttl_s")

    def __init__(
        self,
        ttl_s: int,
        identity: str,
        identity_url: str,
        authorizations: Sequence[Authorization],
    ) -> None:
        self.ttl_s = ttl_s
        self.identity = identity
        self.identity_url = identity_url
        self.authorizations = authorizations

    def allows(self, topic: str, channel: str = "") -> bool:
        """Whether the client may consume the channel or, if *channel* is empty, publish to the
        topic."""
        return any([each.allows(topic, channel) for each in self.authorizations])

    def knows(self, topic: str) -> bool:
        """Whether the client may do anything with a topic."""
        return any(
            [
                bool(each.permissions) and each.topic.search(topic) is not None
                for each in self.authorizations
            ]
        )


def read_answer(status: int, body: bytes) -> AuthAnswer:
    """Read the answer of an auth server.

    :raises AuthAnswerError: for a refusal, and for an invalid answer.
    """
    if status != _GOOD:
        raise AuthAnswerError(f"it answered {status}")
    if len(body) > MAX_ANSWER_BYTES:
        raise AuthAnswerError(f"its answer has more than {MAX_ANSWER_BYTES} bytes")
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise AuthAnswerError("its answer is not JSON") from error
    if not isinstance(given, dict):
        raise AuthAnswerError("its answer is not a JSON object")
    ttl = given.get("ttl")
    if type(ttl) is not int or ttl <= 0:
        raise AuthAnswerError(f"ttl must be a positive number of seconds, not {ttl!r}")
    listed = _list(given, "authorizations")
    if len(listed) > _MAX_AUTHORIZATIONS:
        raise AuthAnswerError(f"at most {_MAX_AUTHORIZATIONS} authorizations are read")
    authorizations = [_authorization(each) for each in listed]
    return AuthAnswer(ttl, _text(given, "identity"), _text(given, "identity_url"), authorizations)


def _list(given: Mapping[str, object], key: str) -> list[object]:
    value = given.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise AuthAnswerError(f"{key} must be a list, not {value!r}")
    return value


def _text(given: Mapping[str, object], key: str) -> str:
    value = given.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise AuthAnswerError(f"{key} must be a string, not {value!r}")
    return value


def _authorization(given: object) -> Authorization:
    if not isinstance(given, dict):
        raise AuthAnswerError(f"an authorization must be an object, not {given!r}")
    channels = _list(given, "channels")
    permissions = _list(given, "permissions")
    if len(channels) > _MAX_PATTERNS:
        raise AuthAnswerError(f"at most {_MAX_PATTERNS} patterns of channels are read")
    for each in permissions:
        if each not in _PERMISSIONS:
            raise AuthAnswerError(f"a permission is subscribe or publish, not {each!r}")
    return Authorization(
        _pattern(given.get("topic", "")),
        [_pattern(each) for each in channels],
        frozenset([str(each) for each in permissions]),
    )


def _pattern(text: object) -> re.Pattern[str]:
    if not isinstance(text, str) or len(text) > _MAX_PATTERN:
        raise AuthAnswerError(f"a pattern is a text of at most {_MAX_PATTERN} characters")
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise AuthAnswerError(f"the pattern {text!r} cannot be used: {error}") from error
