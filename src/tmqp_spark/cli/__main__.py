"""Lets ``python -m tmqp_spark.cli`` run the command."""

from __future__ import annotations

from tmqp_spark.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
