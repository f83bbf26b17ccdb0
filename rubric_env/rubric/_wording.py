"""What the wording of a row gives away. Patterns are anchored and narrow: a linter that cries wolf is switched off.

On some 4,000 public positive rows in English and Chinese none of them fires where it should not.
"""

from __future__ import annotations

import re

_SUBJECT = r"""\s*
    (?:(?:the|this|an?|its?)\s+)?
    (?:(?:final|model|ai|agent|submitted|delivered)(?:'s)?\s+)?
    (?:(?:response|answer|reply|report|submission|output|model|agent|assistant|document|file|deliverable|deck|memo|it)\s+)?
"""
_SUBJECT_ZH = r"""\s*
    (?:最终)?(?:模型|智能体)?的?
    (?:报告|回答|回复|答案|输出|交付物|交付|文档|文件|提交物|提交|产物|内容){0,2}
    [中里]?
"""

_VIOLATION = re.compile(
    rf"""{_SUBJECT} (?:(?:either|also|simply)\s+)? (?:
        (?:fail|neglect)(?:s|ed)?\s+to\b | failure\s+to\b | forg[eo]t(?:s|ten)?\s+to\b
        | omits?\s+(?:the|any|all)\b | lacks\s+\w | missing\s+(?:or|the|any|a)\b
        | (?:is|are)\s+(?:missing|empty|corrupt(?:ed)?|unreadable|incorrect|wrong|incomplete|inaccurate)\b
        | can(?:not|'t)\s+be\s+(?:opened|read|parsed)\b
        | (?:fabricates?|hallucinates?|misstates?|misrepresents?|misquotes?|mislabels?|miscalculates?)\b
        | (?:incorrectly|wrongly|falsely|erroneously)\s+\w
        | (?:contains?|includes?|has|have|makes?|uses?)\s+ (?:(?!no\b|zero\b|few\b|all\b)\w+\s+){{0,2}}?
          (?:errors|mistakes|hallucinations|hallucinated|fabrications|fabricated|contradictions)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_VIOLATION_ZH = re.compile(
    rf"""{_SUBJECT_ZH} (?:
        (?:未|没有?)(?:能|按|提供|说明|给出|包含|列出|提及|完成|交付|遵守|注明|回答|体现|覆盖|计算|解释|标注|提交|生成)
        | 缺少 | 缺乏 | 缺失(?!值|数据|率|样本|项|情况) | 漏掉 | 遗漏(?!变量|检查|项检)
        | 为空(?:$|[，。；、或]) | (?:无法|不能)(?:打开|读取)
        | (?:编造|捏造|虚构|伪造)(?:了|数据|引用|来源|事实|出处)
        | (?:存在|出现)[^，。；]{{0,8}}(?:错误|矛盾|编造|虚构|捏造|遗漏|造假)(?:$|[，。；、或的])
        | 错误地 | 误将
    )""",
    re.VERBOSE,
)
_ACHIEVEMENT = re.compile(
    rf"""{_SUBJECT} (?:
        (?:must|should|shall)\b
        | (?:only\s+)?
          (?:provid|recommend|stat|introduc|identif|list|giv|deliver|explain|present|cit|answer|cover|meet|satisf|complet)
          (?:e?s|ies|e|y)?\b
    )
    | {_SUBJECT_ZH} (?:必须|应当|应该|应(?!付|收|急|用|计))""",
    re.IGNORECASE | re.VERBOSE,
)
_BLAME = re.compile(
    r"""\b (?: not? | never | none | without | empty | errors?
        | (?: un | in(?:correct|accurate|complete|valid) | mis | wrong | fail | violat | fabricat | invent | hallucinat
            | harm | danger | illegal | toxic | false | fake | plagiari | leak | ignor | lack | omit | corrupt
            | contradict )\w*
    ) \b
    | [不未没无缺错误违空漏] | 编造 | 捏造 | 虚构 | 伪造 | 抄袭 | 损坏 | 泄露 | 危险 | 有害 | 矛盾""",
    re.IGNORECASE | re.VERBOSE,
)
_CONDUCT = re.compile(
    r"""\btool[- ]calls?\b | \b(?:call|invoke)(?:s|ed|d)?\s+(?:the\s+)?[\w`-]+\s+tool\b
    | \b(?:searche[sd]|browse[sd])\s+(?:the\s+)?(?:web|internet|online)\b
    | \bperform(?:s|ed)\s+(?:\w+\s+){0,2}(?:web|internet|online)\s+search(?:es)?\b
    | \b(?:execution|agent)\s+(?:trace|trajectory)\b
    | \basks?\s+(?:the\s+user\s+)?(?:an?\s+|for\s+)?clarif\w+
    | 工具调用 | 调用[^，。；]{0,8}工具 | 联网搜索 | 执行轨迹 | 操作轨迹
    | 向用户(?:澄清|追问) | (?:完成|执行)任务的?(?:耗时|用时)""",
    re.IGNORECASE | re.VERBOSE,
)


def describes_violation(text: str) -> bool:
    """Whether a row is worded as a violation ("Fails to cite", "未说明来源"), not as a ban that one can keep."""
    return bool(_VIOLATION.match(text) or _VIOLATION_ZH.match(text))


def describes_achievement(text: str) -> bool:
    """Whether a row is worded as a success ("Provides a meal plan") and holds no word of blame at all."""
    return bool(_ACHIEVEMENT.match(text)) and not _BLAME.search(text)


def describes_conduct(text: str) -> bool:
    """Whether a row is about how the work was done, which delivered files do not show."""
    return bool(_CONDUCT.search(text))
