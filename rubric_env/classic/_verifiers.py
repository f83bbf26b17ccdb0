"""The one place that imports verifiers, so that a missing or unfitting release is one clear line."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

NEEDS = "HarborRubric needs verifiers>=0.1.14,<0.4: pip install 'rubric-env[classic]'"

try:
    import verifiers as vf
except ImportError as error:
    raise ImportError(f"{NEEDS} ({error})") from None
try:
    # 0.4 still imports; only the classic classes are gone.
    _ = vf.Rubric, vf.RubricGroup, vf.StatefulToolEnv
except AttributeError:
    try:
        found = version("verifiers")
    except PackageNotFoundError:
        found = "unknown"
    raise ImportError(f"{NEEDS} (found {found}, which no longer has vf.Rubric)") from None

__all__ = ["vf"]
