"""What a reader of verdicts gets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """One certain answer. `hit` is None when the answer carries only a `level`, or is an explicit null (`abstained`).

    `level` is the number as the judge wrote it: neither snapped nor bounded.
    `spelled` is the key (lower case) and the word that carried the verdict, "hit:true"; a bare verdict under its id
    has an empty key (":true"), a level alone reads "level:0.75".
    `boolean` is true for a JSON boolean and for the exact word true or false in an XML or table field.
    `recovered_by` is the level that found it: "whole", "fence", "scan" or "rows", with "+repair" where json_repair
    had to read the row.
    """

    id: str
    hit: bool | None
    level: float | None = None
    reason: str = ""
    evidence: str = ""
    spelled: str = ""
    boolean: bool = False
    recovered_by: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """Every id that was asked for is in exactly one of `verdicts` and `unjudged`.

    `unjudged` says why: "missing" (not answered), "conflict" (answers differ, or one contradicts itself),
    "unreadable" (answered, but not with a known word, or in broken text), "null" (an explicit null), "truncated"
    (the reply is cut or over 256 kB), "quoted" (answered only in what reads as a quotation or a format example).
    `abstained` repeats the ids whose why is "null", with the reason the judge gave.
    `warnings` are lines for people.
    """

    verdicts: dict[str, Verdict]
    unjudged: dict[str, str]
    abstained: dict[str, Verdict]
    warnings: tuple[str, ...] = ()
