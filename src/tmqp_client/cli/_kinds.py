"""Kinds of values on the command line that click's own are too lenient for."""

from __future__ import annotations

import math
from typing import Any

import click

__all__ = ["Number"]


class Number(click.FloatRange):
    """A number in a range; "nan", which Python reads as a number, is refused.

    :param least: the least valid number.
    :param most: the largest valid number; None for no limit.
    :param above: the least number itself is invalid.
    :param infinite: infinity is valid, for example as a time that never ends.
    """

    def __init__(
        self,
        least: float,
        most: float | None = None,
        *,
        above: bool = False,
        infinite: bool = False,
    ) -> None:
        super().__init__(least, most, min_open=above)
        self.infinite = infinite

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number) or (math.isinf(number) and not self.infinite):
            self.fail(f"{value!r} is not a value that this option can have", param, ctx)
        return number
