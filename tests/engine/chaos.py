"""Storms: every block of every rollout meets a sequence of faults that its ids, its rollout and a seed decide."""

from __future__ import annotations

import asyncio
import gc
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rubric_env.engine import Backoff, Case, JudgeEngine
from rubric_env.judges import make_judge, resolve_credentials
from rubric_env.rubric import RubricSpec
from rubric_env.scoring import Outcome, score
from rubric_env.settings import JudgeSettings
from rubric_env.submission import Submission
from tests.servers.endpoint import Call, Endpoint
from tests.servers.scenarios import SCENARIOS, Scenario, error

KEY = "Zq7_the_key_that_no_output_may_show"
BATCH = 4
LEVELS = {"0": "没有", "0.5": "部分", "0.8": "大部分", "1": "全部"}
RUBRIC = RubricSpec.parse(
    [
        {"id": "R01", "description": "states the profit of 2024", "weight": 3},
        {"id": "第2条：增长率", "description": "给出同比增长率（保留一位小数）", "weight": 2},
        {"id": "graded", "description": "explains “why”", "weight": 2, "type": "gradient", "levels": LEVELS},
        {"id": "虚构", "description": "编造了数据", "weight": -2},
        {"id": "H1", "description": "no file could be opened", "weight": 0, "hurdle": True},
        {"id": "neg-2", "description": "quotes no source", "weight": -1},
        {"id": "等级", "description": "图表完整", "weight": 1, "type": "gradient", "levels": LEVELS},
        {"id": "g3", "description": "depth", "weight": 1, "type": "gradient", "levels": {"0": "none", "1": "all"}},
        {"id": "R09", "description": 'names {braces}, [brackets] and "quotes"', "weight": 1},
        {"id": "R10", "description": "ends with a conclusion", "weight": 1, "depends_on": "R01"},
    ]
)
BLOCK_OF = {row: number // BATCH for number, row in enumerate(RUBRIC.ids)}
BLOCKS = 1 + max(BLOCK_OF.values())
NO_POSITIVE_ROW = 1
"""The block in which a word of quality is never a verdict."""

_RUN = re.compile(r"RUN-(\d+)\.")


def _limit(name: str, status: int, message: str, **fields: Any) -> Scenario:
    return error(name, status, message, headers={"retry-after": "0.02"}, **fields)


TELLS_THE_KEY = [
    error("tells the key", 500, f"internal error while Authorization: Bearer {KEY} was checked"),
    error("tells the key in a 429", 429, f"Rate limit reached for key {KEY}. Try again in 10ms."),
    Scenario("says the key", content=f"Your key {KEY} has no access to this model."),
    Scenario("says the key in a row", content=f'{{"verdicts": [{{"id": "R01", "hit": "{KEY}"}}]}}'),
    Scenario(
        "redirects with the key", status=302, headers={"location": f"https://login.example.com/?key={KEY}"}, body=b""
    ),
    Scenario("refuses with the key", message={"content": None, "refusal": f"I do not serve {KEY}."}),
    Scenario("shows the key as a page", headers={"content-type": "text/html"}, body=f"<html>{KEY}".encode()),
]
"""Errors and answers that repeat the caller's credential, as proxies do."""
OWN = [
    *TELLS_THE_KEY,
    _limit("429 named", 429, "Rate limit reached for requests", code="rate_limit_exceeded"),
    _limit("429 crowded", 429, "Too many concurrent requests: concurrency limit reached"),
    _limit("429 中文", 429, "请求过于频繁，请稍后再试"),
    _limit("limit in a 503", 503, "Rate limit exceeded, please slow down"),
    _limit("limit in a 200", 200, "Rate limit reached. Please try again in 20ms."),
    error("window", 429, "Quota exceeded for requests per minute. Try again in 20ms."),
    error("busy", 503, "The model is overloaded"),
    error("系统繁忙", 500, "系统繁忙，请稍后重试"),
    Scenario("nothing", body=b""),
    Scenario("array", body=b"[1, 2, 3]"),
    Scenario("deep", body=b"[" * 100_000),
    Scenario("gb18030", encoding="gb18030"),
]
_NAMES = """429_bare 429_in_words error_in_content 500 502_html html redirect drop reset half too_short garbage not_json
    no_choices empty null_content thought_only refusal content_filter blocked prose missing_row wrong_ids contradiction
    no_level wrong_scale null_hits length fenced"""
QUICK = [*OWN, *(SCENARIOS[name] for name in _NAMES.split())]
"""Transient faults that cost no time, and ways of writing that are none."""
KEY_REFUSED = [SCENARIOS["401"], SCENARIOS["403"]]
SLOW = [SCENARIOS[name] for name in ("hang", "trickle", "too_long")]
"""Faults that last until the call's own time is over."""
_STREAM_NAMES = """429_in_stream 429_midway 500_midway crlf cr cut_anywhere no_done no_finish no_end unstreamed"""
IN_STREAM = [SCENARIOS[name] for name in _STREAM_NAMES.split()]
SLOW_STREAM = [SCENARIOS[name] for name in ("stall", "stall_at_once", "endless_thinking", "keep_alive")]
"""The same of answers that are taken as a stream."""
HARMLESS = {"fenced", "gb18030", "crlf", "cr", "cut_anywhere", "no_done", "no_finish", "unstreamed"}
FOR_EVER = [SCENARIOS[name] for name in ("content_filter", "blocked", "refusal", "context_length")]
"""What a submission may cause each time that it is shown."""


@dataclass
class Weather:
    """What an endpoint does to calls: its truth for every row of every rollout, and faults on the way to it."""

    seed: int
    calm: float = 0.4
    """Share of the blocks that meet no fault; the others meet one to five in a row."""
    slow: float = 0.04
    """Share of the faults that last as long as a call may."""
    streamed: bool = False
    """With the faults that streams have."""
    poisoned: Mapping[int, Scenario] = field(default_factory=dict)
    """Rollouts whose submissions always end that way."""
    faults: int = 0
    """Scripted faults that a call ran into."""
    blocks: set[tuple[int, int]] = field(default_factory=set)
    resplit: int = 0
    """Calls for single rows of blocks that had used up their time."""

    def __post_init__(self) -> None:
        self._left: dict[tuple[int, int], list[Scenario]] = {}
        self._timed_out: Counter[tuple[int, int]] = Counter()
        self._chosen: dict[int, Scenario] = {}
        self._quick = [*QUICK, *IN_STREAM] if self.streamed else QUICK
        self._slow = [*SLOW, *SLOW_STREAM] if self.streamed else SLOW

    def over(self, endpoint: Endpoint) -> Weather:
        endpoint.truth = lambda call: self.truth(run_of(call))
        for scenario in [*self._quick, *self._slow, *KEY_REFUSED, *FOR_EVER, SCENARIOS["quality_words"]]:
            endpoint.rule(lambda call, s=scenario: self._choose(call) is s, scenario)  # type: ignore[misc]
        return self

    def truth(self, run: int) -> dict[str, bool | float]:
        """Half of the rows are hit, few hurdles are; graded rows have any of their levels."""
        rng = random.Random(f"{self.seed} truth {run}")
        truth: dict[str, bool | float] = {}
        for row in RUBRIC:
            hit = rng.random() < (0.1 if row.hurdle else 0.5)
            truth[row.id] = rng.choice(row.level_choices) if row.graded else hit
        return truth

    def _choose(self, call: Call) -> Scenario | None:
        if call.number not in self._chosen:
            self._chosen[call.number] = self._next(call)
        return self._chosen[call.number]

    def _next(self, call: Call) -> Scenario:
        run, block = run_of(call), BLOCK_OF[call.ids[0]]
        if run in self.poisoned:
            return self.poisoned[run]
        key = run, block
        self.blocks.add(key)
        if self._timed_out[key] >= 2 and len(call.ids) == 1:
            self.resplit += 1
        left = self._left.setdefault(key, self._sequence(run, block))
        if not left:
            return SCENARIOS["ok"]
        scenario = left.pop(0)
        self.faults += scenario.name not in HARMLESS
        self._timed_out[key] += scenario in self._slow
        return scenario

    def _sequence(self, run: int, block: int) -> list[Scenario]:
        """At most five faults; of these one refused key, and not so many slow ones that a row could use up its time."""
        rng = random.Random(f"{self.seed} faults {run} {block}")
        if rng.random() < self.calm:
            return []
        quick = [*self._quick, SCENARIOS["quality_words"]] if block == NO_POSITIVE_ROW else self._quick
        faults = [rng.choice(self._slow if rng.random() < self.slow else quick) for _ in range(rng.randint(1, 5))]
        if rng.random() < 0.2:
            faults[rng.randrange(len(faults))] = rng.choice(KEY_REFUSED)
        while sum(fault in self._slow for fault in faults) > 3:
            faults.remove(next(fault for fault in faults if fault in self._slow))
        return faults


def run_of(call: Call) -> int:
    found = _RUN.search(call.text)
    assert found is not None
    return int(found[1])


def case(run: int, **fields: Any) -> Case:
    reply = f"# 报告 RUN-{run}.\n\nThe profit rose by 12,5 % in 2024. 利润增长了。\n\n{'A paragraph. ' * (run % 5)}"
    return Case(RUBRIC, Submission(reply=reply), **{"task": "写一份报告", "instruction": "Be strict. 从严。", **fields})


def storm_engine(endpoint: Endpoint, **settings: Any) -> JudgeEngine:
    """Calls are few at a time and back-off is short, so that hundreds of rollouts take seconds."""
    usual = {
        "model": "scripted",
        "batch": BATCH,
        "per_timeout": 1.0,
        "max_in_flight": 16,
        "max_consecutive_failures": 0,
    }
    chosen = JudgeSettings(**{**usual, **settings})
    credentials = resolve_credentials(KEY, endpoint.base_url, environ={})
    return JudgeEngine(chosen, make_judge(chosen, credentials), backoff=Backoff(chosen.retry_backoff_max, 0.002))


async def judge_all(
    engine: JudgeEngine, cases: Sequence[Case], *, cancel: Mapping[int, float] = {}
) -> list[Outcome | None]:
    """All at once; `cancel`: after so many seconds the rollout at that place. None for one that was cancelled."""
    tasks = [asyncio.create_task(engine.judge(case)) for case in cases]
    for number, seconds in cancel.items():
        asyncio.get_running_loop().call_later(seconds, tasks[number].cancel)
    done = await asyncio.gather(*tasks, return_exceptions=True)
    await engine.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}, "the engine left tasks behind"
    cancelled = [n for n, outcome in enumerate(done) if isinstance(outcome, asyncio.CancelledError)]
    assert set(cancelled) <= cancel.keys()
    return [None if n in cancelled else _outcome(outcome) for n, outcome in enumerate(done)]


