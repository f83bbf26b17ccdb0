from __future__ import annotations

from rubric_env.scoring.faults import Fault


class JudgeCallError(RuntimeError):
    """A free question that the judge did not answer; `fault` says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault
