"""NSQ: the TCP protocol V2 of nsqd for both roles, its layers, and what is kept of a message.

A server uses :class:`CommandDecoder` and the frames of ``writing``; a client uses
:class:`ClientConnection`, or :class:`FrameDecoder` and the commands of ``writing``.  N numbers in
the docstrings are the facts of docs/doors/nsq.md.
"""

from __future__ import annotations

from tmqp_wires.nsq.client import ClientConnection
from tmqp_wires.nsq.codec import CommandDecoder
from tmqp_wires.nsq.frames import FrameDecoder
from tmqp_wires.nsq.identify import Negotiated, ServerTerms
from tmqp_wires.nsq.layers import DeflateLayer, Layer, LayerError, SnappyLayer

__all__ = [
    "ClientConnection",
    "CommandDecoder",
    "DeflateLayer",
    "FrameDecoder",
    "Layer",
    "LayerError",
    "Negotiated",
    "ServerTerms",
    "SnappyLayer",
]
