"""The documents that a research task rests on: read once a process, found by id or address, searched."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rubric_env.citations._address import normal_url
from rubric_env.citations._index import Hit, SearchIndex
from rubric_env.citations._text import UnreadableText, canonical, read_text_of

INDEX = "index.jsonl"
FIELDS = ("id", "title", "url", "date", "file")
TITLE_CHARS = 200
TITLE_LEAST = 10
"""Letters of a title by which alone a source may be known: shorter ones are words of the language."""

KEPT = 64
"""Corpora that a process holds at a time: rollouts of one instance come together."""

_MARKUP = re.compile(r"^[#\s>*_=-]+|[\s*_#]+$")


class CorpusError(ValueError):
    """A corpus that cannot be used: the fault of whoever made the instance, never of a policy. Names all problems."""


@dataclass(frozen=True)
class Document:
    """One document. `id` is what a report cites; `url` and `date` are "" where nobody said."""

    id: str
    title: str
    url: str
    date: str
    text: str

    @cached_property
    def canonical(self) -> str:
        """Title and text in the form in which quotes are looked for."""
        return f"{canonical(self.title)}\n{canonical(self.text)}"


class Corpus:
    """The documents of one folder. Safe in several threads."""

    def __init__(self, documents: Sequence[Document], names: Mapping[str, Document]) -> None:
        self._documents = documents
        self._names = names
        self._urls = {normal_url(document.url): document for document in reversed(documents) if document.url}
        self._titles = [(canonical(document.title), document) for document in documents]
        self._index = SearchIndex([(document.title, document.text) for document in documents])
        self.shapes = frozenset(id_shape(document.id) for document in documents)
        """What the ids look like, digits aside."""

    @classmethod
    def read(cls, folder: Path) -> Corpus:
        """Raises CorpusError for what is wrong with the folder, OSError where the machine fails."""
        documents: list[Document] = []
        names: dict[str, Document] = {}
        problems: list[str] = []
        for entry in _entries(folder, problems):
            name = entry["file"]
            try:
                text = read_text_of((folder / name).resolve())
            except UnreadableText as error:
                problems.append(str(error))
                continue
            title = entry["title"] or _title(text) or entry["id"]
            document = Document(entry["id"], title, entry["url"], entry["date"], text)
            documents.append(document)
            for alias in (document.id, name, name.rpartition(".")[0]):
                names.setdefault(alias.casefold(), document)
        if not documents and not problems:
            problems.append("no document in it")
        if problems:
            raise CorpusError(f"{folder}: {'; '.join(problems)}")
        return cls(documents, names)

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents)

    def find(self, key: str) -> Document | None:
        """The document with that id, file name or address."""
        return self._names.get(key.strip().casefold()) or self.at(key)

    def at(self, url: str) -> Document | None:
        """The document with that address, however it is spelled."""
        return self._urls.get(normal_url(url))

    def titled(self, words: str) -> Document | None:
        """The one document whose title is part of `words`; None when several are, or none."""
        spelled = canonical(words)
        found = [document for title, document in self._titles if len(title) >= TITLE_LEAST and title in spelled]
        return found[0] if len(found) == 1 else None

    def search(self, query: str, limit: int = 5) -> list[tuple[Document, Hit]]:
        """The documents that fit best, best first. Any text is a query, and none is an error."""
        return [(self._documents[hit.number], hit) for hit in self._index.search(query, limit)]


def id_shape(name: str) -> str:
    """What ids of one kind share: `KS-03` and `ks-12` are `ks-#`."""
    return re.sub(r"\d+", "#", name.casefold())


_shelf: OrderedDict[Path, Future[Corpus]] = OrderedDict()
_lock = threading.Lock()


def load_corpus(folder: Path) -> Corpus:
    """The corpus of a folder, read once a process however many ask at once. Raises CorpusError, OSError.

    Blocks while it is read: call it in a thread.
    """
    key = folder.resolve()
    with _lock:
        known = _shelf.get(key)
        pending = known or _shelf.setdefault(key, Future())
        _shelf.move_to_end(key)
        while len(_shelf) > KEPT:
            _shelf.popitem(last=False)
    if known is None:
        try:
            pending.set_result(Corpus.read(key))
        except BaseException as error:
            with _lock:
                _shelf.pop(key, None)
            # Whoever waits hears of it; the next one tries again, since a machine may recover.
            pending.set_exception(error)
    return pending.result()


def corpus_problems(folder: Path) -> list[str]:
    """What can be said against a corpus without opening its documents. Raises OSError."""
    problems: list[str] = []
    if not list(_entries(folder, problems)) and not problems:
        problems.append("no document in it")
    return [f"{folder}: {problem}" for problem in problems]


def _entries(folder: Path, problems: list[str]) -> list[dict[str, str]]:
    """One mapping of `FIELDS` a document, from the index or from the files there are."""
    if not folder.is_dir():
        raise CorpusError(f"{folder}: no such folder")
    if not (folder / INDEX).is_file():
        names = sorted(
            p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()
        )
        shown = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
        return [{"id": name, "title": "", "url": "", "date": "", "file": name} for name in shown]
    entries: dict[str, dict[str, str]] = {}
    for number, line in enumerate((folder / INDEX).read_text("utf-8-sig", "replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = _entry(json.loads(line), folder)
            if entry["id"].casefold() in entries:
                raise ValueError(f"the id {entry['id']!r} is there twice")
        except ValueError as error:
            problems.append(f"{INDEX} line {number}: {error}")
        else:
            entries[entry["id"].casefold()] = entry
    return list(entries.values())


def _entry(value: Any, folder: Path) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError("no JSON object")
    if unknown := value.keys() - set(FIELDS):
        raise ValueError(f"unknown {', '.join(sorted(map(repr, unknown)))}; known are {', '.join(FIELDS)}")
    entry: dict[str, str] = {}
    for name in FIELDS:
        text = value.get(name)
        if not isinstance(text, str | None):
            raise ValueError(f"{name} {text!r} is no text")
        entry[name] = (text or "").strip()
    if not entry["id"] or not entry["file"]:
        raise ValueError("id and file are needed")
    file = (folder / entry["file"]).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise ValueError(f"{entry['file']} lies outside the corpus")
    if not file.is_file():
        raise ValueError(f"no file {entry['file']}")
    return entry


def _title(text: str) -> str:
    first = next((line for line in text.splitlines() if _MARKUP.sub("", line)), "")
    return _MARKUP.sub("", first)[:TITLE_CHARS]
