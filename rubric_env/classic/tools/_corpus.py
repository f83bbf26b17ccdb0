"""Tools that search and open the documents which ship with a research task."""

from __future__ import annotations

from rubric_env._threads import waiting
from rubric_env.citations import Corpus, load_corpus
from rubric_env.classic.tools._workspace import ToolRefusal, Workspace

PAGE = 20_000
"""Characters of a document in one answer."""

MOST_RESULTS = 20


async def search_corpus(workspace: Workspace, query: str, limit: int = 5) -> str:
    """Search the documents of the task. Gives the best ones with id, title, address, date and the passage that fits.

    Args:
        query: words to look for, in the language of the documents; fewer and rarer words find more exactly
        limit: how many documents to give, from 1 to 20
    """
    return await waiting.run(_search, workspace, query, limit)


async def open_document(workspace: Workspace, id: str, offset: int = 0) -> str:
    """Read a document of the task. Long ones come in pages.

    Args:
        id: id or address of the document, as search_corpus gives it
        offset: character to begin at; the end of a page says where the next one begins
    """
    return await waiting.run(_open, workspace, id, offset)


def _search(workspace: Workspace, query: str, limit: int) -> str:
    corpus = _corpus(workspace)
    if not isinstance(query, str) or not query.strip():
        raise ToolRefusal("query: some words to look for are needed")
    if not _is_number(limit) or not 1 <= limit <= MOST_RESULTS:
        raise ToolRefusal(f"limit: a number from 1 to {MOST_RESULTS} is needed")
    found = corpus.search(query, limit)
    if not found:
        return f"no document has any of these words; there are {len(corpus)} documents: try other or fewer words"
    results = []
    for number, (document, hit) in enumerate(found, 1):
        facts = " · ".join(filter(None, (document.url, document.date)))
        lines = (f"{number}. [{document.id}] {document.title}", facts, hit.snippet)
        results.append("\n   ".join(filter(None, lines)))
    return "\n".join(results) + "\nopen_document(id) gives the whole text."


def _open(workspace: Workspace, name: str, offset: int) -> str:
    document = _corpus(workspace).find(name) if isinstance(name, str) else None
    if document is None:
        raise ToolRefusal(f"{name}: no such document; search_corpus gives the ids and addresses that there are")
    if not _is_number(offset) or not 0 <= offset <= len(document.text):
        raise ToolRefusal(
            f"offset: a number from 0 to {len(document.text)}, the characters of {document.id}, is needed"
        )
    page, end = document.text[offset : offset + PAGE], offset + PAGE
    facts = (("id", document.id), ("title", document.title), ("url", document.url), ("date", document.date))
    head = "\n".join(f"{name}: {value}" for name, value in facts if value)
    left = len(document.text) - end
    more = f"\n\n({left} more characters: open_document with offset={end})" if left > 0 else ""
    return f"{head}\n\n{page}{more}"


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _corpus(workspace: Workspace) -> Corpus:
    if workspace.corpus is None:
        raise ToolRefusal("this task comes without documents to search")
    # A corpus that cannot be read raises: that is not the policy's doing.
    return load_corpus(workspace.corpus)
