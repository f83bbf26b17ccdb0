"""The scripts that run in Redis, and the keys that they work on."""

from __future__ import annotations

import hashlib
from importlib.resources import files

FORMAT = 1
"""Of what the keys hold: processes of another one share nothing with these."""
EXPIRE = 900
"""Seconds after its last use until Redis forgets a key."""


def script(name: str) -> str:
    return (files(__package__) / f"{name}.lua").read_text("utf-8")


def keys(kind: str, name: str, *parts: str) -> list[str]:
    """Keys that stand on one node of a cluster. `name` is only hashed: it may say more than a Redis should know."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:24]
    return [f"rubric-env:{FORMAT}:{kind}:{{{digest}}}:{part}" for part in parts]
