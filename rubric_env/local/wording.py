"""What a row's wording asks for: that something is there, that it is not, or that a file was delivered."""

from __future__ import annotations

import re

from rubric_env.local.claims import bag_of, claim_of

_REPORTING = (
    r"\b(?:say|says|said|states?|stated|names?|named|mentions?|gives?|given|explain\w*|point\w*|list\w*|show\w*"
    r"|record\w*)\b"
)
_NEGATION = (
    r"\b(?:(?:does|do|did|is|are|was|were)\s?(?:not|n't)|doesn't|isn't|never|fails? to|omits?|lacks?|avoids?"
    r"|without|no)\b(?! (?:more|less|fewer|longer|later) than)"
)
_ABSENCE = re.compile(
    # A negation after a reporting verb belongs to what is reported ("says that the cause is not known").
    rf"(?:(?!{_REPORTING}).){{0,30}}?(?P<en>{_NEGATION})"
    r"|(?:(?:该|最终|全)?(?:报告|文件|答复|回答|回复|文|表格|输出|交付物|提交物|模型)[中里内]?)?(?:完全|均|也|从)?"
    r"(?P<zh>未(?!来)|没有|缺少|缺乏|遗漏|避免|不(?:包含|含|出现|提及|使用))",
    re.IGNORECASE | re.DOTALL,
)
_BAN = re.compile(
    r"\b(?:must|should|may|shall|can)(?: not|n't)\b|\bcannot\b|不得|不应|不能|不可|禁止|严禁", re.IGNORECASE
)
_RULE = re.compile(r"\b(?:must|should|shall|needs? to)\b|必须|应当|应该|需要", re.IGNORECASE)
_CONCESSION = re.compile(r"(?<=.),?\s*\b(?:al|even )?though\b.*|(?<=.),?(?:尽管|虽然).*", re.IGNORECASE | re.DOTALL)

_DELIVERY = re.compile(
    r"\b(?:exists?|deliver\w*|saved?|created?|submitted|provided|missing|absent|empty)\b"
    r"|交付|提交|存在|缺失|为空|保存|生成",
    re.IGNORECASE,
)
_UNDELIVERED = re.compile(
    r"\b(?:missing|absent|empty)\b|\bno (?:\w+ ){0,2}(?:files?|deliverables?|documents?|output|submission)\b"
    r"|\b(?:not|never|fails? to|without)\b(?: been| be| a| any)* (?:exist|deliver|sav|creat|submi|provid)"
    r"|未|没有|缺失|为空|缺少",
    re.IGNORECASE,
)
_DELIVERY_KEYS = bag_of(
    "exist deliver delivered deliverable save saved create created submit submitted provide provided missing absent"
    " empty final folder directory work product nothing 交付 提交 存在 缺失 为空 保存 生成 最终 交付物 产物 目录 任何"
).keys


def wanted(text: str, violation: bool) -> tuple[str, bool]:
    """(what is to be looked for, whether a hit means that it is absent).

    A `violation` is a row whose hit counts against the answer. Worded as a ban ("must not"), it is hit by the banned
    thing; worded as a rule ("must"), by its absence; what it concedes ("although …") is left out.
    """
    if violation and _BAN.search(text):
        return _BAN.sub(" ", text), False
    if absence := _ABSENCE.match(text):
        start, stop = absence.span("en" if absence["en"] else "zh")
        return text[:start] + text[stop:], True
    if violation and _RULE.search(text):
        return text, True
    return _CONCESSION.sub("", text) if violation else text, False


def about_delivery(text: str) -> bool:
    """Whether a row is about files being there: it speaks of delivery, and of hardly anything else."""
    claim = claim_of(text)
    others = sum(item.weight for item in claim.items if item.key not in _DELIVERY_KEYS)
    return bool(_DELIVERY.search(text)) and others <= 1 and not claim.required


def hit_by_delivery(text: str, violation: bool) -> bool:
    """Whether such a row is hit when the files are there, or when they are not."""
    return not violation and not _UNDELIVERED.search(text)
