"""Truthful answers of every shape a judge writes, with reasons that hurt, and what happens to them on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hypothesis import strategies as st

IDS = ("alpha", "bravo", "kilo", "tango")
"""No id becomes another one by losing, gaining or changing a character."""

Truth = Mapping[str, bool]

PLAIN_REASONS = (
    "",
    "total on sheet 2",
    "缺少数据来源",
    "a\nb\n- c",
    "client's sign",
    "x & y",
    "见“表：一，二”",
    "see [1, 2], {x}",
)

truths = st.dictionaries(st.sampled_from(IDS), st.booleans(), min_size=1).map(lambda t: dict(sorted(t.items())))


@st.composite
def hostile_reasons(draw: st.DrawFn) -> str:
    """A reason that quotes an answer, or breaks the notation it stands in."""
    name, word = draw(st.sampled_from(IDS)), draw(st.sampled_from(["true", "false"]))
    return draw(
        st.sampled_from(
            [
                'the 1/2" wrench, sold as "pro", is wrong',
                '报告提到"小微企业"的定义',
                f'he wrote "fine","hit":{word}, and left',
                f'the file says {{"id":"{name}","hit":{word}}}',
                f'it holds [{{"id":"{name}","hit":{word}}}] hm',
                f"cell {{'id':'{name}','hit':{word.title()}}}",
                f'has <verdict id="{name}"><hit>{word}</hit></verdict> in it',
                f"says <hit>{word}</hit>",
                f"| {name} | {word} |",
                f'"{name}":{word},',
                f'ends with "ok","hit":{word}',
                f'ends "ok","hit":{word}}}',
                f'```\n{{"id":"{name}","hit":{word}}}\n```',
                f"hit: {word}",
                f'"hit": {word}',
                word,
                "stray } after",
                "stray { before",
                "range [1, 2, ] kept",
                'has ```json {"a":1} ``` block',
                "<think>plan</think>",
                "</think>",
                "<think>",
                "</reason>",
                "C:\\Users\\out\\x",
                "\\alpha",
                "// no",
                "/* no",
                '"',
                '""',
                "\\",
                '\\"',
                "'",
                '"}',
                '"}]}',
                '"],',
                "...",
                "level: 1",
                "> q",
                "：，",
                "\u2028\u200b",
            ]
        )
    )


@st.composite
def answers(draw: st.DrawFn, truth: Truth, reasons: st.SearchStrategy[str], *, whole: bool = False) -> str:
    """One answer that says `truth`. `whole`: only shapes whose beginning cannot pass for a finished answer."""
    order = draw(
        st.sampled_from(
            [
                ("id", "reason", "evidence", "hit"),
                ("id", "hit", "reason"),
                ("reason", "id", "hit"),
                ("id", "reason", "hit"),
            ]
        )
    )
    style = draw(st.sampled_from(["json", "json", "stray quotes", "raw line breaks", "raw backslashes"]))
    rows = [(name, hit, draw(reasons), draw(reasons)) for name, hit in truth.items()]
    objects = [_object(row, order, style) for row in rows]
    shapes = ["wrapped", "array", "pretty", "python", "keyed", "bare", "xml", "table"]
    shape = draw(st.sampled_from(shapes if whole else [*shapes, "lines", "open table"]))
    if shape == "wrapped":
        return '{"verdicts":[' + draw(st.sampled_from([",", ",\n", "\n"])).join(objects) + "]}"
    if shape == "array":
        return "[" + ",".join(objects) + "]"
    if shape == "lines":
        return "\n".join(objects)
    if shape in {"pretty", "python"}:
        answer = {"verdicts": [{"id": name, "reason": reason, "hit": hit} for name, hit, reason, _ in rows]}
        return repr(answer) if shape == "python" else json.dumps(answer, indent=2, ensure_ascii=draw(st.booleans()))
    if shape == "keyed":
        return json.dumps({name: {"reason": reason, "hit": hit} for name, hit, reason, _ in rows}, ensure_ascii=False)
    if shape == "bare":
        return json.dumps({name: hit for name, hit, _, _ in rows})
    if shape == "xml":
        return "<verdicts>" + "\n".join(_element(name, hit, reason) for name, hit, reason, _ in rows) + "</verdicts>"
    return _table([(name, reason, hit) for name, hit, reason, _ in rows], outer=shape == "table")


def _object(row: tuple[str, bool, str, str], order: tuple[str, ...], style: str) -> str:
    name, hit, reason, evidence = row
    if style == "stray quotes":  # without its escapes such a text is a row of its own: nobody could tell
        reason, evidence = reason.replace('"},{', '",{'), evidence.replace('"},{', '",{')
    values = {"id": json.dumps(name), "hit": str(hit).lower()}
    values |= {"reason": _string(reason, style), "evidence": _string(evidence, style)}
    return "{" + ",".join(f'"{key}":{values[key]}' for key in order) + "}"


def _string(text: str, style: str) -> str:
    body = json.dumps(text, ensure_ascii=False)[1:-1]
    if style == "stray quotes":
        body = body.replace('\\"', '"')
    elif style == "raw line breaks":
        body = body.replace("\\n", "\n")
    elif style == "raw backslashes":
        body = body.replace("\\\\", "\\")
    return f'"{body}"'


def _element(name: str, hit: bool, reason: str) -> str:
    escaped = reason.replace("&", "&amp;").replace("<", "&lt;")
    return f'<verdict id="{name}"><reason>{escaped}</reason><hit>{str(hit).lower()}</hit></verdict>'


def _table(rows: list[tuple[str, str, bool]], *, outer: bool) -> str:
    lines = [("id", "reason", "hit"), ("---", "---", "---")]
    lines += [(name, " ".join(reason.split()).replace("|", "\\|"), str(hit).lower()) for name, reason, hit in rows]
    joined = [" | ".join(line) for line in lines]
    return "\n".join(f"| {line} |" for line in joined) if outer else "\n".join(joined)
