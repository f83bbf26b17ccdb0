"""Source code, markup and settings as they were written, by lines."""

from __future__ import annotations

from pathlib import Path

from rubric_env.evidence._decode import load
from rubric_env.evidence._extract import Extract, Kind, Limits
from rubric_env.evidence.kinds.text import lines

_SUFFIXES = """
    .py .pyi .js .mjs .cjs .jsx .ts .tsx .vue .java .kt .scala .c .h .cc .cpp .hpp .cs .rs .go .rb .php .pl .lua
    .swift .r .m .jl .sh .bash .zsh .ps1 .bat .sql .css .scss .less .xml .xsd .xsl .svg .rss .atom .yaml .yml
    .toml .ini .cfg .conf .env .properties .tex .bib .rst .adoc .org .srt .vtt .ics .vcf .diff .patch .dockerfile
    .makefile .gradle .tf .proto .graphql
"""


def read(path: Path, limits: Limits) -> Extract:
    """The lines that are not blank. XML is not parsed: what a policy wrote is what a judge reads."""
    loaded = load(path, limits)
    return Extract.of(lines(loaded.text), limits, notes=loaded.notes, cut=loaded.cut)


KINDS = (Kind("code", tuple(_SUFFIXES.split()), read),)
