"""Files inside office files: a workbook on a slide is read as one that was delivered beside it would be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from rubric_env.evidence._extract import Limits, Unit, Unreadable
from rubric_env.evidence._reading import Reading

FILES = 20
"""Embedded files of one file that are read."""

BYTES = 16 * 2**20
"""Of one embedded file."""

TOKENS = 20_000
"""Kept of one embedded text."""

_INNER, _COUNT = "_inside", "_embedded"
"""Facts that stay in the worker: what is read stands inside another file; how many files inside it were read."""


def read_embedded(data: bytes, name: str, address: str, reading: Reading) -> Iterator[Unit]:
    """The passages of an embedded file, each as `address!label`, when its kind has a reader and a cap allows it.

    Files inside embedded files are left to their lists.
    """
    from rubric_env.evidence.kinds import NotRead, identify

    if reading.facts.get(_INNER):
        return
    reading.facts[_COUNT] = reading.facts.get(_COUNT, 0) + 1
    if reading.facts[_COUNT] > FILES:
        reading.skipped(f"{address} is not read: only {FILES} embedded files are")
        return
    suffix = PurePosixPath(name).suffix.lower()
    with TemporaryDirectory() as made:
        path = Path(made) / f"file{suffix if suffix.isascii() and suffix[1:].isalnum() else ''}"
        path.write_bytes(data)
        inside = Reading(path, Path(made), facts={_INNER: True})
        try:
            kind, _ = identify(path, path.suffix)
            if kind.name == "zip":
                raise NotRead("archive")
            found = (
                kind.units(inside) if kind.units else iter(kind.read(path, Limits(TOKENS)).units if kind.read else ())
            )
            for unit in found:
                yield unit._replace(label=f"{address}!{unit.label}")
        except NotRead as error:
            reading.note(f"{address} is an embedded file ({error.kind}), {error}")
        except Unreadable as error:
            reading.note(f"{address} cannot be read: {error}")
        except Exception as error:
            # Broken files raise anything; what they stand in stays.
            reading.lost(f"the rest of {address}", error)
        reading.take_over(inside, address)
