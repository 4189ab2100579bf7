"""Checks and converts the arguments of programs: headers, payloads, channel names, queue ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from tmqp.constants import FORBIDDEN_NAME_CHARACTERS, MAX_QUEUE_ID
from tmqp.errors import LocalProtocolError
from tmqp.names import fault_of_name

__all__ = [
    "NO_HEADERS",
    "Headers",
    "Pairs",
    "Payload",
    "check_channel",
    "check_queue_id",
    "payload_bytes",
    "to_pairs",
]

#: Headers as a caller may give them.
Headers: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]
#: A payload as a caller may give it; text is sent as UTF-8.
Payload: TypeAlias = bytes | bytearray | memoryview | str

Pairs: TypeAlias = tuple[tuple[str, str], ...]
NO_HEADERS: Final[Pairs] = ()


@lru_cache(maxsize=1_024)
def check_channel(name: str) -> str:
    """Return a channel's name if it is valid.

    The original closes the connection over a bad name (F43, F47), so it is not sent.

    :raises LocalProtocolError: if it is empty or contains ``@``, space, ``;``, ``*`` or a character
        that no name may have (``tmqp.names``).
    """
    if not name:
        raise LocalProtocolError("the channel name is empty")
    fault = fault_of_name(name)
    if fault:
        raise LocalProtocolError(f"a channel name contains {fault}, got {name!r}")
    for character in FORBIDDEN_NAME_CHARACTERS:
        if character in name:
            raise LocalProtocolError(
                f"a channel name must not contain @, space, ; or * (F47), got {name!r}"
            )
    return name


def check_queue_id(queue_id: int) -> int:
    """Return a queue's id if it is valid.

    :raises LocalProtocolError: unless it is 0..65,535.
    """
    if not 0 <= queue_id <= MAX_QUEUE_ID:
        raise LocalProtocolError(f"a queue id must be 0 to {MAX_QUEUE_ID}, got {queue_id!r}")
    return queue_id


def to_pairs(headers: Headers) -> Iterable[tuple[str, str]]:
    """Headers as pairs, in their order."""
    return headers.items() if isinstance(headers, Mapping) else headers


def payload_bytes(payload: Payload) -> bytes:
    """A payload as bytes; text as UTF-8.

    :raises LocalProtocolError: for text that is not valid Unicode, or another type.
    """
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        try:
            return payload.encode("utf-8")
        except UnicodeEncodeError:
            raise LocalProtocolError("the payload is not valid Unicode text") from None
    if isinstance(payload, bytearray | memoryview):
        return bytes(payload)
    raise LocalProtocolError(f"a payload is bytes or text, got {type(payload).__name__}")
