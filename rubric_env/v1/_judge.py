"""HarborJudge: the judge as a plugin of verifiers.v1."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from dataclasses import replace
from typing import Any, ClassVar

from rubric_env._loops import PerLoop
from rubric_env.engine import Case, JudgeEngine
from rubric_env.harbor import InstanceError, result_json
from rubric_env.harbor.case import SourceError, build_case, read_info
from rubric_env.rubric import RubricError
from rubric_env.scoring import FaultKind, Outcome, Usage, final_reward, unscored
from rubric_env.v1._config import HarborJudgeConfig, Resolved, resolve
from rubric_env.v1._errors import HarborJudgeError
from rubric_env.v1._verifiers import vf

SOURCES = (
    "rubric",
    "rubric_path",
    "instance",
    "task_prompt",
    "judge_instruction",
    "reference",
    "answer",
    "submission_dir",
    "output_dir",
)
"""Fields of a task's data that say what and how to judge; each may as well stand in its field `info`."""

GROUPS_KEPT = 64
"""Tasks whose verdicts are held in memory for equal submissions (JUDGE_REUSE): verifiers does not say when the last
rollout of a task is over."""

MARGIN = 0.1
"""Share of verifiers' scoring time-out that is left to it, at most `MARGIN_SECONDS`."""
MARGIN_SECONDS = 30.0

logger = logging.getLogger(__name__)


class HarborJudge(vf.Judge[float, HarborJudgeConfig]):
    """Judges a finished trace against its task's rubric.json, block by block (SPEC 9).

    The rubric, the task text, the instruction and the reference come from the task's data, from the instance that it
    names, or from the configuration. The files are those of `trace.info["submission_dir"]`, or of that field of the
    task's data; without one, the reply alone is judged. `trace.info["judge_result"]` holds every verdict as JSON,
    `trace.metrics` the fields of docs/scoring.md, `trace.extra_usage` what the judge cost.

    Raises ValueError at construction when the configuration cannot be used.
    """

    def __init__(self, config: HarborJudgeConfig | None = None) -> None:
        super().__init__(config)
        self._shared = _Shared.of(self.config)

    async def score(self, task: Any, trace: Any) -> float:
        """The reward. Raises HarborJudgeError when the trace could not be scored: it must not be trained on."""
        settings = self._shared.resolved.settings
        outcome = await self._judge(task, trace)
        self._record(outcome, trace)
        reward = final_reward(outcome, settings)
        if reward is None:
            limit = scoring_limit(trace)
            late = outcome.fields["judge_error_kind"] == FaultKind.DEADLINE
            hint = f"; the scoring time-out of {limit:g} s leaves no more" if late and limit is not None else ""
            raise HarborJudgeError(f"{outcome.exit_reason}{hint}")
        return reward

    async def _judge(self, task: Any, trace: Any) -> Outcome:
        """Raises nothing but cancellation, so that every trace has its metrics."""
        try:
            # It reads files: a folder of many must not hold up the other rollouts.
            case = await asyncio.to_thread(self._case, task, trace)
            if isinstance(case, Outcome):
                return case
            return await self._shared.judge(replace(case, seconds=seconds_left(trace)))
        except (SourceError, RubricError, InstanceError) as error:
            return unscored(FaultKind.SCORER_ERROR, str(error))
        except Exception as error:
            logger.exception("a trace could not be judged")
            return unscored(FaultKind.INTERNAL, f"{type(error).__name__}: {error}")

    def _case(self, task: Any, trace: Any) -> Case | Outcome:
        data = task.model_dump(mode="json")
        facts: dict[str, Any] = {**read_info(data.get("info")), "name": task.name}
        facts.update({name: data[name] for name in SOURCES if data.get(name) not in (None, "")})
        resolved = self._shared.resolved
        return build_case(
            {"submission_dir": trace.info.get("submission_dir"), "example_id": task.idx},
            task.prompt_text,
            completion(trace),
            facts.get("answer"),
            facts,
            resolved.defaults,
            resolved.settings,
            group=trace.task.key or "",
        )

    def _record(self, outcome: Outcome, trace: Any) -> None:
        for name, value in outcome.metrics().items():
            trace.record_metric(self._label(name), value)
        trace.info[self._label("judge_result")] = result_json(outcome, self._shared.resolved.settings)
        if outcome.judgement and outcome.judgement.usage.calls:
            trace.extra_usage.append(_usage(outcome.judgement.usage))

    def _label(self, name: str) -> str:
        return f"{self.config.name}_{name}" if self.config.name else name


class _Shared:
    """What all judges of one configuration share: verifiers builds a judge anew for every trace.

    The environment is read once: it does not change while a run goes on.
    """

    known: ClassVar[dict[str, _Shared]] = {}

    @classmethod
    def of(cls, config: HarborJudgeConfig) -> _Shared:
        key = config.model_dump_json()
        if key not in cls.known:
            cls.known[key] = cls(resolve(config))
        return cls.known[key]

    def __init__(self, resolved: Resolved) -> None:
        self.resolved = resolved
        self._engine: JudgeEngine = resolved.engine()
        self._running: PerLoop[list[Case]] = PerLoop(list)
        self._groups: OrderedDict[str, None] = OrderedDict()

    async def judge(self, case: Case) -> Outcome:
        self._remember(case.group)
        running = self._running.here()
        running.append(case)
        try:
            return await self._engine.judge(case)
        finally:
            running.pop()
            if not running:
                # Nothing in verifiers tells a judge that the run is over, and the loop may end now.
                await self._engine.aclose()

    def _remember(self, group: str) -> None:
        self._groups[group] = None
        self._groups.move_to_end(group)
        while len(self._groups) > GROUPS_KEPT:
            self._engine.forget(self._groups.popitem(last=False)[0])


def completion(trace: Any) -> list[Any]:
    """The policy's part of the last branch: what its prompt says is not the policy's."""
    branches = trace.branches
    nodes = branches[-1].nodes if branches else []
    first = next((n for n, node in enumerate(nodes) if node.sampled), len(nodes))
    return [node.message for node in nodes[first:]]


def scoring_limit(trace: Any) -> float | None:
    """Seconds after which verifiers stops the scoring of this trace; None where it does not.

    A saved trace was scored before: no clock runs while it is judged again.
    """
    if trace.timing.scoring.end:
        return None
    limit = trace.agent.config.timeout.scoring
    return trace.task.data.timeout.scoring if limit is None else limit  # type: ignore[no-any-return]


def seconds_left(trace: Any) -> float | None:
    """Until verifiers' scoring time-out, less a margin; None without one.

    In verifiers 0.4 a trace whose scoring timed out counts as well, with a reward of 0: our deadline must come first.
    """
    limit = scoring_limit(trace)
    if limit is None:
        return None
    passed = time.time() - (trace.timing.scoring.start or time.time())
    return max(0.0, limit - passed - min(MARGIN_SECONDS, MARGIN * limit))


def _usage(usage: Usage) -> Any:
    return vf.Usage(
        prompt_tokens=usage.input_tokens - usage.cached_tokens,
        completion_tokens=usage.output_tokens,
        cached_input_tokens=usage.cached_tokens,
        cost=usage.cost_usd,
    )
