"""Office files through markitdown: `python markitdown.py`, a path a line on stdin, a line of JSON each on stdout."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

# This file has the name of what it imports.
sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).parent]


def main() -> None:
    from markitdown import MarkItDown

    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # what the libraries print is no answer
        converter = MarkItDown(enable_plugins=False)
        for line in sys.stdin:
            start = time.perf_counter()
            try:
                text = converter.convert_local(line.rstrip("\n")).text_content
            except Exception as error:
                found = {"failed": type(error).__name__}
            else:
                found = {"text": text, "seconds": time.perf_counter() - start}
            print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
