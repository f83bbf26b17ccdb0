"""What runs with no key and no network: a rule in place of a judge, recordings in place of a policy. Not for scores."""

from rubric_env.local._agreement import SAMPLES_NOTE, Agreement, agreement, compared
from rubric_env.local._http import LocalError
from rubric_env.local.judge_server import ENGINES, LocalJudgeServer, local_judge, serve_local_judge
from rubric_env.local.lexical import WIRING_NOTICE, LexicalVerdict, judge_row
from rubric_env.local.llama_server import LlamaServer, LlamaUnavailable
from rubric_env.local.policy_server import ReplayPolicyServer

__all__ = [
    "ENGINES",
    "SAMPLES_NOTE",
    "WIRING_NOTICE",
    "Agreement",
    "LexicalVerdict",
    "LlamaServer",
    "LlamaUnavailable",
    "LocalError",
    "LocalJudgeServer",
    "ReplayPolicyServer",
    "agreement",
    "compared",
    "judge_row",
    "local_judge",
    "serve_local_judge",
]
