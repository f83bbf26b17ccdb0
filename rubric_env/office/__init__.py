"""Word, Excel and PowerPoint files made and edited from plain arguments, in worker processes with limits."""

from rubric_env.office._arguments import DocxEdit, PptxEdit, Sheet, Slide, XlsxEdit
from rubric_env.office._run import Made, OfficeError, perform

__all__ = [
    "DocxEdit",
    "Made",
    "OfficeError",
    "PptxEdit",
    "Sheet",
    "Slide",
    "XlsxEdit",
    "perform",
]
