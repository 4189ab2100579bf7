"""IDENTIFY: negotiates the features of a connection (N24 to N38).

``negotiate`` reads a client's JSON and returns the agreed features, or the error that the server
answers.  Times are milliseconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["IdentifyError", "Negotiated", "ServerTerms", "negotiate"]

_MIN_HEARTBEAT_MS: Final = 1_000
_MIN_MSG_TIMEOUT_MS: Final = 1_000
_MIN_OUTPUT_BUFFER: Final = 64
_MAX_SAMPLE_RATE: Final = 99
_DEFAULT_DEFLATE_LEVEL: Final = 6
#: Go's ``int`` and ``int32``: larger numbers are invalid in IDENTIFY.
_INT: Final = 1 << 63
_INT32: Final = 1 << 31

_TEXTS: Final = ("client_id", "hostname", "user_agent", "topology_region", "topology_zone")
_FLAGS: Final = ("feature_negotiation", "tls_v1", "deflate", "snappy")
_NUMBERS: Final = (
    "heartbeat_interval",
    "output_buffer_size",
    "output_buffer_timeout",
    "deflate_level",
    "sample_rate",
    "msg_timeout",
)


class IdentifyError(Exception):
    """An IDENTIFY that the server refuses; its text is that of the error frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTerms:
    """What a server offers and allows; the defaults are the original's (N18).

    ``version`` is sent to clients, which infer the server's abilities from it.
    ``max_identify_bytes`` limits the bodies of IDENTIFY and AUTH, which come from unauthenticated
    clients.
    """

    version: str = "1.3.0"
    max_line_bytes: int = 16_384
    max_identify_bytes: int = 65_536
    max_msg_size: int = 1_048_576
    max_body_size: int = 5_242_880
    max_rdy_count: int = 2_500
    msg_timeout_ms: int = 60_000
    max_msg_timeout_ms: int = 900_000
    max_req_timeout_ms: int = 3_600_000
    heartbeat_interval_ms: int = 30_000
    max_heartbeat_interval_ms: int = 60_000
    output_buffer_size: int = 16_384
    max_output_buffer_size: int = 65_536
    output_buffer_timeout_ms: int = 250
    min_output_buffer_timeout_ms: int = 25
    max_output_buffer_timeout_ms: int = 30_000
    tls: bool = False
    tls_required: bool = False
    deflate: bool = True
    max_deflate_level: int = 6
    snappy: bool = True
    auth_required: bool = False


class Negotiated:
    """The facts about a client, and its features.

    ``heartbeat_interval_ms`` is 0 for none; ``output_buffer_timeout_ms`` 0 for no timer;
    ``output_buffer_size`` 1 for no buffering.  ``tls``, ``snappy`` and ``deflate`` are layers to
    begin, in this order, after the answer; each of them is followed by an ``OK`` (N39).
    """

    __slots__ = (
        "client_id",
        "hostname",
        "user_agent",
        "features",
        "heartbeat_interval_ms",
        "output_buffer_size",
        "output_buffer_timeout_ms",
        "sample_rate",
        "msg_timeout_ms",
        "tls",
        "snappy",
        "deflate",
        "deflate_level",
    )

    def __init__(
        self,
        client_id: str,
        hostname: str,
        user_agent: str,
        features: bool,
        heartbeat_interval_ms: int,
        output_buffer_size: int,
        output_buffer_timeout_ms: int,
        sample_rate: int,
        msg_timeout_ms: int,
        tls: bool = False,
        snappy: bool = False,
        deflate: bool = False,
        deflate_level: int = _DEFAULT_DEFLATE_LEVEL,
    ) -> None:
        self.client_id = client_id
        self.hostname = hostname
        self.user_agent = user_agent
        self.features = features
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.output_buffer_size = output_buffer_size
        self.output_buffer_timeout_ms = output_buffer_timeout_ms
        self.sample_rate = sample_rate
        self.msg_timeout_ms = msg_timeout_ms
        self.tls = tls
        self.snappy = snappy
        self.deflate = deflate
        self.deflate_level = deflate_level

    @property
    def changes_stream(self) -> bool:
        """Whether what follows the answer is encrypted or compressed."""
        return self.tls or self.snappy or self.deflate

    def __repr__(self) -> str:
        fields = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.__slots__])
        return f"Negotiated({fields})"


