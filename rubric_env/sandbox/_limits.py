"""What a sandbox may use. Whatever is over is stopped or refused, and said."""

from __future__ import annotations

import math
from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True)
class Limits:
    """Each holds for one run in one sandbox."""

    seconds: float = 60.0
    """Wall time of the program, from its start."""
    cpu_seconds: int = 60
    """Processor time of one process."""
    memory: int = 1536 * MIB
    """Bytes of all processes and files of the sandbox together, looked at 20 times a second."""
    address_space: int = 2048 * MIB
    """Bytes that one process can map; what holds between two looks at `memory`."""
    processes: int = 64
    """Processes and threads at a time."""
    open_files: int = 256
    """Open files of one process."""
    file_size: int = 64 * MIB
    """Bytes of one file that the program writes."""
    disk: int = 256 * MIB
    """Bytes of the folder that it works in, those of the files put there before included."""
    scratch: int = 128 * MIB
    """Bytes of /tmp, and as many of /dev/shm."""
    files: int = 1000
    """Files that go in, and that come back; and as many folders."""
    output: int = 16_000
    """Characters of stdout that are kept, and of stderr: the first and the last ones."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be a positive number, not {value!r}")
