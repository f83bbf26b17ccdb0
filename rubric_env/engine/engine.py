"""JudgeEngine: a case in, an outcome out."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import secrets
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal

from rubric_env._computing import computing
from rubric_env._loops import PerLoop
from rubric_env._threads import Threads, aside
from rubric_env.engine.breaker import Breaker, JudgeAborted
from rubric_env.engine.calls import Calls
from rubric_env.engine.desk import Desk, Material, Reuse
from rubric_env.engine.events import Question
from rubric_env.engine.journal import Journal
from rubric_env.engine.limiter import Limiter, Seat, process_limiter
from rubric_env.engine.observers import EventFile, Observer, Observers, log_call
from rubric_env.engine.pace import Limits, Throttle
from rubric_env.engine.prompt import Brief, default_instruction, fence_marker, prompt_version
from rubric_env.engine.rollout import Rollout
from rubric_env.engine.sheet import Sheet
from rubric_env.engine.telemetry import rollout_span, trace_call
from rubric_env.engine.tries import Backoff, Tries
from rubric_env.evidence import EvidencePack, build_pack
from rubric_env.judges import Judge, JudgeCallError, Reply
from rubric_env.judges.pool import JudgePool
from rubric_env.rubric import RubricSpec, judge_row, read_text
from rubric_env.scoring import Outcome, OutcomeContext, not_delivered, settle, unscored, why_unscorable
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.settings import JudgeSettings, SettingsError
from rubric_env.submission import Submission

if TYPE_CHECKING:
    from rubric_env.engine.shared import Shared

NOT_YET = ("aux_files", "skip")
"""Settings without effect so far: who sets one is told, rather than judged (and billed) otherwise than asked for."""

READERS = 128
"""Submissions of which files are read, or wait to be, at a time."""

_readers = Threads(READERS, "rubric-env-evidence")
"""Apart: threads that wait for a worker process to read a file keep no other work from being done."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Case:
    """One rollout to judge.

    `group` is the scope in which equal submissions are asked once (JUDGE_REUSE); `sample` tells repeats of one question
    apart (a vote, a repeat run); `name` is for people. `seconds`: the caller waits no longer, where that is less than
    JUDGE_DEADLINE.
    """

    spec: RubricSpec
    submission: Submission
    task: str = ""
    instruction: str = ""
    reference: str = ""
    group: str = ""
    name: str = ""
    sample: int = 0
    seconds: float | None = None


