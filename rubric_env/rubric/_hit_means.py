"""The sentence that keeps a judge from reading a row the wrong way round.

Hurdle rows are nearly all worded negatively ("final deliverable missing"), and a judge that takes their hit for a
success zeroes good work. A row of negative weight usually describes the unwanted thing itself ("Recommends aspirin");
a hurdle is sometimes worded as what the work should be ("A single .docx file"). So the two sentences differ in the
case they spell out in brackets, and both say what a faultless submission gets.
"""

from __future__ import annotations

import re

_ENGLISH = {
    "positive": (
        "hit=true means that the submission does what this row asks for, or that what this row states is true of it; "
        "otherwise hit=false."
    ),
    "graded": (
        "This row is graded: level is the one of level_choices whose text in levels describes the submission best, and "
        "hit=true exactly when that level is above 0."
    ),
    "negative": (
        "This row names something that counts against the submission: hit=true means that it is really there (for a "
        "row worded as a rule, with “must” or “must not”, that the rule is broken); requirement satisfied, or no such "
        "violation found, means hit=false, so a faultless submission gets hit=false."
    ),
    "hurdle": (
        "This row is a knock-out for a violation: hit=true means that the violation has really occurred (for a row "
        "worded as something that the submission should do or be, that it does not do it or is not so); requirement "
        "satisfied, or no such violation found, means hit=false, so a submission that is in order gets hit=false."
    ),
}

_CHINESE = {
    "positive": "hit=true 表示提交物做到了本条的要求，或本条的陈述对提交物成立；否则 hit=false。",
    "graded": (
        "本条为分级项：level 取 level_choices 中的一个值，即 levels 里最符合提交物的那一档；"
        "该档大于 0 时 hit=true，等于 0 时 hit=false。"
    ),
    "negative": (
        "本条描述的是对提交物不利的情形：hit=true 表示提交物中确实存在该情形"
        "（若本条写成“必须”“不得”一类的规定，则指该规定被违反）；"
        "要求已满足，或没有发现此类违规，一律 hit=false，没有问题的提交物应判 hit=false。"
    ),
    "hurdle": (
        "本条是一票否决的违规项：hit=true 表示该违规确实发生"
        "（若本条写成提交物应当做到的要求，则指该要求没有做到）；"
        "要求已满足，或没有发现此类违规，一律 hit=false，没有问题的提交物应判 hit=false。"
    ),
}

_IDEOGRAPH = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_LATIN_WORD = re.compile(r"[A-Za-z]+")


def hit_means(description: str, *, hurdle: bool, negative: bool, graded: bool) -> str:
    """One sentence, in Chinese where the description is mainly Chinese."""
    sentences = _CHINESE if mainly_chinese(description) else _ENGLISH
    return sentences["hurdle" if hurdle else "negative" if negative else "graded" if graded else "positive"]


def mainly_chinese(text: str) -> bool:
    """A Chinese word has about two characters, so names in Latin letters do not make a Chinese sentence English."""
    if _KANA.search(text):
        return False
    characters = len(_IDEOGRAPH.findall(text))
    return characters > 0 and characters >= 2 * len(_LATIN_WORD.findall(text))
