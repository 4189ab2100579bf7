r"""The connection information: the text a client sends as its first message (F26-F30).

Its form is that of an HTTP request head: one line with method and path, then properties::

    CONNECT /\r\n
    Client-Name: producer\r\n
    Client-Id: prod-1\r\n

In the specification, the first line has the path first (``tmq://remote-host CONNECT``); the
original client writes the method first.  Both forms are read; the second one is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from tmqp.constants import MAX_NAME_BYTES, HeaderName
from tmqp.errors import AbuseError, LocalProtocolError, RemoteProtocolError
from tmqp.limits import Limits
from tmqp.names import fault_of_name

__all__ = ["ConnectionInformation"]

_STANDARD = (
    HeaderName.CLIENT_ID.value,
    HeaderName.CLIENT_NAME.value,
    HeaderName.CLIENT_TYPE.value,
    HeaderName.CLIENT_TOKEN.value,
)
_STANDARD_LOWER = tuple([key.lower() for key in _STANDARD])
_SHOWN_CHARACTERS = 64
_SHOWN_PROPERTIES = 8


class ConnectionInformation:
    """A client's description of itself.

    :param client_id: unique on the server; empty asks the server to make one (F30).
    :param name: need not be unique; direct messages may be addressed to it.
    :param type: as ``name``; direct messages may be addressed to it, too.
    :param token: the secret that authenticators check.
    :param properties: further properties, for user code; keys are unique regardless of case.
    :param method: the first word; the original always sends ``CONNECT``.
    :param path: the path of the address that the client connects to.
    """

    __slots__ = ("client_id", "method", "name", "path", "properties", "token", "type")

    def __init__(
        self,
        client_id: str = "",
        name: str = "",
        type: str = "",
        token: str = "",
        properties: Mapping[str, str] | None = None,
        method: str = "CONNECT",
        path: str = "/",
    ) -> None:
        self.client_id = client_id
        self.name = name
        self.type = type
        self.token = token
        self.properties: dict[str, str] = dict(properties or {})
        self.method = method
        self.path = path

    def encode(self) -> bytes:
        """Return the hello's payload, with ``Client-Id`` last, as the original client writes it
        (F27).

        :raises LocalProtocolError: if a part contains CR or LF, or a colon or space that would
            change the meaning; if ``properties`` has a standard property; if an id, name or type
            has more than 255 bytes or a control character.
        """
        for what, word in (("method", self.method), ("path", self.path)):
            if not word or ":" in word or len(word.split()) != 1:
                raise LocalProtocolError(f"the {what} is one word without colon, got {word!r}")
        for key in self.properties:
            if key.strip().lower() in _STANDARD_LOWER:
                raise LocalProtocolError(f"{key} is not one of the further properties")
        lines = [f"{self.method} {self.path}"]
        named = (
            (HeaderName.CLIENT_NAME.value, self.name),
            (HeaderName.CLIENT_TYPE.value, self.type),
            (HeaderName.CLIENT_TOKEN.value, self.token),
            *self.properties.items(),
            (HeaderName.CLIENT_ID.value, self.client_id),
        )
        seen: set[str] = set()
        for key, value in named:
            if not value and key in _STANDARD:
                continue
            if not key.strip() or ":" in key or not _one_line(key) or not _one_line(value):
                raise LocalProtocolError(f"the property {key!r} must be one line without a colon")
            if key.lower() in seen:
                raise LocalProtocolError(f"the property {key} is given twice")
            seen.add(key.lower())
            lines.append(f"{key}: {value}")
        try:
            for what, value in (
                ("client id", self.client_id),
                ("client name", self.name),
                ("client type", self.type),
            ):
                fault = _identity_fault(what, value)
                if fault:
                    raise LocalProtocolError(fault)
            return "".join(f"{line}\r\n" for line in lines).encode("utf-8")
        except UnicodeEncodeError:
            raise LocalProtocolError("the connection information is not valid Unicode") from None

    @classmethod
    def parse(cls, payload: bytes, limits: Limits | None = None) -> ConnectionInformation:
        """Read a hello's payload (F28).  Keys are recognised in any case, values are stripped,
        lines without a colon are skipped.

        :param limits: limits for the further properties; None for no limit.
        :raises AbuseError: ``hello-limit`` if the properties exceed a limit.
        :raises RemoteProtocolError: ``hello-invalid`` if the payload is empty or not UTF-8, repeats
            a property, or has an id, name or type that cannot be in a frame.
        """
        text = _decoded(payload)
        if text is None:
            raise _invalid("the connection information is not UTF-8")
        lines = [line for line in text.split("\r\n") if line]
        if not lines:
            raise _invalid("the connection information is empty")
        information = cls()
        if information._take_first_line(lines[0]):
            del lines[0]
        seen: set[str] = set()
        further_bytes = 0
        for line in lines:
            key, colon, value = line.partition(":")
            key = key.strip()
            if not colon or not key:
                continue
            if key.lower() not in _STANDARD_LOWER:
                further_bytes += len(key.encode("utf-8")) + len(value.strip().encode("utf-8"))
                if limits is not None:
                    _check(limits, len(information.properties) + 1, further_bytes)
            if key.lower() in seen:
                raise _invalid(f"the property {key[:64]!r} is given twice")
            seen.add(key.lower())
            information._take_property(key, value.strip())
        return information

    def _take_first_line(self, line: str) -> bool:
        """Read "METHOD path" or the document's "address METHOD"; False for a property line."""
        first, space, second = line.partition(" ")
        if not space:
            return False
        if ":" not in line:
            self.method, self.path = first, second
            return True
        scheme, colon, rest = first.partition(":")
        if colon and scheme and rest.startswith("//") and ":" not in second and second:
            self.method, self.path = second, first
            return True
        return False

    def _take_property(self, key: str, value: str) -> None:
        lower = key.lower()
        if lower == "client-token":
            self.token = value
        elif lower == "client-id":
            self.client_id = _identity("client id", value)
        elif lower == "client-name":
            self.name = _identity("client name", value)
        elif lower == "client-type":
            self.type = _identity("client type", value)
        else:
            self.properties[key] = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConnectionInformation):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        token = "'...'" if self.token else "''"  # a token must not reach a log
        keys = [key[:_SHOWN_CHARACTERS] for key in self.properties][:_SHOWN_PROPERTIES]
        more = len(self.properties) - len(keys)
        return (
            f"<ConnectionInformation {_short(self.client_id)} name={_short(self.name)}"
            f" type={_short(self.type)} token={token} properties={keys!r}"
            f"{f' and {more} more' if more else ''}>"
        )


