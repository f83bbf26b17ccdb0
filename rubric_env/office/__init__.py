"""Word, Excel and PowerPoint files made and edited from plain arguments, in worker processes with limits."""

from rubric_env.office._arguments import Chart, DocxEdit, Format, PptxEdit, Sheet, Slide, XlsxEdit
from rubric_env.office._run import OfficeError, Task, missing_library, perform

__all__ = [
    "Chart",
    "DocxEdit",
    "Format",
    "OfficeError",
    "PptxEdit",
    "Sheet",
    "Slide",
    "Task",
    "XlsxEdit",
    "missing_library",
    "perform",
]
