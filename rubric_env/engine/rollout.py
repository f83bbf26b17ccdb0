"""One rollout's rows on their way to verdicts: blocks, tries, resplit, budget (SPEC 7)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from rubric_env._threads import aside, waiting
from rubric_env.engine.desk import Desk, Material, Reuse
from rubric_env.engine.events import Question
from rubric_env.engine.limiter import Elsewhere, Seat
from rubric_env.engine.plan import plan
from rubric_env.engine.reading import read_reply
from rubric_env.engine.sheet import Sheet
from rubric_env.engine.tries import FINAL_FAULTS, Tries
from rubric_env.judges.protocol import CallFault, Judge, Prompt, Reply
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import RowVerdict, Usage

LARGE_TEXT = 16_000
"""Characters of an answer above which it is parsed off the event loop."""

CACHED_PREFIX = 1024
"""Tokens of a shared prefix below which no known endpoint caches it."""

LAST_WORDS = 0.5
"""Seconds before the deadline, at most, in which no call is out: what came of the last ones is read and kept."""

SMALLEST_EVIDENCE = 500
"""Tokens of evidence below which a question that is too long is not too long because of it."""


class Rollout:
    """Asks for the rows of one case and puts on the sheet what comes of it.

    `deadline` is in loop time. `remake` gives the material within another budget of evidence tokens; it runs in a
    thread.
    """

    def __init__(
        self,
        desk: Desk,
        material: Material,
        sheet: Sheet,
        remake: Callable[[int], Material],
        *,
        deadline: float,
        name: str,
    ) -> None:
        self.material = material
        self._desk = desk
        self._settings = desk.settings
        self._sheet = sheet
        self._remake = remake
        self._seat = Seat(deadline)
        self._last_words = deadline - min(LAST_WORDS, desk.settings.deadline / 50)
        self._name = name
        self._gate = asyncio.Semaphore(desk.settings.concurrency)
        self._shrinking = asyncio.Lock()
        self._shrunk = False
        self._stopped: Fault | None = None

    async def run(self) -> None:
        """Until every row is settled. Bounded by the caller's deadline; what is known by then is on the sheet."""
        with self._desk.calls.breaker.rollout(self._seat):
            if self.material.reuse is None:
                await self._ask(self._sheet.ids)
            else:
                await self._ask_once(self.material.reuse)

    async def _ask_once(self, reuse: Reuse) -> None:
        """Take what the journal knows, ask for what nobody asks, and wait for the rest."""
        journal, scope = self._desk.journal, reuse.scope
        rows = {reuse.keys[row]: row for row in self._sheet.ids}
        while rows:
            left = self._seat.deadline - asyncio.get_running_loop().time()
            taken = await journal.take(scope, list(rows), left)
            try:
                self._reuse({rows.pop(key): verdict for key, verdict in taken.known.items()})
                await self._ask([rows.pop(key) for key in taken.mine])
            finally:
                journal.release(scope, taken.mine)
            for key in list(rows):
                if verdict := await journal.wait(scope, key):
                    self._reuse({rows.pop(key): verdict})

    async def _ask(self, ids: Sequence[str]) -> None:
        blocks = plan(ids, self._settings.batch)
        lead = self._lead() if len(blocks) > 1 else None
        async with asyncio.TaskGroup() as tasks:
            for number, block in enumerate(blocks):
                first_wave = number < self._settings.concurrency
                jitter = self._settings.start_jitter if first_wave else 0.0
                tasks.create_task(self._judge_block(block, tasks, jitter, lead, leads=number == 0))

    def _lead(self) -> asyncio.Event | None:
        """Set when the first block is back, where the others then find their long prefix in the endpoint's cache."""
        brief = self.material.brief
        quota = quota_of(self._desk.judges.pick(brief.prompt(brief.spec.ids[:1])))
        return asyncio.Event() if brief.tokens >= CACHED_PREFIX and quota in self._desk.caching else None

    async def _judge_block(
        self, ids: Sequence[str], tasks: asyncio.TaskGroup, jitter: float, lead: asyncio.Event | None, *, leads: bool
    ) -> None:
        if jitter:
            async with self._gate:
                await asyncio.sleep(random.uniform(0, jitter))
        if lead is not None and not leads:
            await lead.wait()
        left = await self._try_rows(ids, lead)
        if len(ids) > 1 and self._settings.resplit:
            for row in left:
                tasks.create_task(self._judge_row(row))
        else:
            await self._give_up(left)

    async def _judge_row(self, row: str) -> None:
        await self._give_up(await self._try_rows([row]))

    async def _try_rows(self, ids: Sequence[str], lead: asyncio.Event | None = None) -> list[str]:
        """Ask until all rows are settled or asking again is useless (then none are left), or until tries or budget are
        used up: the rows that are left then. `lead` is set after the first call."""
        pending = list(ids)
        tries = Tries(self._settings, self._desk.backoff, self._seat.deadline)
        while True:
            pending, material, answer = await self._call(pending, tries)
            if lead is not None:
                lead.set()
            if answer is None:
                return []
            if isinstance(answer, Reply):
                pending = await self._accept(answer, pending, material)
                if not pending:
                    return []
            elif answer.fault.kind is FaultKind.DEADLINE:
                continue
            else:
                self._sheet.last.update(dict.fromkeys(pending, answer.fault))
                if answer.fault.kind in FINAL_FAULTS and not answer.elsewhere:
                    # What the rollout has not asked yet would fail the same way.
                    self._stopped = answer.fault
                    break
                if answer.fault.kind is FaultKind.CONTEXT_LENGTH and await self._shrink(material, answer):
                    continue
            if not await tries.again(answer):
                if tries.out_of_time:
                    break
                return pending
        await self._give_up(pending, self._stopped)
        return []

    async def _call(self, ids: list[str], tries: Tries) -> tuple[list[str], Material, Reply | CallFault | None]:
        """The rows that were asked, on what, and the answer; None when the journal knew all of them."""
        async with self._gate:
            if self._time_left <= 0:
                await asyncio.Event().wait()  # for the deadline, which ends it all
            async with self._shrinking:  # what is too long is not asked again while somebody shortens it
                material = self.material
            if self._stopped is not None:
                return ids, material, CallFault(self._stopped)
            if self._shrunk and not (ids := await self._unknown(ids, material.reuse)):
                return ids, material, None
            prompt = material.brief.prompt(ids)
            queued = asyncio.get_running_loop().time()
            while True:
                with suppress(Elsewhere):
                    return ids, material, await self._put(prompt, queued, tries.timeout)

    async def _put(self, prompt: Prompt, queued: float, timeout: float) -> Reply | CallFault:
        """One call to whoever is to be asked now. Raises Elsewhere when that changes before its turn comes."""
        judges = self._desk.judges
        judge = judges.pick(prompt)
        quota = quota_of(judge)
        endpoint = getattr(judge, "endpoint", judge.identity)
        attempt = 1 + max(self._sheet.tries[row] for row in prompt.ids)

        def spend(usage: Usage) -> None:
            self._sheet.usage += usage
            self._sheet.tries.update(prompt.ids)

        answer = await self._desk.calls.make(
            lambda: self._ask_judge(judge, prompt, timeout),
            self._seat,
            Question(self._name, prompt.ids, judge.model, endpoint, quota, prompt.tokens, attempt),
            queued=queued,
            spend=spend,
            stays=judges.staying(judge, prompt),
        )
        if answer.usage.cached_tokens:
            self._desk.caching.add(quota)
        return judges.noted(judge, answer)

    @property
    def _time_left(self) -> float:
        """Seconds in which a call may be out."""
        return self._last_words - asyncio.get_running_loop().time()

    async def _ask_judge(self, judge: Judge, prompt: Prompt, timeout: float) -> Reply | CallFault:
        """The call ends before the deadline does, so that rows which came by then are kept; this is no time-out."""
        left = self._time_left
        answer = await judge.ask(prompt, timeout=max(0.0, min(timeout, left)))
        fault = answer.fault if isinstance(answer, CallFault) else answer.cut
        if left >= timeout or fault is None or fault.kind is not FaultKind.TIMEOUT:
            return answer
        late = Fault(FaultKind.DEADLINE, f"JUDGE_DEADLINE of {self._settings.deadline:g} s reached")
        return replace(answer, fault=late) if isinstance(answer, CallFault) else replace(answer, cut=late)

    async def _shrink(self, refused: Material, answer: CallFault) -> bool:
        """Show less of the evidence after a question that was too long. False when nothing is left to leave out."""
        async with self._shrinking:
            if self.material is not refused:
                return True  # another block found out first
            smaller = _smaller(refused, answer.context_limit)
            if smaller is None:
                return False
            material = await waiting.run(self._remake, smaller)
            if material.brief.tokens >= refused.brief.tokens:
                return False
            self.material, self._shrunk = material, True
            return True

    async def _unknown(self, ids: list[str], reuse: Reuse | None) -> list[str]:
        """Those of `ids` on which the journal holds nothing for the evidence as it is now."""
        if reuse is None:
            return ids
        known = await self._desk.journal.read(reuse.scope, [reuse.keys[row] for row in ids])
        self._reuse({row: known[reuse.keys[row]] for row in ids if reuse.keys[row] in known})
        return [row for row in ids if reuse.keys[row] not in known]

    def _reuse(self, verdicts: Mapping[str, RowVerdict]) -> None:
        self._sheet.verdicts.update(verdicts)
        self._sheet.reused += len(verdicts)

    async def _accept(self, reply: Reply, ids: Sequence[str], material: Material) -> list[str]:
        """Put what the reply settles on the sheet: the rows to ask again."""
        rows = [material.brief.spec[row] for row in ids]
        if len(reply.text) > LARGE_TEXT:
            reading = await aside.compute(read_reply, reply, rows, material.pack)
        else:
            reading = read_reply(reply, rows, material.pack)
        self._sheet.faults.update(reading.failed)
        for row in reading.failed:
            self._sheet.standing.pop(row, None)
        self._sheet.last.update({row: doubt.fault for row, doubt in reading.doubts.items()})
        self._sheet.standing.update({row: d.stands for row, d in reading.doubts.items() if d.stands is not None})
        await self._settle(reading.accepted, material.reuse)
        return list(reading.doubts)

    async def _settle(self, verdicts: Mapping[str, RowVerdict], reuse: Reuse | None) -> None:
        tried = {row: replace(verdict, tries=self._sheet.tries[row]) for row, verdict in verdicts.items()}
        self._sheet.verdicts.update(tried)
        if reuse is not None and tried:
            await self._desk.journal.accept(reuse.scope, {reuse.keys[row]: verdict for row, verdict in tried.items()})

    async def _give_up(self, ids: Sequence[str], fault: Fault | None = None) -> None:
        """No further try for these rows: what stands counts, the rest keeps `fault`, or why its last try failed."""
        standing = {row: self._sheet.standing[row] for row in ids if row in self._sheet.standing}
        await self._settle(standing, None if self._shrunk else self.material.reuse)
        for row in ids:
            if row not in standing:
                self._sheet.faults[row] = fault or self._sheet.last[row]


def quota_of(judge: Judge) -> str:
    """Whose limits a call counts against."""
    return str(getattr(judge, "quota", judge.identity))


def _smaller(refused: Material, limit: int | None) -> int | None:
    """The next budget of evidence tokens; `limit` is what the endpoint takes at all, where it said so.

    Estimates differ from the endpoint's own count, so each step leaves a tenth free and is at least a third down.
    """
    evidence, whole = refused.pack.tokens, refused.brief.tokens
    budget = evidence // 2 if limit is None else min(int(0.9 * limit) - (whole - evidence), evidence * 2 // 3)
    if evidence <= SMALLEST_EVIDENCE:
        return None
    return max(budget, SMALLEST_EVIDENCE)
