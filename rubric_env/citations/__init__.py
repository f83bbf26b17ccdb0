"""The documents that a research task rests on, and whether a report's citations and quotes are in them.

Without verifiers and without a model: the classic environment, verifiers.v1 and a Harbor verifier can all use it.
"""

from rubric_env.citations._check import SOURCES_WANTED, CitationReport, Source, check_all, check_citations
from rubric_env.citations._corpus import Corpus, CorpusError, Document, corpus_problems, load_corpus
from rubric_env.citations._delivered import delivered_reports
from rubric_env.citations._marks import Citation
from rubric_env.citations._quotes import Quote
from rubric_env.citations._text import UnreadableText, read_text_of

__all__ = [
    "SOURCES_WANTED",
    "Citation",
    "CitationReport",
    "Corpus",
    "CorpusError",
    "Document",
    "Quote",
    "Source",
    "UnreadableText",
    "check_all",
    "check_citations",
    "corpus_problems",
    "delivered_reports",
    "load_corpus",
    "read_text_of",
]
