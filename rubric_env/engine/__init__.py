"""From a case to an outcome: evidence, blocks, calls, verdicts, score (docs/engine.md)."""

from rubric_env.engine.breaker import Breaker, JudgeAborted
from rubric_env.engine.engine import Case, JudgeEngine
from rubric_env.engine.events import CallEvent, Question
from rubric_env.engine.journal import Journal, JournalError
from rubric_env.engine.limiter import Limiter
from rubric_env.engine.tries import Backoff

__all__ = [
    "Backoff",
    "Breaker",
    "CallEvent",
    "Case",
    "Journal",
    "JournalError",
    "JudgeAborted",
    "JudgeEngine",
    "Limiter",
    "Question",
]
