"""`verdict_parsers` imports nothing but the standard library, and json_repair when a row has to be mended (SPEC 5)."""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import sys
before = set(sys.modules)
import verdict_parsers
verdict_parsers.parse_verdicts('{"verdicts":[{"id":"R1","hit":true},]}', ["R1"])
new = {name.partition(".")[0] for name in set(sys.modules) - before}
foreign = new - set(sys.stdlib_module_names) - {"verdict_parsers"}
assert not foreign, foreign
verdict_parsers.parse_verdicts('[{"id":"R1","hit":true,"reason":"a "b" c"}]', ["R1"])
assert "json_repair" in sys.modules
"""


def test_section_5_nothing_but_the_standard_library_and_json_repair_on_demand() -> None:
    subprocess.run([sys.executable, "-c", PROBE], check=True)
