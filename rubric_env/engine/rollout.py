"""One rollout's rows on their way to verdicts: blocks, tries, resplit, budget (SPEC 7)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rubric_env.engine.calls import Calls
from rubric_env.engine.events import Question
from rubric_env.engine.journal import Journal
from rubric_env.engine.limiter import Seat
from rubric_env.engine.plan import plan
from rubric_env.engine.prompt import Brief
from rubric_env.engine.reading import read_reply
from rubric_env.engine.tries import FINAL_FAULTS, Backoff, Tries
from rubric_env.evidence import EvidencePack
from rubric_env.judges.protocol import CallFault, Judge, Reply
from rubric_env.scoring.faults import Fault
from rubric_env.scoring.judgement import Judgement, RowVerdict, Usage
from rubric_env.settings import JudgeSettings

LARGE_TEXT = 16_000
"""Characters of an answer above which it is parsed off the event loop."""


@dataclass(slots=True)
class Sheet:
    """What is known of each row so far. A row is open until it has a verdict or a final fault."""

    ids: Sequence[str]
    verdicts: dict[str, RowVerdict] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    last: dict[str, Fault] = field(default_factory=dict)
    """Why the latest try of an open row failed."""
    standing: dict[str, RowVerdict] = field(default_factory=dict)
    """Verdicts that count when no further try comes."""
    tries: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)

    def judgement(self, seconds: float, unfinished: Fault) -> Judgement:
        """Every row ends here: with its verdict, the one that stands, its fault, or else `unfinished`."""
        verdicts, faults = {}, {}
        for row in self.ids:
            if verdict := self.verdicts.get(row) or self.standing.get(row):
                verdicts[row] = verdict
            elif row in self.faults:
                faults[row] = self.faults[row]
            else:
                last = f"; last try: {self.last[row]}" if row in self.last else ""
                faults[row] = replace(unfinished, detail=unfinished.detail + last)
        return Judgement(verdicts, faults, self.usage, seconds, dict(self.tries))


@dataclass(frozen=True, slots=True)
class Desk:
    """What all rollouts of an engine share."""

    settings: JudgeSettings
    judge: Judge
    calls: Calls
    backoff: Backoff
    journal: Journal


@dataclass(frozen=True, slots=True)
class Reuse:
    """Where the verdicts of a rollout are kept: the journal's scope, and its key of every row."""

    scope: str
    keys: Mapping[str, str]


