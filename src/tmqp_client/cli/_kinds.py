"""Kinds of values on the command line that click's own are too lenient for."""

from __future__ import annotations

import math
from typing import Any

import click

__all__ = ["Number"]


class Number(click.FloatRange):
    """A number in a range; "not a number", which Python reads too, is refused.

    :param least: the least that it may be.
    :param most: the most; None for no bound.
    :param above: the least itself is refused.
    :param infinite: infinity is a value, such as a time that never ends; else it is refused.
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
