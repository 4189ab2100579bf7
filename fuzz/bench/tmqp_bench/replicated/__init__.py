"""A group of three servers on etcd, beside one server, and beside others with three copies."""

from __future__ import annotations

from tmqp_bench.replicated.command import add_arguments, run

__all__ = ["add_arguments", "run"]