def _outcome(done: Outcome | BaseException) -> Outcome:
    if isinstance(done, BaseException):
        raise done
    return done


def is_right(outcome: Outcome, truth: Mapping[str, bool | float]) -> None:
    """Coverage 1.0, and every verdict and the reward as the endpoint holds them to be true."""
    assert outcome.judgement is not None
    assert not outcome.judgement.faults
    assert (outcome.scored, outcome.fields["judge_coverage"], outcome.exit_reason) == (True, 1.0, "")
    found = {row: v.hit if v.level is None else v.level for row, v in outcome.judgement.verdicts.items()}
    assert found == truth
    verdicts = {row: {"hit": value > 0, "level": float(value)} for row, value in truth.items()}
    assert outcome.reward == score(RUBRIC, verdicts).score


@contextmanager
def nothing_leaks(endpoint: Endpoint) -> Iterator[None]:
    """Sockets, threads, child processes and file descriptors are as many afterwards as they were."""
    gc.collect()
    before = _held()
    yield
    endpoint.settle()
    gc.collect()
    assert not _held() - before


def _held() -> Counter[str]:
    """What earlier tests left may end meanwhile, so that there may be fewer."""
    own = Path("/proc/self")
    threads = [f"thread {thread.name}" for thread in threading.enumerate()]
    children = [f"child {pid}" for path in own.glob("task/*/children") for pid in path.read_text().split()]
    descriptors = len(list((own / "fd").iterdir())) if own.exists() else 0
    return Counter([*threads, *children, *["descriptor"] * descriptors])
