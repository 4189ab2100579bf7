"""``python -m tmqp_client.cli``: the same as the command ``tmqp``."""

from __future__ import annotations

from tmqp_client.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
