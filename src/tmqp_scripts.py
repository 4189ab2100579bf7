"""The console scripts, which say what to install where an extra is missing.

``pip install tmqp`` brings the protocol alone, and all scripts: those that need more must start
without it.
"""

from __future__ import annotations

import gc
import importlib
import sys

__all__ = [
    "client",
    "conformance",
    "nsq_to_file",
    "nsq_to_http",
    "nsqadmin",
    "nsqd",
    "nsqlookupd",
    "server",
    "spark",
]


def client() -> None:
    """Run ``tmqp``."""
    _run("tmqp", "client", "tmqp_client.cli")


def server() -> None:
    """Run ``tmqp-server``."""
    _run("tmqp-server", "server", "tmqp_server.__main__")


def conformance() -> None:
    """Run ``tmqp-conformance``."""
    _run("tmqp-conformance", "conformance", "tmqp_conformance.__main__")


def spark() -> None:
    """Run ``tmqp-spark``."""
    _run("tmqp-spark", "spark", "tmqp_spark.cli")


def nsqd() -> None:
    """Run ``nsqd``."""
    _run("nsqd", "nsq", "tmqp_nsq.nsqd")


def nsqlookupd() -> None:
    """Run ``nsqlookupd``."""
    _run("nsqlookupd", "nsq", "tmqp_nsq.nsqlookupd")


def nsqadmin() -> None:
    """Run ``nsqadmin``."""
    _run("nsqadmin", "nsq", "tmqp_nsq.nsqadmin")


def nsq_to_file() -> None:
    """Run ``nsq_to_file``."""
    _run("nsq_to_file", "nsq", "tmqp_nsq.nsq_to_file")


def nsq_to_http() -> None:
    """Run ``nsq_to_http``."""
    _run("nsq_to_http", "nsq", "tmqp_nsq.nsq_to_http")


def _run(program: str, extra: str, module: str) -> None:
    # What a program loads stays until it ends; looking for garbage among it takes a tenth of the
    # time that it needs to start.
    gc.disable()
    try:
        main = importlib.import_module(module).main
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing.startswith("tmqp"):
            raise  # a fault of ours, which no extra mends
        sys.exit(
            f"{program}: the Python package {missing!r} is missing; install what {program} needs"
            f" with: pip install 'tmqp[{extra}]'"
        )
    gc.freeze()
    gc.enable()
    main()
