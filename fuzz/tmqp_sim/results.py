"""What is left of a run when it is over: it goes from one process to another, so it stays
Python where the simulation is compiled (``tools/compile_simulator.py``)."""

from __future__ import annotations

from tmqp_sim.cluster_plan import ClusterPlan
from tmqp_sim.plan import Plan
from tmqp_sim.world import World

__all__ = ["Result"]


class Result:
    """What came of a run; ``checker`` is empty when every promise was kept."""

    __slots__ = (
        "checker", "digest", "events", "healed_in_s", "history", "left_out", "marks", "plan",
        "seed", "simulated_s", "text",
    )  # fmt: skip

    def __init__(
        self,
        plan: Plan | ClusterPlan,
        world: World,
        checker: str,
        text: str,
        healed_in: float,
    ) -> None:
        self.seed = plan.seed
        self.plan = plan.described()
        self.left_out = plan.left_out
        self.checker = checker
        self.text = text
        self.digest = world.digest()
        self.events = world.events
        self.simulated_s = world.now
        self.healed_in_s = healed_in
        self.marks = world.marks
        self.history = world.recent() if checker else []

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return bool(self.checker)

    def report(self) -> str:
        """All that is needed to repeat it."""
        lines = [
            f"seed {self.seed} FAILED: {self.checker}",
            *("  " + line for line in self.text.splitlines()),
            "plan:",
            *("  " + line for line in self.plan),
        ]
        if self.left_out:
            lines.append(f"left out: {len(self.left_out)} of the plan's things")
        lines.append(f"the last of {self.events} events, digest {self.digest}:")
        lines += ["  " + line for line in self.history]
        return "\n".join(lines)