def negotiate(
    body: bytes, terms: ServerTerms, is_secure: bool = False, is_compressed: bool = False
) -> tuple[Negotiated, bytes]:
    """Negotiate: returns the features, and the data of the response.

    :param is_secure: whether the connection is already encrypted; TLS is not granted again.
    :param is_compressed: whether it is already compressed.

    :raises IdentifyError: with the text of the error frame.
    """
    asked = _read(body)
    found = Negotiated(
        str(asked["client_id"]),
        str(asked["hostname"]),
        str(asked["user_agent"]),
        bool(asked["feature_negotiation"]),
        _heartbeat(int(asked["heartbeat_interval"]), terms),
        0,
        _buffer_timeout(int(asked["output_buffer_timeout"]), terms),
        0,
        0,
    )
    _set_buffer_size(found, int(asked["output_buffer_size"]), terms)
    found.sample_rate = _sample_rate(int(asked["sample_rate"]))
    found.msg_timeout_ms = _msg_timeout(int(asked["msg_timeout"]), terms)
    if not found.features:
        return found, b"OK"
    found.tls = terms.tls and not is_secure and bool(asked["tls_v1"])
    found.snappy = terms.snappy and not is_compressed and bool(asked["snappy"])
    found.deflate = terms.deflate and not is_compressed and bool(asked["deflate"])
    if found.deflate and int(asked["deflate_level"]) > 0:
        found.deflate_level = int(asked["deflate_level"])
    found.deflate_level = min(found.deflate_level, terms.max_deflate_level)
    if found.snappy and found.deflate:
        raise IdentifyError("E_IDENTIFY_FAILED cannot enable both deflate and snappy compression")
    return found, _answer(found, terms)


def _answer(found: Negotiated, terms: ServerTerms) -> bytes:
    """The response as compact JSON, because clients search its text (N35)."""
    told = {
        "max_rdy_count": terms.max_rdy_count,
        "version": terms.version,
        "max_msg_timeout": terms.max_msg_timeout_ms,
        "msg_timeout": found.msg_timeout_ms,
        "tls_v1": found.tls,
        "deflate": found.deflate,
        "deflate_level": found.deflate_level,
        "max_deflate_level": terms.max_deflate_level,
        "snappy": found.snappy,
        "sample_rate": found.sample_rate,
        "auth_required": terms.auth_required,
        "output_buffer_size": found.output_buffer_size,
        "output_buffer_timeout": found.output_buffer_timeout_ms,
        "topology_region": "",
        "topology_zone": "",
    }
    return json.dumps(told, separators=(",", ":")).encode()


def _read(body: bytes) -> dict[str, Any]:
    """Read the fields like Go's decoder: keys in any case, the last of equal keys counts, null is
    no value, unknown keys are skipped (N26)."""
    found: dict[str, Any] = dict.fromkeys(_TEXTS, "")
    found |= dict.fromkeys(_FLAGS, False)
    found |= dict.fromkeys(_NUMBERS, 0)
    try:
        given = json.loads(body.decode("utf-8", "replace"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _bad_json() from None
    if given is None:
        return found
    if not isinstance(given, dict):
        raise _bad_json()
    for key, value in given.items():
        name = key.lower()
        if name not in found or value is None:
            continue
        if name in _TEXTS:
            fits = isinstance(value, str)
        elif name in _FLAGS:
            fits = isinstance(value, bool)
        else:
            most = _INT32 if name == "sample_rate" else _INT
            fits = type(value) is int and -most <= value < most
        if not fits:
            raise _bad_json()
        found[name] = value
    return found


def _no_constant(_text: str) -> object:
    raise ValueError("JSON has no such constant")


def _bad_json() -> IdentifyError:
    return IdentifyError("E_BAD_BODY IDENTIFY failed to decode JSON body")


def _invalid(what: str, value: int) -> IdentifyError:
    return IdentifyError(f"E_BAD_BODY IDENTIFY {what} ({value}) is invalid")


def _heartbeat(asked: int, terms: ServerTerms) -> int:
    if asked == 0:
        return terms.heartbeat_interval_ms
    if asked == -1:
        return 0
    if _MIN_HEARTBEAT_MS <= asked <= terms.max_heartbeat_interval_ms:
        return asked
    raise _invalid("heartbeat interval", asked)


def _buffer_timeout(asked: int, terms: ServerTerms) -> int:
    if asked == 0:
        return terms.output_buffer_timeout_ms
    if asked == -1:
        return 0
    if terms.min_output_buffer_timeout_ms <= asked <= terms.max_output_buffer_timeout_ms:
        return asked
    raise _invalid("output buffer timeout", asked)


def _set_buffer_size(found: Negotiated, asked: int, terms: ServerTerms) -> None:
    """Set the size of the buffer; without a buffer, there is no timer either (N30)."""
    if asked == 0:
        found.output_buffer_size = terms.output_buffer_size
    elif asked == -1:
        found.output_buffer_size = 1
        found.output_buffer_timeout_ms = 0
    elif _MIN_OUTPUT_BUFFER <= asked <= terms.max_output_buffer_size:
        found.output_buffer_size = asked
    else:
        raise _invalid("output buffer size", asked)


def _sample_rate(asked: int) -> int:
    if not 0 <= asked <= _MAX_SAMPLE_RATE:
        raise _invalid("sample rate", asked)
    return asked


def _msg_timeout(asked: int, terms: ServerTerms) -> int:
    if asked == 0:
        return terms.msg_timeout_ms
    if _MIN_MSG_TIMEOUT_MS <= asked <= terms.max_msg_timeout_ms:
        return asked
    raise _invalid("msg timeout", asked)
