"""The test kit for implementers: what the project checks itself with, usable on any codec.

- ``vectors``: reads recorded exchanges of the original client and server; ``compare`` and
  ``replay`` compare a live server with them, except for ids and times.
- ``contract``: checks of chunking, round trips and escaping exceptions, which raise with a clear
  sentence.
- ``pair``: a client and a server connection, connected to each other, with their own clock.
- ``reference``: a second, plain implementation of the frame layout, for differential tests and
  invalid frames.
- ``generate``: seeded frames, conversations and damage, a few microseconds each.
- ``strategies``: the same for Hypothesis.  Import it by its full name, ``tmqp.testing.strategies``;
  it alone needs the extra ``testing``.

All of it is pure: no files, no clock, no randomness of its own.
"""

from __future__ import annotations

from tmqp.testing.compare import Correspondence, compare
from tmqp.testing.contract import (
    CODEC_RULES,
    CONNECTION_RULES,
    ConnectionLike,
    Decoder,
    Transcript,
    check_chunking,
    check_connection_chunking,
    check_connection_no_escape,
    check_no_escape,
    check_refused_from_head,
    check_round_trip,
    converse,
    describe,
    single_cuts,
)
from tmqp.testing.generate import (
    Seeded,
    client_bytes,
    damage,
    odd_frame,
    pieces,
    plain_frame,
    server_bytes,
)
from tmqp.testing.pair import ConnectionPair, Decide, accept_client
from tmqp.testing.reference import Fields, Reading, header_block_bytes, read_frames, write_frame
from tmqp.testing.replay import Link, Outcome, Player
from tmqp.testing.vectors import (
    CLIENT_TO_SERVER,
    SERVER_TO_CLIENT,
    Exchange,
    RecordedFrame,
    RecordingError,
    Step,
    StepParts,
    join_exchanges,
    parse_exchange,
    recorded_frames,
    split_step,
)

__all__ = [
    "CLIENT_TO_SERVER",
    "CODEC_RULES",
    "CONNECTION_RULES",
    "SERVER_TO_CLIENT",
    "ConnectionLike",
    "ConnectionPair",
    "Correspondence",
    "Decide",
    "Decoder",
    "Exchange",
    "Fields",
    "Link",
    "Outcome",
    "Player",
    "Reading",
    "RecordedFrame",
    "RecordingError",
    "Seeded",
    "Step",
    "StepParts",
    "Transcript",
    "accept_client",
    "check_chunking",
    "check_connection_chunking",
    "check_connection_no_escape",
    "check_no_escape",
    "check_refused_from_head",
    "check_round_trip",
    "client_bytes",
    "compare",
    "converse",
    "damage",
    "describe",
    "header_block_bytes",
    "join_exchanges",
    "odd_frame",
    "parse_exchange",
    "pieces",
    "plain_frame",
    "read_frames",
    "recorded_frames",
    "server_bytes",
    "single_cuts",
    "split_step",
    "write_frame",
]