class JudgeEngine:
    """Judges cases with one judge under one set of settings; serves any number of rollouts and loops at once.

    `journal`, `limiter` and `breaker` may be shared between engines. Observers see every call as it ends. Raises
    JournalError when the journal's file cannot be used, SettingsError when the instruction's cannot be read or that for
    events not be written, and when `settings` ask for what this version has not.
    """

    def __init__(
        self,
        settings: JudgeSettings,
        judge: Judge,
        *,
        journal: Journal | None = None,
        limiter: Limiter | None = None,
        breaker: Breaker | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        if asked := [f"{name} = {value!r}" for name in NOT_YET if (value := getattr(settings, name))]:
            raise SettingsError(f"{', '.join(asked)}: not in this version, so unset it")
        self.settings = settings
        judges = JudgePool.of(judge)
        self._shared = process_shared(settings.limiter, settings, judges.quota) if settings.limiter else None
        if limiter is None:
            limits = Limits(settings.requests_per_minute, settings.tokens_per_minute)
            shared = self._shared and shared_limiter(settings.max_in_flight, self._shared.throttle)
            limiter = shared or process_limiter(settings.max_in_flight, limits)
        self._limiter = limiter
        if breaker is None:
            breaker = self._shared.breaker if self._shared else Breaker(settings.max_consecutive_failures)
        self._desk = Desk(
            settings,
            judges,
            Calls(self._limiter, breaker),
            backoff or Backoff(settings.retry_backoff_max),
            journal or Journal(settings.journal if settings.reuse != "off" else None),
        )
        self._instruction = _read_instruction(settings.instruction_file)
        self._secret = secrets.token_bytes(32)
        self._one_chat = PerLoop(lambda: asyncio.Semaphore(1))
        self._event_file = EventFile(settings.events) if settings.events else None
        self._observers = Observers(log_call, trace_call, *([self._event_file] if self._event_file else []))
        self._desk.calls.on_call = self._observers

    def observe(self, observer: Observer) -> None:
        """Show every call from now on to this observer too; it must not block."""
        self._observers.add(observer)

    @property
    def on_call(self) -> Observer | None:
        """One observer that can be set and taken back."""
        return self._observers.on_call

    @on_call.setter
    def on_call(self, hook: Observer | None) -> None:
        self._observers.on_call = hook

    @property
    def aborted(self) -> JudgeAborted | None:
        """Why the endpoint was given up; None while it is not. A batch command ends with this line."""
        return self._desk.calls.breaker.aborted

    async def judge(self, case: Case) -> Outcome:
        """Judge one rollout. Never raises but for cancellation, which leaves no task behind."""
        with rollout_span(self.settings.metric_id, case.name, len(case.spec)) as ended:
            outcome = await self._judge(case)
            ended(outcome)
            return outcome

    async def _judge(self, case: Case) -> Outcome:
        context = OutcomeContext(delivery=case.submission.delivery)
        if case.submission.missing:
            return not_delivered(case.spec, self.settings, context)
        if nothing_to_score := why_unscorable(case.spec):
            return unscored(FaultKind.SCORER_ERROR, nothing_to_score, len(case.spec), context)
        if not case.instruction.strip():
            case = replace(case, instruction=self._instruction)
        clock = asyncio.get_running_loop().time
        started = clock()
        sheet = Sheet(case.spec.ids)
        desk = self._desk.within(case.seconds)
        deadline = desk.settings.deadline
        limit = asyncio.timeout(deadline)
        unfinished = Fault(FaultKind.INTERNAL, "the engine lost the row: please report this")
        rollout: Rollout | None = None
        try:
            async with limit:
                material = await self._prepared(case)
                remake = partial(self._material, case)
                rollout = Rollout(desk, material, sheet, remake, deadline=started + deadline, name=case.name)
                await rollout.run()
        except Exception as error:
            if limit.expired():
                unfinished = _late(deadline)
            else:
                logger.exception("judging %s failed", case.name or "a rollout")
                unfinished = Fault(FaultKind.INTERNAL, _cause(error))
        context = replace(context, limiter_fallback=self._limiter.throttle.fallback)
        if rollout is not None:
            pack = rollout.material.pack
            pages = pack.pages if self._desk.judges.sees else 0
            cut = sum(extract.ours for extract in pack.extracts)
            context = replace(
                context,
                evidence_pages=pages,
                evidence_cut=cut,
                evidence_level="cut" if cut else "pages" if pages else "structure",
                injection_suspected=bool(pack.flags),
            )
        outcome = settle(case.spec, sheet.judgement(clock() - started, unfinished), self.settings, context)
        if case.instruction:
            return outcome
        warning = "no judge instruction: the built-in one was used"
        return replace(outcome, fields={**outcome.fields, "judge_warnings": warning})

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """A free question to the judge, in its turn and with the tries of a block. Raises JudgeCallError."""
        judge = self._desk.judges
        if judge.complete is None:
            raise JudgeCallError(Fault(FaultKind.BAD_REQUEST, f"the judge {judge.model} answers rubric rows only"))
        complete = judge.complete
        seat = Seat(asyncio.get_running_loop().time() + self.settings.deadline)
        question = Question(model=judge.model, quota=judge.quota)
        tries = Tries(self.settings, self._desk.backoff, seat.deadline)
        fault = _late(self.settings.deadline)
        with suppress(TimeoutError), self._desk.calls.breaker.rollout(seat):
            async with asyncio.timeout_at(seat.deadline):
                while True:
                    answer = await self._desk.calls.make(lambda: complete(messages), seat, question)
                    if isinstance(answer, Reply) and answer.cut is None:
                        return answer.text
                    # Half an answer may say the opposite of the whole one.
                    fault = (answer.cut if isinstance(answer, Reply) else answer.fault) or fault
                    if not await tries.again(answer):
                        break
        raise JudgeCallError(fault)

    def judge_client(self) -> Any:
        """The judge's HTTP client for the running loop, or the judge where it has none; past the limiter."""
        return self._desk.judges.client()

    def forget(self, group: str) -> None:
        """Let go of the verdicts held in memory for a group whose rollouts are all scored."""
        self._desk.journal.forget(group)

    async def aclose(self) -> None:
        """Close this loop's connections and write what the journal still holds. May be called again, in any loop."""
        await self._desk.judges.aclose()
        if self._shared is not None:
            await self._shared.aclose()
        try:
            await asyncio.to_thread(self._desk.journal.close)
        except RuntimeError:
            self._desk.journal.close()  # at interpreter exit no thread takes new work
        if self._event_file is not None:
            self._event_file.close()

    async def _prepared(self, case: Case) -> Material:
        work = partial(self._material, case, self.settings.evidence_tokens)
        if case.submission.files:
            return await _readers.run(work)
        # Nothing to read, only Python's own work: each thread more makes the loop wait longer for the interpreter.
        async with self._one_chat.here():
            return await aside.run(work)

    def _material(self, case: Case, budget: int) -> Material:
        """Everything that takes longer the more was delivered; runs in a thread."""
        pack = build_pack(
            case.submission,
            budget_tokens=budget,
            named=[row.description for row in case.spec],
            reference=case.reference,
            sights=self._sights(),
            seconds=self.settings.evidence,
        )
        with computing():
            pack.resolves("")  # builds the index of what can be cited
            brief = Brief.of(
                case.spec,
                pack,
                fence_marker(self._secret, pack.digest),
                instruction=case.instruction or default_instruction(),
                task=case.task,
                reference=case.reference,
            )
            return Material(pack, brief, self._reuse(case, pack))

    def _sights(self) -> Literal["none", "some", "all"]:
        """Which pictures are drawn: none for a judge that cannot see them."""
        if self.settings.vision == "off" or not self.settings.evidence or not self._desk.judges.sees:
            return "none"
        return "all" if self.settings.vision == "on" else "some"

    def _reuse(self, case: Case, pack: EvidencePack) -> Reuse | None:
        """Everything that a verdict depends on, per row (SPEC 7); the digest is of the evidence as it is shown."""
        scope = case.group if self.settings.reuse == "group" else ""
        if self.settings.reuse == "off" or (self.settings.reuse == "group" and not scope):
            return None
        texts = [case.task, case.instruction, case.reference, pack.digest]
        base = hashlib.sha256(_canonical([*texts, prompt_version(), self._desk.judges.identity, case.sample]))
        keys = {}
        for row in case.spec:
            key = base.copy()
            key.update(_canonical([judge_row(row), row.raw]))
            keys[row.id] = key.hexdigest()
        return Reuse(scope, keys)


@lru_cache
def shared_limiter(size: int, throttle: Throttle) -> Limiter:
    """The limiter of all engines of this process over one throttle."""
    return Limiter(size, throttle)


@lru_cache
def process_shared(url: str, settings: JudgeSettings, scope: str) -> Shared:
    """What all engines of this process share with other processes through one Redis, for one judge."""
    from rubric_env.engine.shared import open_shared

    return open_shared(url, settings, scope=scope)


def _read_instruction(path: str | None) -> str:
    if path is None:
        return ""
    try:
        text, warning = read_text(path)
    except OSError as error:
        raise SettingsError(f"instruction_file = {path!r}: cannot be read: {error.strerror}") from None
    if warning:
        warnings.warn(warning, stacklevel=3)
    return text if text.strip() else ""


def _canonical(value: object) -> bytes:
    return json.dumps(value, default=str).encode()


def _late(deadline: float) -> Fault:
    return Fault(FaultKind.DEADLINE, f"JUDGE_DEADLINE of {deadline:g} s reached")


def _cause(error: Exception) -> str:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
