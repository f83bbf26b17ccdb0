"""A process that forks judging processes for test_kill: it imports once, so that a round takes milliseconds.

    python -m tests.engine.kill_host BASE_URL JOURNAL

reads a command a line and answers with a line:

    judge CASES     starts a process that judges these cases (numbers, with commas) at the same time: its pid
    wait PID        its exit code, negative for a signal
    accepted        the rows that all of them said were accepted, and were told so after the journal had said it
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Mapping

from rubric_env.engine import Case, Journal, JudgeEngine
from rubric_env.judges import Judge, make_judge, resolve_credentials
from rubric_env.rubric import RubricSpec
from rubric_env.scoring import RowVerdict
from rubric_env.settings import JudgeSettings
from rubric_env.submission import Submission

ROWS = 8
BATCH = 2


def row_ids(case: int) -> list[str]:
    return [f"C{case:03}R{row}" for row in range(ROWS)]


class _Witness(Journal):
    """Says which rows were accepted, in one write each: what a killed process said is never half a line."""

    def __init__(self, path: str, said: int) -> None:
        super().__init__(path)
        self._said = said

    async def accept(self, scope: str, verdicts: Mapping[str, RowVerdict]) -> None:
        await super().accept(scope, verdicts)
        # The endpoint's reason for a verdict is "checked ROW".
        os.write(self._said, "".join(f"{verdict.reason.split()[1]}\n" for verdict in verdicts.values()).encode())


SETTINGS = JudgeSettings(model="scripted", reuse="run", batch=BATCH, max_consecutive_failures=0, per_timeout=60.0)


async def _judge(judge: Judge, journal: str, cases: list[int], said: int) -> bool:
    engine = JudgeEngine(SETTINGS, judge, journal=_Witness(journal, said))
    outcomes = await asyncio.gather(*(engine.judge(_case(number)) for number in cases))
    await engine.aclose()
    for outcome in outcomes:
        if outcome.reward != 1.0:
            print(outcome.exit_reason, outcome.fields, file=sys.stderr)
    return all(outcome.reward == 1.0 for outcome in outcomes)


def _case(number: int) -> Case:
    rows = [{"id": row, "description": f"states fact {row}", "weight": 1} for row in row_ids(number)]
    return Case(RubricSpec.parse(rows), Submission(reply=f"Report {number}."), task="Report.", instruction="Judge.")


def main(base_url: str, journal: str) -> None:
    said, say = os.pipe()
    os.set_blocking(said, False)
    judge = make_judge(SETTINGS, resolve_credentials("key", base_url, environ={}))
    # What is imported late otherwise, once for all of them.
    asyncio.run(_judge(judge, f"{journal}.warm", [999], say))
    os.read(said, 2**20)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "judge":
            pid = os.fork()
            if pid == 0:
                done = False
                try:
                    done = asyncio.run(_judge(judge, journal, [int(n) for n in arguments[0].split(",")], say))
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(0 if done else 1)
            print(pid, flush=True)
        elif command == "wait":
            print(os.waitstatus_to_exitcode(os.waitpid(int(arguments[0]), 0)[1]), flush=True)
        elif command == "accepted":
            try:
                rows = os.read(said, 2**20).decode().split()
            except BlockingIOError:
                rows = []
            print(*rows, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
