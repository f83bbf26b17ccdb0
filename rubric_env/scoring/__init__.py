"""Verdicts and faults to scores, rewards and outcomes (SPEC 3, 7 and 9). Pure: no calls, no files."""

from rubric_env.scoring._advantages import AdvantageKind, advantages
from rubric_env.scoring._levels import snap_level
from rubric_env.scoring._outcome import Outcome, OutcomeContext, final_reward, not_delivered, settle, unscored
from rubric_env.scoring._score import RowScore, Scorecard, TagScore, score, why_unscorable
from rubric_env.scoring.faults import ExitCode, Fault, FaultKind, prevailing
from rubric_env.scoring.judgement import Judgement, RowVerdict, Usage

__all__ = [
    "AdvantageKind",
    "ExitCode",
    "Fault",
    "FaultKind",
    "Judgement",
    "Outcome",
    "OutcomeContext",
    "RowScore",
    "RowVerdict",
    "Scorecard",
    "TagScore",
    "Usage",
    "advantages",
    "final_reward",
    "not_delivered",
    "prevailing",
    "score",
    "settle",
    "snap_level",
    "unscored",
    "why_unscorable",
]
