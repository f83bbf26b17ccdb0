"""Instances in Harbor layout: read them, turn them into dataset rows, write their results (SPEC 4, 10)."""

from rubric_env.harbor._dataset import dataset_rows, each_row
from rubric_env.harbor._find import find_instances
from rubric_env.harbor._instance import Instance, InstanceError, lint, read_text
from rubric_env.harbor._results import result_json, write_result

__all__ = [
    "Instance",
    "InstanceError",
    "dataset_rows",
    "each_row",
    "find_instances",
    "lint",
    "read_text",
    "result_json",
    "write_result",
]
