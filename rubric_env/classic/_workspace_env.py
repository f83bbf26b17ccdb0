"""The environment in which a policy works with tools on a workspace of its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, get_type_hints

from rubric_env._threads import aside
from rubric_env.classic._errors import forgive_policy, is_overlong
from rubric_env.classic._tool_calls import (
    CALLS,
    Call,
    Signature,
    is_large,
    read_calls,
    replayable,
    whole_characters,
)
from rubric_env.classic._verifiers import vf
from rubric_env.classic.tools import OUTPUT, Tool, ToolRefusal, Workspace, count_files
from rubric_env.evidence import clean
from rubric_env.harbor.case import read_info

RESULT = 25_000
"""Characters of a tool's result that the policy is told; the tools themselves stop earlier."""

_READ = "_tool_calls_read"
"""Where the state holds the calls of the policy's last message between their reading and the next prompt."""


class WorkspaceEnv(vf.StatefulToolEnv):
    """One workspace a rollout; what ends up in its output directory is the submission.

    What a policy does wrong is told to it and never errs its rollout, since an erred rollout is not judged. What the
    machine suffers, an unexpected exception of a tool included, is a vf.InfraError.

    `keep_workspaces` names a folder in which the workspaces stay for people to look at; by default each is deleted as
    soon as its rollout is scored. `unscored` holds those that are still to be deleted.
    """

    def __init__(
        self, *, tools: Iterable[Tool], unscored: set[Workspace], keep_workspaces: str | None = None, **kwargs: Any
    ):
        super().__init__(tools=[], **kwargs)
        self._unscored = unscored
        self._keep = Path(keep_workspaces) if keep_workspaces else None
        if self._keep:
            try:
                self._keep.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ValueError(f"keep_workspaces = {keep_workspaces}: cannot be made: {error.strerror}") from None
        self._signatures: dict[str, Signature] = {}
        for tool in tools:
            self.add_tool(tool, args_to_skip=["workspace"])

    def add_tool(self, tool: Tool, args_to_skip: Iterable[str] = ()) -> None:
        super().add_tool(_with_types(tool), args_to_skip=list(args_to_skip))
        self._signatures[tool.__name__] = Signature(tool)

    async def setup_state(self, state: Any) -> Any:
        try:
            workspace = await aside.run(self._make_workspace, read_info(state.get("info")))
        except OSError as error:
            raise vf.InfraError(f"workspace: {error}") from error
        state["workspace"] = workspace
        state["submission_dir"], state["output_dir"] = str(workspace.root), workspace.output
        await super().setup_state(state)
        return state  # verifiers 0.1.14 returns nothing

    def _make_workspace(self, info: Mapping[str, Any]) -> Workspace:
        workspace = Workspace.make(
            Path(str(info["inputs"])) if info.get("inputs") else None,
            str(info.get("output_dir") or OUTPUT),
            corpus=Path(str(info["corpus"])) if info.get("corpus") else None,
            parent=self._keep,
        )
        if not self._keep:
            # Here, in the thread: who waits for it may be cancelled meanwhile.
            self._unscored.add(workspace)
        return workspace

    @vf.stop(priority=101)  # before verifiers' own check, which would leave the error on the rollout
    async def ended_by_policy(self, state: Any) -> bool:
        """A policy that says nothing at all is done: what it delivered before is judged."""
        return forgive_policy(state)

    @vf.cleanup
    async def open_workspace(self, state: Any) -> None:
        """A policy may take away every right to its own workspace, which then could not be judged."""
        if "workspace" in state:
            with suppress(OSError):  # then it cannot be listed either, and the judging says so
                state["workspace"].root.chmod(0o700)

    async def get_model_response(self, state: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            response = await super().get_model_response(state, *args, **kwargs)
        except vf.ModelError as error:
            # verifiers knows only some of the ways in which endpoints say it.
            if is_overlong(error):
                raise vf.OverlongPromptError(str(error.__cause__)) from error
            raise
        # Half a character would end the run where the rollout is sent on or saved.
        message = response.message
        said = {name: whole_characters(message.get(name)) for name in ("content", "reasoning_content", "tool_calls")}
        return response.model_copy(update={"message": message.model_copy(update=said)})

    async def get_prompt_messages(self, state: Any) -> Any:
        """The conversation, in which the policy's last message is made fit to be sent.

        Endpoints refuse a history that holds broken arguments, odd names or an id twice, and the refusal would err the
        rollout: a way out of being judged. The step's own completion, which is what is trained on, stays as it was
        sampled; only the prompts after it hold the repaired message, as the endpoint was really asked.
        """
        messages = await super().get_prompt_messages(state)
        if state["trajectory"]:
            step = state["trajectory"][-1]
            last = len(step["prompt"]) + len(step["completion"]) - 1
            read = state.pop(_READ, None) or await _read_calls(messages[last], messages[:last])
            messages = [*messages[:last], replayable(messages[last], read), *messages[last + 1 :]]
        return messages

    async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
        *before, said = messages
        state[_READ] = calls = await _read_calls(said, before)
        large, results = is_large(said), []
        for call in calls:
            content = await self._result(call, messages, state, large)
            results.append(vf.ToolMessage(tool_call_id=call.id, content=content))
        left = len(said.tool_calls) - len(results)
        if left > 0:
            results[-1].content += f"\n({left:,} more calls were not run: a message may hold {CALLS})"
        return results

    async def _result(self, call: Call, messages: Any, state: Any, large: bool) -> str:
        signature = self._signatures.get(call.asked)
        if signature is None:
            return f"there is no tool {call.name}; there are {', '.join(self._signatures)}"
        if call.problem:
            cut = state["trajectory"][-1]["is_truncated"]
            return f"{call.problem}{'; your message was cut: write less at once' if cut else ''}. {signature}"
        try:
            given = call.arguments
            read = await aside.compute(signature.read, given) if large else signature.read(given)
            arguments = self.update_tool_args(call.name, read, messages, state)
        except ValueError as error:
            return str(error)
        try:
            result = str(await self.tool_map[call.name](**arguments))
        except ToolRefusal as refusal:
            result = str(refusal)
        except Exception as error:
            told = state["workspace"].refusal(error) if isinstance(error, OSError) else ""
            if not told:
                self.logger.exception("the tool %s failed", call.name)
                raise vf.InfraError(f"{call.name}: {type(error).__name__}: {error}") from error
            result = told
        result = clean(result)
        return result if len(result) <= RESULT else f"{result[:RESULT]}\n(cut: {len(result):,} characters)"

    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: Any, state: Any, **kwargs: Any
    ) -> dict[str, Any]:
        return {**tool_args, "workspace": state["workspace"]}


