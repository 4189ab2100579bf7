"""The proof that the order of ten priorities is judged by what producers wrote."""

from __future__ import annotations

import pytest

from tests.tmqp_sim.histories import WORK
from tmqp.extensions import HEADER_PRIORITY
from tmqp.frames import Frame
from tmqp.types import MessageType
from tmqp_server.engine.commands import Push
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import MARK_HIGH, Message
from tmqp_sim.precedence import Precedence
from tmqp_sim.world import Violation, World
