"""The environments under environments/: instances in, a policy with tools, files or a reply out, judged by a rubric."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from datasets import Dataset
from pydantic import ConfigDict, Field, ValidationError, validate_call

from rubric_env.classic._checks import AnswerRubric, FormatRubric
from rubric_env.classic._family import Family
from rubric_env.classic._group import HarborRubricGroup
from rubric_env.classic._rubric import HarborRubric
from rubric_env.classic._verifiers import vf
from rubric_env.classic._workspace_env import WorkspaceEnv, WorkspaceRubric
from rubric_env.classic.tools import Workspace, find_tools
from rubric_env.harbor import InstanceError, each_row, find_instances
from rubric_env.scoring import AdvantageKind

Weight = Annotated[float, Field(allow_inf_nan=False)]
Turns = Annotated[int, Field(ge=1)]

JUDGE_ARGUMENTS = frozenset({"model", "base_url", "api_key_file", "api_key_command", "settings", "config", "log"})


def _checked(build: Callable[..., Any]) -> Callable[..., Any]:
    """Arguments come as JSON from a command line: those that do not fit are one line, before any rollout is paid."""
    validated = validate_call(config=ConfigDict(arbitrary_types_allowed=True))(build)
    positional = list(inspect.signature(build).parameters)

    @functools.wraps(build)
    def call(family: Family, *args: Any, **kwargs: Any) -> Any:
        try:
            return validated(family, *args, **kwargs)
        except ValidationError as error:
            known = _known(family)
            wrong: dict[str, str] = {}
            for item in error.errors():
                at = item["loc"][0]
                name = positional[at] if isinstance(at, int) else at
                # The value of an unknown argument may be a key.
                fits = f"{name} = {item['input']!r}: {item['msg']}" if name in known else _unknown(name, known)
                wrong.setdefault(name, fits)
            raise ValueError("; ".join(wrong.values())) from None

    return call


def _known(family: Family) -> list[str]:
    parameters = inspect.signature(build_environment).parameters.values()
    return [*(p.name for p in parameters if p.name != "family" and p.kind is not p.VAR_KEYWORD), *family.checks]


def _unknown(name: str, known: Sequence[str]) -> str:
    return f"{name} is no argument; known are {', '.join(known)}"


@_checked
def build_environment(
    family: Family,
    instances: str | Path | Sequence[str | Path] | None = None,
    *,
    judge: Mapping[str, Any] | None = None,
    rubric_weight: Weight = 1.0,
    math_weight: Weight = 0.0,
    format_weight: Weight = 0.0,
    advantage: AdvantageKind | None = "mean",
    max_turns: Turns | None = None,
    system_prompt: str | None = None,
    tools: Sequence[str] | None = None,
    sandbox: Literal["auto", "required", "off"] = "auto",
    single_turn: bool = False,
    keep_workspaces: str | None = None,
    strict: bool = False,
    **weights: Weight,
) -> Any:
    """A classic environment over a folder of Harbor instances; docs/environments.md describes the arguments.

    Everything is rebuilt from JSON values, so an env server's workers can make their own; `weights` are those of the
    family's own checks. The folder is listed now; its instances are read when the data set is first asked for. Raises
    ValueError for arguments that are unknown or of the wrong type, InstanceError when a folder holds no instance (or,
    with `strict`, a broken one), SandboxUnavailable when one is required and cannot be had.
    """
    if unknown := weights.keys() - family.checks.keys():
        raise ValueError("; ".join(_unknown(name, _known(family)) for name in sorted(unknown)))
    where = family.instances if instances is None else instances
    rubric = HarborRubric(advantage=advantage, family_settings=family.settings, **_judge_arguments(judge))
    rubric.log_prefix = family.env_id
    rubric.weights[0] = rubric_weight
    own = [check(weights.get(name, 0.0)) for name, check in family.checks.items()]
    checks = [AnswerRubric(math_weight), FormatRubric(format_weight), *own]
    dataset = _dataset(where, strict=strict, single_turn=single_turn)
    common = {"dataset": dataset, "system_prompt": family.system_prompt if system_prompt is None else system_prompt}
    common["env_id"] = family.env_id
    if single_turn:
        return vf.SingleTurnEnv(rubric=HarborRubricGroup([rubric, *checks]), **common)
    unscored: set[Workspace] = set()
    return WorkspaceEnv(
        tools=find_tools(family.tools if tools is None else tools, sandbox),
        rubric=HarborRubricGroup([rubric, *checks, WorkspaceRubric(unscored)]),
        max_turns=max_turns or family.max_turns,
        unscored=unscored,
        keep_workspaces=keep_workspaces,
        **common,
    )


def _judge_arguments(judge: Mapping[str, Any] | None) -> dict[str, Any]:
    judge = dict(judge or {})
    if "api_key" in judge:
        raise ValueError(
            "judge.api_key would be written to metadata.json: set JUDGE_API_KEY, or give judge.api_key_file"
        )
    if unknown := judge.keys() - JUDGE_ARGUMENTS:
        raise ValueError(f"judge: unknown {', '.join(sorted(unknown))}; known are {', '.join(sorted(JUDGE_ARGUMENTS))}")
    if not isinstance(judge.get("settings") or {}, Mapping):
        raise ValueError(f"judge.settings = {judge['settings']!r}: an object of settings is expected")
    return judge


def _dataset(where: str | Path | Sequence[str | Path], *, strict: bool, single_turn: bool) -> Callable[[], Dataset]:
    """What builds the data set. That the folder holds an instance at all is seen now, before a policy is paid."""

    def rows() -> Iterator[dict[str, Any]]:
        return each_row(find_instances(where), strict=strict, single_turn=single_turn)

    def build() -> Dataset:
        try:
            return Dataset.from_list(list(rows()))
        except InstanceError as error:
            raise _of(where, error) from None

    try:
        with warnings.catch_warnings():
            # Whoever asks for the data set will hear them.
            warnings.simplefilter("ignore")
            next(rows())
    except InstanceError as error:
        raise _of(where, error) from None
    return build


def _of(where: object, error: InstanceError) -> InstanceError:
    """The error with the folder, which some name themselves."""
    return InstanceError(
        f"instances = {error}" if str(error).startswith(f"{where}:") else f"instances = {where}: {error}"
    )
