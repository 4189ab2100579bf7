"""Ranges of good values, in the syntax of the monitoring plugins (Nagios and its relatives).

==========  ===========================================
``10``      good from 0 to 10
``10:``     good from 10 on
``~:10``    good up to 10, below 0 too
``10:20``   good from 10 to 20
``@10:20``  good outside 10 to 20
==========  ===========================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import click

__all__ = ["RANGE", "Range", "read_range"]


@dataclass(frozen=True, slots=True)
class Range:
    """The values from ``least`` to ``most``, both included.

    ``inverted``: these values are bad, and all others are good.  ``text`` is how it was written.
    """

    text: str
    least: float
    most: float
    inverted: bool

    def has(self, value: float) -> bool:
        """Whether a value is good."""
        return (self.least <= value <= self.most) is not self.inverted


def read_range(text: str) -> Range:
    """Read a range.

    :raises ValueError: if it is not a range; the text is a sentence.
    """
    body = text.strip()
    inverted = body.startswith("@")
    least_text, colon, most_text = body.removeprefix("@").rpartition(":")
    try:
        least = -math.inf if least_text == "~" else float(least_text or 0)
        most = math.inf if colon and not most_text else float(most_text)
    except ValueError:
        least = most = math.nan
    if not least <= most or body in (":", "@:"):
        raise ValueError(
            f"{text!r} is not a range; write 10 (0 to 10), 10: (10 or more), ~:10 (10 or less),"
            " 10:20 or @10:20 (outside 10 to 20)"
        )
    return Range(text, least, most, inverted)


class _RangeType(click.ParamType):  # type: ignore[type-arg] # not generic in older releases
    """A range on the command line."""

    name = "range"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Range:
        """Read the range."""
        if isinstance(value, Range):
            return value
        try:
            return read_range(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


RANGE: Final = _RangeType()
