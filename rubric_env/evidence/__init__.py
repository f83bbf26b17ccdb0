"""What a judge is shown of a submission (SPEC 8)."""

from rubric_env.evidence._decode import clean, decode
from rubric_env.evidence._extract import Extract, Kind, Limits, Unit, Unreadable
from rubric_env.evidence._flags import Flag
from rubric_env.evidence._named import opens_as_named
from rubric_env.evidence._pack import EvidencePack, build_pack
from rubric_env.evidence._passages import NotExtracted, Passages, read_passages
from rubric_env.evidence._reading import Reading
from rubric_env.evidence._sights import Sight
from rubric_env.evidence._store import EvidenceStore
from rubric_env.evidence._tokens import estimate_tokens
from rubric_env.evidence._write import write_pack

__all__ = [
    "EvidencePack",
    "EvidenceStore",
    "Extract",
    "Flag",
    "Kind",
    "Limits",
    "NotExtracted",
    "Passages",
    "Reading",
    "Sight",
    "Unit",
    "Unreadable",
    "build_pack",
    "clean",
    "decode",
    "estimate_tokens",
    "opens_as_named",
    "read_passages",
    "write_pack",
]
