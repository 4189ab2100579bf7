"""Judges files by the JSON schemas that check-jsonschema brings along."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema.validators import validator_for

__all__ = ["complaints"]


@cache
def _validator(name: str) -> Any:
    folder = files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return validator_for(schema)(schema)


def complaints(value: object, schema: str) -> list[str]:
    """What is wrong with a value, by the schema of a name such as ``compose-spec``."""
    return [f"{each.json_path}: {each.message}" for each in _validator(schema).iter_errors(value)]
