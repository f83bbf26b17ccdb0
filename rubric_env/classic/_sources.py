"""Its home is the room that both generations of verifiers share."""

from rubric_env.harbor.case import Defaults, SourceError, build_case, read_info

__all__ = ["Defaults", "SourceError", "build_case", "read_info"]
