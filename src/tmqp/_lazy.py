"""Loads names of a package when a program first uses them (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["loading"]


def loading(
    package: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions to use as a package's ``__getattr__`` and ``__dir__``.

    :param package: its ``globals()``.
    :param homes: for each of its modules the names that it defines, separated by spaces.
    """
    own: str = package["__name__"]
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> object:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{own}.{module}"), name)
        package[name] = value
        return value

    def names() -> list[str]:
        return sorted({*package, *package["__all__"]})

    return load, names
