"""What the tools take, as JSON that small models manage: flat objects, and null where a key is not wanted.

Descriptions speak to the policy: they become the schema that it sees.
"""

# The schema is made from these annotations by a function in another module, which cannot resolve names in text.

from typing import Annotated, Literal

from pydantic import AllowInfNan, BaseModel, ConfigDict, Field

Number = Annotated[float, AllowInfNan(False)]

Value = str | int | Number | bool | None
"""Of a cell."""

Action = Literal["replace", "insert_before", "insert_after", "delete"]

_FIND = "with replace: exact words to look for, in `at` or, without it, everywhere; only they are changed"


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DocxEdit(_Arguments):
    """One change of a Word document."""

    action: Action
    at: str | None = Field(
        None, description="address as read_file shows it: ¶12, table 1/row 3, table 1, header 1, footer 1"
    )
    find: str | None = Field(None, description=_FIND)
    text: str | None = Field(
        None, description="the new words, in Markdown; of a table row its cells, as `a | b | c`; null with delete"
    )


class Format(_Arguments):
    """How a range of cells looks."""

    range: str = Field(description="A1, B2:D9, or whole columns as B:D")
    number_format: str | None = Field(None, description="as in Excel: #,##0.00, 0.0%, yyyy-mm-dd, $#,##0")
    bold: bool | None = None
    italic: bool | None = None
    color: str | None = Field(None, description="of the letters, as RRGGBB")
    fill: str | None = Field(None, description="of the cells, as RRGGBB")
    align: Literal["left", "center", "right"] | None = None
    wrap: bool | None = None
    border: bool | None = Field(None, description="thin lines around each cell")
    width: float | None = Field(None, description="of the columns, in characters; found by itself when null")
    merge: bool | None = None


class Chart(_Arguments):
    """A chart of cells."""

    kind: Literal["column", "bar", "line", "area", "pie", "scatter"]
    at: str = Field(description="cell of its top left corner")
    labels: str = Field(description="range of the categories without their heading: A2:A9; x values of a scatter chart")
    values: list[str] = Field(description="one range a series, its heading first: B1:B9")
    title: str | None = None
    x_title: str | None = None
    y_title: str | None = None
    stacked: bool | None = None


class Sheet(_Arguments):
    """One sheet of a workbook."""

    name: str = Field(description="at most 31 characters, none of []:*?/\\")
    rows: list[list[Value]] = Field(
        description="from A1 on. Numbers as JSON numbers, formulas as text that begins with =, dates as text like "
        "2025-03-31 or 2025-03-31 09:30; any other text stays text, and so does all after a leading '"
    )
    header_rows: int | None = Field(None, description="rows at the top shown as a heading and kept in sight; 1 if null")
    formats: list[Format] | None = None
    charts: list[Chart] | None = None


class XlsxEdit(_Arguments):
    """One change of a workbook."""

    action: Action
    at: str | None = Field(
        None, description="Sheet1!B7, Sheet1!A2:D9, rows as Sheet1!5:7, columns as Sheet1!C:D, a whole sheet as Sheet1"
    )
    find: str | None = Field(None, description=_FIND)
    text: str | None = Field(None, description="with find: the new words; with replace of a whole sheet: its new name")
    values: list[list[Value]] | None = Field(
        None,
        description="rows of cells as in make_xlsx: with replace written from `at` on, with insert_* the new rows",
    )
    format: Format | None = Field(None, description="how cells look; its range is on the sheet of `at`")
    chart: Chart | None = Field(None, description="a new chart on the sheet of `at`")
    sheet: Sheet | None = Field(None, description="with insert_* at a whole sheet: a new sheet beside it")


class Series(_Arguments):
    """The values of one name in a chart."""

    name: str
    values: list[Number | None]


class SlideChart(_Arguments):
    """A chart on a slide."""

    kind: Literal["column", "bar", "line", "area", "pie"]
    categories: list[str]
    series: list[Series]
    title: str | None = None
    number_format: str | None = Field(None, description="as in Excel: #,##0, 0%")
    stacked: bool | None = None


class Column(_Arguments):
    """One of two or three columns."""

    heading: str | None = None
    bullets: list[str]


class Picture(_Arguments):
    """A picture file of the workspace."""

    path: str
    alt: str = Field(description="what it shows, in words")


class Slide(_Arguments):
    """One slide. With nothing but title and subtitle it is the cover, or later in the deck the start of a section."""

    title: str
    subtitle: str | None = None
    bullets: list[str] | None = Field(
        None, description="one line each; two spaces at the start make it a point below the one before; **bold** works"
    )
    columns: list[Column] | None = Field(None, description="two or three, side by side, instead of bullets")
    table: list[list[Value]] | None = Field(None, description="rows of cells, the heading first")
    chart: SlideChart | None = None
    picture: Picture | None = None
    notes: str | None = Field(None, description="what the speaker says")


class PptxEdit(_Arguments):
    """One change of a deck."""

    action: Action
    at: str | None = Field(
        None,
        description="address as read_file shows it: slide 3, slide 3/title, slide 3/shape 7, slide 3/shape 7/row 2, "
        "slide 3/notes",
    )
    find: str | None = Field(None, description=_FIND)
    text: str | None = Field(
        None, description="the new words, one paragraph a line; of a table row its cells, as `a | b | c`"
    )
    chart: SlideChart | None = Field(None, description="with replace at a chart: its new data; its kind stays")
    slide: Slide | None = Field(None, description="with replace or insert_* at a slide: the new slide")
