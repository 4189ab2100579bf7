"""JMS 2.0 with ActiveMQ's own clients: the simplified interface, delays and shared subscriptions.

What a client does not offer it refuses by an exception of its own, at our server as at ActiveMQ of
the same version; the guide lists that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.interop.openwire.clients import SIMPLIFIED, simplified
from tests.interop.openwire.talking import MARKS, at_activemq, at_our_server, failures
from tests.project import ROOT

pytestmark = MARKS

_REFUSES: Final = "no: java.lang.UnsupportedOperationException: "
_GUIDE: Final = ROOT / "docs" / "guides" / "from_activemq.md"
#: What the clients get wrong: they have 0 for it, whatever the broker does.
_WRONG: Final = {"2.0 Message getJMSDeliveryTime"}


@pytest.fixture
def anyio_backend() -> str:
    """One is enough: a list takes a while."""
    return "asyncio"


@pytest.mark.parametrize(("version", "refusals"), list(zip(SIMPLIFIED, (17, 12), strict=True)))
async def test_jms_2_has_the_verdicts_of_activemq(
    version: str, refusals: int, tmp_path: Path
) -> None:
    command = simplified(version)
    ours = await at_our_server(command, tmp_path)
    theirs = await anyio.to_thread.run_sync(at_activemq, command, version)
    assert ours == theirs
    refused = failures(ours)
    for name in _WRONG:
        del refused[name]
    assert all(said.startswith(_REFUSES) for said in refused.values()), refused
    guide = _GUIDE.read_text(encoding="utf-8")
    told = {
        each.removeprefix(_REFUSES).removesuffix(" is not supported") for each in refused.values()
    }
    assert {each for each in told if f"`{each}`" not in guide} == set()
    assert (len(ours), len(refused)) == (47, refusals)
