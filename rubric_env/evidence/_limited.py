"""Run a program that reads what a policy delivered: `python -m rubric_env.evidence._limited SECONDS PROGRAM …`."""

from __future__ import annotations

import os
import resource
import sys

WRITTEN = 512 * 2**20
"""Bytes of one file that the program writes."""

MEMORY = 6 * 2**30
"""Bytes of address space; LibreOffice maps far more than it uses (measured: 330 MB resident)."""


def main() -> None:
    cpu = int(sys.argv[1])
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, WRITTEN),
        (resource.RLIMIT_AS, MEMORY),
    ):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
