"""The options of queues and channels on the command line, made from the models that declare them.

Whatever :class:`tmqp.models.QueueOptions` and :class:`tmqp.models.ChannelOptions` declare is an
option here, under its own name: a flag as ``--durable/--no-durable``, milliseconds as a number of
seconds, names and numbers as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, get_args, get_type_hints

import click

from tmqp import QueueStatus
from tmqp.models import QueueOptions

__all__ = ["STATUS_WORDS", "model_options", "split"]

STATUS_WORDS: Final = tuple(status.name.lower().replace("_", "-") for status in QueueStatus)

_MILLISECONDS: Final = "_ms"
#: Names that are shorter on the command line.
_SHORT: Final = {"message_delivery_handler": "handler"}
_HELP: Final = {
    "send_only_first_acquirer": "Whether a message goes to one consumer only.",
    "request_acknowledge": "Whether consumers must acknowledge.",
    "acknowledge_timeout_ms": "How long a consumer may take.",
    "message_timeout_ms": "How long a message may wait; 0: for ever.",
    "use_message_id": "Whether messages without an id are given one.",
    "wait_for_acknowledge": "Whether each message waits until the one before was acknowledged.",
    "hide_client_names": "Whether consumers are not told who sent a message.",
    "status": "What the queue does.",
    "message_delivery_handler": "Name of the delivery handler.",
    "message_limit": "How many may wait; 0: any.",
    "durable": "Whether messages are saved to disk; the server needs a data directory (--data).",
    "overflow": "Whether what does not fit into memory waits on disk.",
    "ephemeral": "Whether messages of a durable queue may be kept in memory only.",
    "memory_limit": "How many waiting messages stay in memory; 0: the server's limit.",
    "retain_bytes": "Keep so many bytes of settled messages for readers; 0: none.",
    "retain_time_ms": "Keep settled messages for readers so long; 0: not.",
    "retain_for_readers": "Keep messages until every cursor has passed them.",
    "allow_multiple_queues": "Whether the channel may have more than one queue.",
    "allowed_queues": "The ids that its queues may have, separated by commas.",
    "event_handler": "Name of the event handler.",
    "authenticator": "Name of the authenticator.",
    "client_limit": "How many clients may join; 0: any.",
    "queue_limit": "How many queues; 0: any.",
    "destroy_when_empty": "Whether the channel is removed when nothing is left in it.",
}
_C = TypeVar("_C", bound=Callable[..., Any])
_M = TypeVar("_M", bound=QueueOptions)


class _Ids(click.ParamType):  # type: ignore[type-arg] # not generic in older releases
    """Numbers with commas between."""

    name = "ids"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(each) for each in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is no list of numbers; write 1,2,3", param, ctx)


def _option(name: str, kind: object) -> Callable[[_C], _C]:
    """The option of one field."""
    plain = name.removesuffix(_MILLISECONDS)
    word = _SHORT.get(plain, plain).replace("_", "-")
    help_text = _HELP.get(name, f"The option {word} of the queue.")
    types = {*get_args(kind)} - {type(None)} or {kind}
    if bool in types:
        return click.option(f"--{word}/--no-{word}", name, default=None, help=help_text)
    if name == "status":
        return click.option("--status", type=click.Choice(STATUS_WORDS), help=help_text)
    if name.endswith(_MILLISECONDS):
        seconds = click.FloatRange(0)
        return click.option(f"--{word}", name, type=seconds, metavar="SECONDS", help=help_text)
    if int in types:
        return click.option(f"--{word}", name, type=click.IntRange(0), help=help_text)
    if str in types:
        return click.option(f"--{word}", name, metavar="NAME", help=help_text)
    return click.option(f"--{word}", name, type=_Ids(), metavar="IDS", help=help_text)


def model_options(model: type[_M]) -> Callable[[_C], _C]:
    """Give a command an option for each field of a model."""
    kinds = get_type_hints(model)

    def add(command: _C) -> _C:
        for field in reversed(dataclasses.fields(model)):
            command = _option(field.name, kinds[field.name])(command)
        return command

    return add


def split(model: type[_M], given: Mapping[str, Any]) -> tuple[_M | None, dict[str, Any]]:
    """Divide what a command was given into the model's fields and the rest.

    :return: the model, None if none of its fields was given; and what is no field of it.
    """
    rest = dict(given)
    found: dict[str, Any] = {}
    for field in dataclasses.fields(model):
        value = rest.pop(field.name, None)
        if value is None:
            continue
        if field.name == "status":
            value = QueueStatus[value.upper().replace("-", "_")]
        elif field.name.endswith(_MILLISECONDS):
            value = round(value * 1_000)
        found[field.name] = value
    return (model(**found) if found else None), rest
