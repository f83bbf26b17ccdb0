"""The one place that imports verifiers.v1, so that a missing or unfitting release is one clear line."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

NEEDS = "HarborJudge needs verifiers>=0.3.1,<0.5: pip install 'rubric-env[verifiers-v1]'"

try:
    import verifiers.v1 as vf
except ImportError as error:
    raise ImportError(f"{NEEDS} ({error})") from None
try:
    # Earlier releases have another v1: judges could not be plugged, and tasks were built otherwise.
    _ = vf.Judge, vf.JudgeConfig, vf.SingleAgentEnv, vf.Episode
except AttributeError as error:
    try:
        found = version("verifiers")
    except PackageNotFoundError:
        found = "unknown"
    raise ImportError(f"{NEEDS} (found {found}: {error})") from None

__all__ = ["vf"]
