"""The options of queues and channels on the command line, made from the models that declare them.

Every option that :class:`tmqp.models.QueueOptions` and :class:`tmqp.models.ChannelOptions` declare
is an option here, under its own name: a flag as ``--durable/--no-durable``, milliseconds as
seconds, names and numbers unchanged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar, get_args, get_type_hints

import click

from tmqp import QueueStatus
from tmqp.models import QueueOptions
from tmqp.models._kinds import AddressKind
from tmqp.models._model import properties_of
from tmqp_client.cli._kinds import Number

__all__ = ["MOMENT", "STATUS_WORDS", "model_options", "split"]

STATUS_WORDS: Final = tuple(status.name.lower().replace("_", "-") for status in QueueStatus)

_MILLISECONDS: Final = "_ms"
#: Names that are shorter on the command line.
_SHORT: Final = {"message_delivery_handler": "handler"}
_C = TypeVar("_C", bound=Callable[..., Any])
_M = TypeVar("_M", bound=QueueOptions)


class _Ids(click.ParamType):  # type: ignore[type-arg] # not generic in older releases
    """Numbers separated by commas."""

    name = "ids"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(each) for each in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers; write 1,2,3", param, ctx)


class _Moment(click.ParamType):  # type: ignore[type-arg] # not generic in older releases
    """A time of ISO 8601; without a time zone it is this machine's local time."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return datetime.fromisoformat(str(value)).astimezone()
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a time; write 2027-01-01T08:00:00Z", param, ctx)


MOMENT: Final = _Moment()


def _option(
    name: str,
    kind: object,
    help_text: str,
    bounds: tuple[int, int] | None,
    words: tuple[str, ...],
    metavar: str,
) -> Callable[[_C], _C]:
    """The option of one field.

    :param bounds: the least and the largest valid integer.
    :param words: the valid texts; empty if any text is valid.
    :param metavar: the placeholder of a text in the help.
    """
    plain = name.removesuffix(_MILLISECONDS)
    word = _SHORT.get(plain, plain).replace("_", "-")
    types = {*get_args(kind)} - {type(None)} or {kind}
    if bool in types:
        return click.option(f"--{word}/--no-{word}", name, default=None, help=help_text)
    if name == "status":
        return click.option("--status", type=click.Choice(STATUS_WORDS), help=help_text)
    if name.endswith(_MILLISECONDS):
        seconds = Number(0, None if bounds is None else bounds[1] // 1_000)
        return click.option(f"--{word}", name, type=seconds, metavar="SECONDS", help=help_text)
    if int in types:
        return click.option(f"--{word}", name, type=click.IntRange(*bounds or ()), help=help_text)
    if words:
        return click.option(f"--{word}", name, type=click.Choice(words), help=help_text)
    if str in types:
        return click.option(f"--{word}", name, metavar=metavar, help=help_text)
    help_text += " Separate them by commas."
    return click.option(f"--{word}", name, type=_Ids(), metavar="IDS", help=help_text)


def model_options(model: type[_M]) -> Callable[[_C], _C]:
    """Give a command an option for each field of a model."""
    kinds = get_type_hints(model)
    declared = {each.attribute: each for each in properties_of(model)}
    by_field = [declared[field.name] for field in dataclasses.fields(model)]
    options = [
        _option(
            each.attribute,
            kinds[each.attribute],
            each.option.meaning,
            each.bounds,
            each.option.words,
            "CHANNEL;ID" if isinstance(each.kind, AddressKind) else "NAME",
        )
        for each in by_field
        if each.option is not None
    ]

    def add(command: _C) -> _C:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def split(model: type[_M], given: Mapping[str, Any]) -> tuple[_M | None, dict[str, Any]]:
    """Divide the given options into the model's fields and the rest.

    :return: the model, or None if none of its fields was given; and the other options.
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
