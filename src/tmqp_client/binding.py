"""Convert between payloads and a program's own classes: as JSON, unless the program has its own
converter.

The default needs the package ``cattrs`` (``pip install 'tmqp[models]'``): it converts plain data
into attrs classes and dataclasses and back, checks the types, and needs no base class.  A program
that needs something else passes :func:`connect` a ``converter`` with the two methods of
:class:`Converter`, and does not need cattrs.
"""

from __future__ import annotations

import json
from typing import Any, Protocol, TypeVar

from tmqp.errors import LocalProtocolError
from tmqp_client.errors import Unreadable

__all__ = ["Converter", "JsonConverter"]

_T = TypeVar("_T")


class Converter(Protocol):
    """Converts values to payloads and back."""

    def encode(self, value: object) -> bytes:
        """Convert a value to a payload."""

    def decode(self, payload: bytes, kind: type[_T]) -> _T:
        """Convert a payload to a value of a type; raise any exception if that is impossible."""


class JsonConverter:
    """Converts attrs classes, dataclasses, and collections of them to JSON and back, with cattrs.

    :param converter: a ``cattrs`` converter with your own hooks; the JSON converter of cattrs if
        None.
    :raises LocalProtocolError: if cattrs is not installed.
    """

    def __init__(self, converter: Any = None) -> None:
        if converter is None:
            try:
                from cattrs.preconf.json import make_converter  # noqa: PLC0415 - it is optional
            except ImportError:
                raise LocalProtocolError(
                    "models need the package cattrs (pip install 'tmqp[models]'), or a converter"
                ) from None
            converter = make_converter()
        self._converter = converter

    def encode(self, value: object) -> bytes:
        """Convert a value to compact JSON.

        :raises LocalProtocolError: if the value cannot be converted.
        """
        try:
            plain = self._converter.unstructure(value)
            return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
        except (TypeError, ValueError, RecursionError) as error:
            raise LocalProtocolError(f"it cannot be converted to JSON: {error}") from error

    def decode(self, payload: bytes, kind: type[_T]) -> _T:
        """Convert JSON to a value of this type.

        :raises Unreadable: if the payload is not JSON, or not JSON for this type.
        """
        try:
            value: _T = self._converter.structure(json.loads(payload), kind)
        except Exception as error:  # hooks may raise anything
            raise Unreadable(
                f"the payload is not a valid {_name(kind)}: {_words(error)}"
            ) from error
        return value


def _name(kind: object) -> str:
    return getattr(kind, "__name__", None) or str(kind)


def _words(error: BaseException) -> str:
    """The first reason of a group of exceptions, on one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = str(error) or type(error).__name__
    return text.split("\n", 1)[0][:200]
