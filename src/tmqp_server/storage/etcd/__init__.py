"""A replicated log on etcd 3.4 or newer; needs ``tmqp[replication]``."""

from __future__ import annotations

from tmqp_server.storage.etcd.adapter import EtcdLog
from tmqp_server.storage.etcd.calls import EtcdAccess

__all__ = ["EtcdAccess", "EtcdLog"]
