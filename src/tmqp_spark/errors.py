"""The errors of the package.

Spark shows little more of a Python error than its text, so every text names the broker, the channel
and queue, the range and the remedy.
"""

# ruff: noqa: N818 - they are named for what happened, as in tmqp_client.errors

from __future__ import annotations

from tmqp.errors import TmqpError

__all__ = [
    "BrokerRefused",
    "BrokerUnreachable",
    "ConnectionBroken",
    "DataLost",
    "DatabaseUnusable",
    "DecodeFailed",
    "EncodingError",
    "GroupShared",
    "InvalidOption",
    "InvalidSchema",
    "JavaMissing",
    "SparkError",
    "StandsBy",
    "TlsMistake",
]


class SparkError(TmqpError):
    """Base class of the errors that this package raises on purpose."""


class InvalidOption(SparkError):
    """An option is unknown, missing, or invalid."""


class InvalidSchema(SparkError):
    """The schema given by the user has a column that the source does not, or another type."""


class BrokerUnreachable(SparkError):
    """The connection failed, or was lost more often than ``retries`` allows."""


class BrokerRefused(SparkError):
    """The broker answered with the result code ``code``; ``body`` is the payload of its answer."""

    def __init__(self, text: str, code: int, body: bytes = b"") -> None:
        super().__init__(text)
        self.code = code
        self.body = body

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self), self.code, self.body))


class DataLost(SparkError):
    """Messages that had to be read are no longer kept, or the queue was replaced by another one."""


class GroupShared(SparkError):
    """Another query uses the same group; the text says what to do."""


class DatabaseUnusable(SparkError):
    """The directory of ``journalDir`` is not the broker's, or cannot be read here."""


class DecodeFailed(SparkError):
    """The broker's answer is invalid, or was damaged on its way."""


class TlsMistake(SparkError):
    """TLS is configured wrongly, so a retry would not help; the text names the file or the
    certificate."""


class ConnectionBroken(SparkError):
    """The connection was lost; its requests can be repeated on another one."""


class StandsBy(ConnectionBroken):
    """The server is a standby; ``leader`` is the address of the leader, empty if it is unknown."""

    def __init__(self, url: str, leader: str) -> None:
        where = f"{leader} leads" if leader else "no server leads"
        super().__init__(f"{url}: the server is a standby, {where}")
        self.url = url
        self.leader = leader

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.url, self.leader))


class JavaMissing(SparkError):
    """No Java that Spark runs on was found."""


class EncodingError(SparkError):
    """A row cannot be a message; the text names the row and a remedy."""
