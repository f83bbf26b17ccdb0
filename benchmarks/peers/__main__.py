"""Runs one contender in this interpreter: `python -m peers NAME JOBS`; the jobs and a line of figures each as JSON."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from peers.job import Job

QUIET = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "CONFIDENT_OPEN_BROWSER": "0",
    "LITELLM_TELEMETRY": "False",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOG": "ERROR",
    "DO_NOT_TRACK": "1",
    "LOGFIRE_SEND_TO_LOGFIRE": "false",
    "OTEL_SDK_DISABLED": "true",
    "HF_HUB_OFFLINE": "1",
    "NO_PROXY": "127.0.0.1",
    "OPENAI_API_KEY": "key",
}
"""No telemetry, nothing fetched: the only network is loopback."""


def peak_mb() -> float:
    """Of this program alone: `ru_maxrss` would count the one that started it."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    assert found is not None
    return int(found[1]) / 1024


def main() -> None:
    name, jobs = sys.argv[1], [Job(**job) for job in json.loads(sys.argv[2])]
    for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        os.environ.pop(proxy, None)
        os.environ.pop(proxy.lower(), None)
    os.environ.update(QUIET)
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what the libraries print is no answer
        for job in jobs:
            print(json.dumps(figures(name, job)), file=answers, flush=True)
    # Some libraries leave threads behind that would wait for their servers.
    os._exit(0)


def figures(name: str, job: Job) -> dict[str, Any]:
    """Seconds of wall time and CPU are those of the judging alone, the memory is that of the whole process."""
    os.environ.update(OPENAI_BASE_URL=job.base_url, OPENAI_API_BASE=job.base_url)
    began = time.perf_counter()
    run = importlib.import_module(f"peers.{name}").setup(job)
    wall, cpu = time.perf_counter(), time.process_time()
    setup_s = wall - began
    results = asyncio.run(run())
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    found = [asdict(result) for result in results]
    return {"setup_s": setup_s, "wall_s": wall, "cpu_s": cpu, "peak_mb": peak_mb(), "results": found}


if __name__ == "__main__":
    main()
