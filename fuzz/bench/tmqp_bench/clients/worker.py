"""One run in a process of its own: so each library starts fresh, in the build asked for."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from tmqp_bench.clients.load import KINDS, Shape, measure

__all__ = ["main"]

_LINKS: Final = {
    "tmqp": ("tmqp_bench.clients.ours", "link"),
    "nats-py": ("tmqp_bench.clients.others", "nats_link"),
    "aio-pika": ("tmqp_bench.clients.others", "aio_pika_link"),
    "redis-py": ("tmqp_bench.clients.others", "redis_link"),
}


def main() -> int:
    """Measure, print one line of JSON, return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tmqp_bench.clients.worker")
    parser.add_argument("library", choices=_LINKS)
    parser.add_argument("kind", choices=KINDS)
    for name in ("port", "window", "payload"):
        parser.add_argument(name, type=int)
    parser.add_argument("warm_up", type=float)
    parser.add_argument("seconds", type=float)
    options = parser.parse_args()
    module, name = _LINKS[options.library]
    connect: Callable[..., Any] = getattr(import_module(module), name)
    shape = Shape(options.kind, options.window, options.payload, options.warm_up, options.seconds)
    gc.collect()
    try:
        figures = asyncio.run(measure(connect, options.port, shape))
    except Exception as error:  # noqa: BLE001 - whatever a library raises is what happened
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(
        json.dumps(
            {
                "messages": figures.messages,
                "seconds": figures.seconds,
                "client_cpu_s": figures.client_cpu_s,
                "latencies_us": figures.latencies_us,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