def _short(text: str) -> str:
    shown = repr(text[:_SHOWN_CHARACTERS])
    return shown if len(text) <= _SHOWN_CHARACTERS else f"{shown}..."


def _one_line(text: str) -> bool:
    return "\r" not in text and "\n" not in text


def _identity(what: str, value: str) -> str:
    fault = _identity_fault(what, value)
    if fault:
        raise _invalid(fault)
    return value


def _identity_fault(what: str, value: str) -> str:
    """Return what is wrong with an id, name or type; empty if it is valid.  They are in frames and
    in logs, so they have at most 255 bytes and no control characters (``names``)."""
    if len(value.encode("utf-8")) > MAX_NAME_BYTES:
        return f"the {what} is over {MAX_NAME_BYTES} bytes"
    fault = fault_of_name(value)
    return f"the {what} holds {fault}" if fault else ""


def _decoded(payload: bytes) -> str | None:
    """Return the text; None if it is not UTF-8.  A separate function, so that a later error does
    not refer to the decoding error."""
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _check(limits: Limits, count: int, size: int) -> None:
    """Refuse further properties beyond the limits."""
    most = ""
    if count > limits.max_hello_properties:
        most = f"{limits.max_hello_properties} further properties"
    elif size > limits.max_hello_property_bytes:
        most = f"{limits.max_hello_property_bytes} bytes of further properties"
    if most:
        raise AbuseError("hello-limit", f"the connection information has more than {most}")


def _invalid(message: str) -> RemoteProtocolError:
    return RemoteProtocolError("hello-invalid", message)
