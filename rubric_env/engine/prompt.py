"""The question to the judge: what all blocks of a rollout share comes first, rows and answer format last."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rubric_env.engine import schema
from rubric_env.evidence import EvidencePack, estimate_tokens
from rubric_env.judges.protocol import Picture, Prompt
from rubric_env.rubric import RubricSpec, judge_row

_PROMPTS = Path(__file__).with_name("prompts")
_SECRET = secrets.token_bytes(32)
_numbers = itertools.count()


@cache
def _text(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text("utf-8").strip()


@cache
def prompt_version() -> str:
    """Changes with every wording and every line of code that a judge's input depends on: part of the journal's key."""
    sources = [*sorted(_PROMPTS.glob("*.md")), Path(__file__), Path(schema.__file__)]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def default_instruction() -> str:
    """What a judge is told where an instance brings no instruction of its own."""
    return _text("instruction")


def fence_marker(secret: bytes, digest: str) -> str:
    """One per rollout, so that its blocks share their prefix; nobody without the secret of the run can guess it."""
    return hmac.digest(secret, digest.encode(), "sha256").hex()[:32]


@dataclass(frozen=True, slots=True)
class Brief:
    """One rollout's part of the prompt, and its rows as the judge sees them."""

    spec: RubricSpec
    system: str
    shared: str
    rows: Mapping[str, str]
    nullable: bool
    tokens: int
    """Estimate of what all questions of the rollout share."""
    pictures: tuple[Picture, ...]

    @classmethod
    def of(
        cls, spec: RubricSpec, pack: EvidencePack, marker: str, *, instruction: str, task: str, reference: str
    ) -> Brief:
        sections = [f"# Instruction\n{instruction}"]
        if task:
            sections.append(f"# Task\n{_fenced(marker, 'task_prompt.md', task)}")
        if reference:
            sections.append(f"# Reference answer\n{_fenced(marker, 'reference/expected_output', reference)}")
        sections.append(f"# Evidence\n{pack.text(marker)}")
        system, shared = _text("system").replace("{marker}", marker), "\n".join(sections)
        return cls(
            spec=spec,
            system=system,
            shared=shared,
            rows={row.id: json.dumps(judge_row(row), ensure_ascii=False) for row in spec},
            nullable=pack.ours,
            # Without the marker, which differs from run to run: the same rollout is cut to the same evidence.
            tokens=pack.tokens + sum(map(estimate_tokens, (_text("system"), instruction, task, reference))),
            pictures=tuple(Picture(sight.address, sight.path) for sight in pack.sights),
        )

    def prompt(self, ids: Sequence[str]) -> Prompt:
        """The question for these rows. The marker of a plain answer holds a nonce of its own."""
        rows = [self.spec[row_id] for row_id in ids]
        marker = f"=== VERDICTS {_nonce()} ==="
        graded = any(row.graded for row in rows)
        level = ', "level": <one of level_choices, on graded rows only>' if graded else ""
        rules = [_text("contract_rules").replace("{ids}", json.dumps(list(ids), ensure_ascii=False))]
        if graded:
            rules.append(_text("contract_level"))
        if self.nullable:
            rules.append(_text("contract_null"))
        plain = _text("contract_plain").replace("{marker}", marker)
        asked = "# Rows\n```json\n[" + ",\n".join(self.rows[row_id] for row_id in ids) + "]\n```"
        contract_json = _contract(_text("contract_json"), level, rules)
        return Prompt(
            ids=tuple(ids),
            system=self.system,
            shared=self.shared,
            rows=asked,
            contract_json=contract_json,
            contract_plain=_contract(plain, level, rules),
            marker=marker,
            schema=schema.strict_schema(rows, self.nullable),
            loose_schema=schema.loose_schema(rows, self.nullable),
            tokens=self.tokens + estimate_tokens(asked) + estimate_tokens(contract_json),
            pictures=self.pictures,
        )


def _nonce() -> str:
    """As unguessable as random bytes, without asking the system: that would let go of the interpreter lock, for which
    the event loop then waits behind every thread that works on evidence."""
    return hashlib.blake2b(next(_numbers).to_bytes(8), key=_SECRET, digest_size=8).hexdigest()


def _fenced(marker: str, label: str, text: str) -> str:
    return f"<<<DATA {marker} {label}\n{text}\nDATA {marker}>>>"


def _contract(form: str, level: str, rules: Sequence[str]) -> str:
    return "\n".join(["# Answer", form.replace("{level}", level), "", *rules])