class Rollout:
    """Asks for the rows of one case and puts on the sheet what comes of it. `deadline` is in loop time."""

    def __init__(
        self,
        desk: Desk,
        brief: Brief,
        pack: EvidencePack,
        sheet: Sheet,
        reuse: Reuse | None,
        *,
        deadline: float,
        name: str,
    ) -> None:
        self._desk = desk
        self._settings = desk.settings
        self._brief = brief
        self._pack = pack
        self._sheet = sheet
        self._reuse = reuse
        self._seat = Seat(deadline)
        self._name = name
        self._gate = asyncio.Semaphore(desk.settings.concurrency)
        self._stopped: Fault | None = None

    async def run(self) -> None:
        """Until every row is settled. Bounded by the caller's deadline; what is known by then is on the sheet."""
        with self._desk.calls.breaker.rollout(self._seat):
            if self._reuse is None:
                await self._ask(self._sheet.ids)
            else:
                await self._ask_once(self._reuse)

    async def _ask_once(self, reuse: Reuse) -> None:
        """Take what the journal knows, ask for what nobody asks, and wait for the rest."""
        journal, scope, keys = self._desk.journal, reuse.scope, reuse.keys
        unsettled = list(self._sheet.ids)
        while unsettled:
            mine = [row for row in unsettled if journal.take(scope, keys[row])]
            theirs = [row for row in unsettled if row not in mine]
            try:
                known = await journal.read(scope, [keys[row] for row in mine])
                self._sheet.verdicts.update({row: known[keys[row]] for row in mine if keys[row] in known})
                await self._ask([row for row in mine if keys[row] not in known])
            finally:
                journal.release(scope, [keys[row] for row in mine])
            unsettled = []
            for row in theirs:
                if verdict := await journal.wait(scope, keys[row]):
                    self._sheet.verdicts[row] = verdict
                else:
                    unsettled.append(row)

    async def _ask(self, ids: Sequence[str]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number, block in enumerate(plan(ids, self._settings.batch)):
                first_wave = number < self._settings.concurrency
                tasks.create_task(self._judge_block(block, tasks, self._settings.start_jitter if first_wave else 0.0))

    async def _judge_block(self, ids: Sequence[str], tasks: asyncio.TaskGroup, jitter: float) -> None:
        if jitter:
            async with self._gate:
                await asyncio.sleep(random.uniform(0, jitter))
        left = await self._try_rows(ids)
        if len(ids) > 1 and self._settings.resplit:
            for row in left:
                tasks.create_task(self._judge_row(row))
        else:
            await self._give_up(left)

    async def _judge_row(self, row: str) -> None:
        await self._give_up(await self._try_rows([row]))

    async def _try_rows(self, ids: Sequence[str]) -> list[str]:
        """Ask until all rows are settled or asking again is useless (then none are left), or until tries or budget are
        used up: the rows that are left then."""
        pending = list(ids)
        tries = Tries(self._settings, self._desk.backoff, self._seat.deadline)
        while True:
            answer = await self._call(pending, tries.timeout)
            if isinstance(answer, Reply):
                pending = await self._accept(answer, pending)
                if not pending:
                    return []
            else:
                self._sheet.last.update(dict.fromkeys(pending, answer.fault))
                if answer.fault.kind in FINAL_FAULTS:
                    # What the rollout has not asked yet would fail the same way.
                    self._stopped = answer.fault
                    break
            if not await tries.again(answer):
                if tries.out_of_time:
                    break
                return pending
        await self._give_up(pending, self._stopped)
        return []

    async def _call(self, ids: Sequence[str], timeout: float) -> Reply | CallFault:
        def spend(usage: Usage) -> None:
            self._sheet.usage += usage
            self._sheet.tries.update(ids)

        async with self._gate:
            if self._stopped is not None:
                return CallFault(self._stopped)
            prompt, judge = self._brief.prompt(ids), self._desk.judge
            return await self._desk.calls.make(
                lambda: judge.ask(prompt, timeout=timeout),
                self._seat,
                Question(self._name, prompt.ids, judge.model, judge.identity, judge.identity, prompt.tokens),
                spend=spend,
            )

    async def _accept(self, reply: Reply, ids: Sequence[str]) -> list[str]:
        """Put what the reply settles on the sheet: the rows to ask again."""
        rows = [self._brief.spec[row] for row in ids]
        if len(reply.text) > LARGE_TEXT:
            reading = await asyncio.to_thread(read_reply, reply, rows, self._pack)
        else:
            reading = read_reply(reply, rows, self._pack)
        self._sheet.faults.update(reading.failed)
        self._sheet.last.update({row: doubt.fault for row, doubt in reading.doubts.items()})
        self._sheet.standing.update({row: d.stands for row, d in reading.doubts.items() if d.stands is not None})
        await self._settle(reading.accepted)
        return list(reading.doubts)

    async def _settle(self, verdicts: Mapping[str, RowVerdict]) -> None:
        tried = {row: replace(verdict, tries=self._sheet.tries[row]) for row, verdict in verdicts.items()}
        self._sheet.verdicts.update(tried)
        if self._reuse is not None and tried:
            accepted = {self._reuse.keys[row]: verdict for row, verdict in tried.items()}
            await self._desk.journal.accept(self._reuse.scope, accepted)

    async def _give_up(self, ids: Sequence[str], fault: Fault | None = None) -> None:
        """No further try for these rows: what stands counts, the rest keeps `fault`, or why its last try failed."""
        standing = {row: self._sheet.standing[row] for row in ids if row in self._sheet.standing}
        await self._settle(standing)
        for row in ids:
            if row not in standing:
                self._sheet.faults[row] = fault or self._sheet.last[row]