async def _read_calls(said: Any, before: list[Any]) -> list[Call]:
    return await aside.compute(read_calls, said, before) if is_large(said) else read_calls(said, before)


def _with_types(tool: Tool) -> Tool:
    """The tool with its annotations as types: verifiers would look their names up in a module of its own."""

    @functools.wraps(tool)
    async def call(**arguments: Any) -> str:
        return await tool(**arguments)

    hints = get_type_hints(tool, include_extras=True)
    signature = inspect.signature(tool)
    parameters = [p.replace(annotation=hints.get(p.name, p.annotation)) for p in signature.parameters.values()]
    call.__annotations__ = hints
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


class WorkspaceRubric(vf.Rubric):
    """Deletes a rollout's workspace after every rubric has seen it: the environment's own cleanup runs too early.

    At the end it deletes what is left in `unscored`: rollouts that were stopped, or made again after a failure.
    """

    def __init__(self, unscored: set[Workspace]):
        super().__init__()
        self._unscored = unscored
        self.add_metric(self.workspace_files)

    async def workspace_files(self, state: Any) -> float:
        """Files in the output directory when scoring began."""
        workspace = state.get("workspace")
        return float(await aside.run(count_files, workspace.root / workspace.output)) if workspace else 0.0

    @vf.cleanup(priority=-100)
    async def delete_workspace(self, state: Any) -> None:
        workspace = state.get("workspace")
        if workspace in self._unscored:
            self._unscored.discard(workspace)
            await aside.run(workspace.remove)

    @vf.teardown
    async def delete_the_rest(self) -> None:
        # It also runs at interpreter exit, where no thread can be had.
        while self._unscored:
            self._unscored.pop().remove()
