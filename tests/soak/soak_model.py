"""The broker against its model, seed after seed, until the time is up.

A failure names its seed and is shrunk; ``make soak SOAK_SEED=n`` begins with that seed.
"""

from __future__ import annotations

import time

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.soak.share import first_seed, seconds
from tests.tmqp_server.engine.test_model import Machine

#: Runs of one seed, and commands of one run.
EXAMPLES = 100
STEPS = 60
#: Whatever the time: no soak runs for ever.
MOST_SEEDS = 10_000


class Soaking(Machine):
    """Counts what is compared."""

    compared = 0
    delivered = 0
    runs = 0

    def teardown(self) -> None:
        """End as any run, and count it."""
        super().teardown()
        Soaking.runs += 1
        Soaking.compared += self.duel.steps
        for line in self.duel.model.lines():
            Soaking.delivered += line.counts["deliveries"]


def test_the_model_agrees_for_as_long_as_there_is_time() -> None:
    end = time.monotonic() + seconds()
    number = first_seed()
    while time.monotonic() < end and number < first_seed() + MOST_SEEDS:
        machine = seed(number)(type(f"Soaking{number}", (Soaking,), {}))
        try:
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=EXAMPLES,
                    stateful_step_count=STEPS,
                    database=None,
                    deadline=None,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        except BaseException:
            print(f"seed {number}")
            raise
        number += 1
    print(
        f"{number - first_seed()} seeds, {Soaking.runs} runs, {Soaking.compared} steps compared,"
        f" {Soaking.delivered} deliveries in queues that were there at the end, 0 differences"
    )
