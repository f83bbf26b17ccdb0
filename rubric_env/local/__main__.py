"""`python -m rubric_env.local DIR`: the lexical judge's agreement with labelled answers."""

import sys

from rubric_env.local._agreement import main

raise SystemExit(main(sys.argv[1:]))
