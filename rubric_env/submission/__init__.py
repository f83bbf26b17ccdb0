"""What a policy delivered: its files, and its last words (SPEC 6)."""

from rubric_env.submission._files import MAX_DEPTH, POLICY_ERRORS, Walked, label, open_regular, walk
from rubric_env.submission._read import OUTPUT, DeliveredFile, Submission, SubmissionUnreadable, read_submission
from rubric_env.submission._reply import conversation_text, message_text, reply_text

__all__ = [
    "MAX_DEPTH",
    "OUTPUT",
    "POLICY_ERRORS",
    "DeliveredFile",
    "Submission",
    "SubmissionUnreadable",
    "Walked",
    "conversation_text",
    "label",
    "message_text",
    "open_regular",
    "read_submission",
    "reply_text",
    "walk",
]
