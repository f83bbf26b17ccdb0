"""A worker process whose jobs burn CPU time, as files do that take long: `python -m tests.evidence.burner`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rubric_env.evidence._worker import serve

MODULE = "tests.evidence.burner"


@dataclass(frozen=True, slots=True)
class Burn:
    """Burn `seconds`; each start adds a line to the file `log`."""

    log: str
    name: str
    seconds: float
    cpu_seconds: int = 20


def burn(job: Burn) -> dict[str, Any]:
    with Path(job.log).open("a") as log:
        log.write(f"{job.name}\n")
    end = time.process_time() + job.seconds
    while time.process_time() < end:
        pass
    return {"burnt": job.seconds}


if __name__ == "__main__":
    serve({"Burn": lambda fields: burn(Burn(**fields))})
