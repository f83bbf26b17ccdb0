"""Programs that a policy wrote, run where they reach nothing: see docs/sandbox.md."""

from rubric_env.sandbox._files import Change
from rubric_env.sandbox._job import Finished, SandboxFailure
from rubric_env.sandbox._limits import Limits
from rubric_env.sandbox._sandbox import Sandbox, SandboxUnavailable, find_sandbox

__all__ = ["Change", "Finished", "Limits", "Sandbox", "SandboxFailure", "SandboxUnavailable", "find_sandbox"]
