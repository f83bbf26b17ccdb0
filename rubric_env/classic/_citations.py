"""The citation check as a rubric beside the judge's (docs/citations.md)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rubric_env._computing import computing
from rubric_env._threads import waiting
from rubric_env.citations import Corpus, check_all, delivered_reports, load_corpus
from rubric_env.classic._errors import HarborJudgeError
from rubric_env.classic._verifiers import vf
from rubric_env.harbor.case import delivered, read_info
from rubric_env.submission import message_text

FIGURES = (
    "citation_checked",
    "citations_total",
    "citations_resolved",
    "citations_unopened",
    "quotes_total",
    "quotes_found",
    "sources_cited",
)
REPORT = "citation_report"
"""Where the state keeps every citation with its verdict; `vf-eval -C citation_report` saves it."""

_KEY = "_citation_figures"
_RESULT = re.compile(r"^\d+\. \[([^\]\n]+)\] ", re.MULTILINE)


class CitationRubric(vf.Rubric):
    """Whether the citations of a delivered report lead into the instance's corpus, and its quotes are there.

    `citation_check`, from 0 to 1 with the given weight, is `CitationReport.score`; the other figures are metrics.
    Without a corpus, and where the rollout erred before, all are 0.0. A check that fails is never the policy's: the
    rollout is marked as HarborRubric marks one that could not be judged when the check has a weight; as a metric it is
    worth no rollout, and `citation_checked` is 0.
    """

    def __init__(self, weight: float = 0.0):
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
            raise ValueError(f"citation_weight = {weight!r}: a finite number is expected")
        super().__init__()
        self.add_reward_func(self.citation_check, weight)
        for name in FIGURES:
            self.add_metric(_metric(name))

    async def citation_check(self, state: Any, completion: Any, info: Any) -> float:
        """The score; the metrics read what it leaves in the state, since verifiers calls the funcs in order."""
        state[_KEY] = {}
        if state.get("error") is not None:
            return 0.0
        try:
            checked = await waiting.run(_check, state, completion, info)
        except Exception as error:
            self.logger.warning("citations could not be checked: %s", error)
            if self.weights[0] and state.get("error") is None:
                state["error"] = HarborJudgeError(f"citations could not be checked: {error}")
            return 0.0
        if checked is None:
            return 0.0
        score, state[_KEY], state[REPORT] = checked
        return score

    @vf.cleanup
    async def drop_figures(self, state: Any) -> None:
        state.pop(_KEY, None)


def _metric(name: str) -> Callable[[Any], float]:
    def metric(state: Any) -> float:
        return float(state.get(_KEY, {}).get(name, 0.0))

    metric.__name__ = name
    return metric


def _check(state: Any, completion: Any, info: Any) -> tuple[float, Mapping[str, float], dict[str, Any]] | None:
    """Score, figures and report; None without a corpus. Raises where the machine or the instance fails."""
    facts = read_info(info)
    if not facts.get("corpus"):
        return None
    corpus = load_corpus(Path(str(facts["corpus"])))
    reports = delivered_reports(delivered(state, completion, facts))
    with computing():
        report = check_all(reports, corpus)
        seen = set(_seen(completion or (), corpus))
        shown = report.to_json(seen)
    figures = {
        "citation_checked": 1.0,
        "citations_total": float(len(report.citations)),
        "citations_resolved": float(report.resolved),
        "citations_unopened": float(len(shown["unopened"])),
        "quotes_total": float(len(report.checked_quotes)),
        "quotes_found": float(report.found),
        "sources_cited": float(len(report.documents)),
    }
    return report.score, figures, shown


def _seen(messages: Iterable[Any], corpus: Corpus) -> Iterator[str]:
    """Ids of the documents that the policy opened or was shown among search results."""
    if isinstance(messages, str):
        return
    searches = set()
    for message in messages:
        for call in message.get("tool_calls") or ():
            name, identity, arguments = _call(call)
            if name == "search_corpus":
                searches.add(identity)
            elif name == "open_document" and (document := corpus.find(str(arguments.get("id", "")))):
                yield document.id
        if message.get("tool_call_id") in searches:
            yield from _RESULT.findall(message_text(message))


def _call(call: Any) -> tuple[str, str, Mapping[str, Any]]:
    """Name, id and arguments of a tool call in the shape of the chat format or of verifiers."""
    function = call.get("function") or call if isinstance(call, Mapping) else call
    name, text = (
        (function.get("name"), function.get("arguments"))
        if isinstance(function, Mapping)
        else (function.name, function.arguments)
    )
    identity = call.get("id") if isinstance(call, Mapping) else call.id
    try:
        arguments = json.loads(text or "{}")
    except (TypeError, ValueError):
        arguments = {}
    return str(name), str(identity), arguments if isinstance(arguments, Mapping) else {}
