"""SPEC 7: faults and the exit codes they mean."""

from itertools import pairwise

import pytest

from rubric_env.scoring import FaultKind, prevailing
from rubric_env.scoring.faults import ENDPOINT_FAULTS, EXIT_CODES, SUBMISSION_FAULTS

TABLE = {
    "judge:timeout": "timeout deadline",
    "judge:no_credential": "no_credential",
    "judge:api_error": "rate_limit quota auth unknown_model connection server empty bad_request context_length "
    "content_filter refusal breaker_open",
    "judge:parse_error": "truncated unparseable missing_row cannot_assess",
    "judge:scorer_error": "scorer_error",
    "judge:crash": "cancelled internal",
}
ROWS = [(kind, code) for code, kinds in TABLE.items() for kind in kinds.split()]


@pytest.mark.parametrize(("kind", "code"), ROWS)
def test_section_7_exit_code_of_each_fault(kind, code):
    assert EXIT_CODES[FaultKind(kind)] == code


def test_section_7_the_table_is_complete_and_its_order_breaks_ties():
    assert [kind for kind, _ in ROWS] == list(FaultKind)
    assert EXIT_CODES.keys() == set(FaultKind)


def test_section_7_the_kind_with_most_rows_prevails():
    assert prevailing([FaultKind.TIMEOUT, FaultKind.INTERNAL, FaultKind.INTERNAL]) is FaultKind.INTERNAL
    assert prevailing([]) is None


def test_section_7_ties_go_to_the_kind_that_stands_first():
    kinds = list(FaultKind)
    for first, second in pairwise(kinds):
        assert prevailing([second, first]) is first
        assert prevailing([second, first, second]) is second


def test_section_7_what_a_submission_may_cause_is_never_the_endpoints_fault():
    assert not ENDPOINT_FAULTS & SUBMISSION_FAULTS
    assert {"refusal", "content_filter", "context_length"} == SUBMISSION_FAULTS
    assert {"timeout", "connection", "server", "auth", "empty"} == ENDPOINT_FAULTS
