"""Charts of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openpyxl.chart import AreaChart, BarChart, LineChart, PieChart, Reference, ScatterChart, Series
from openpyxl.chart.label import DataLabelList
from openpyxl.chart.marker import DataPoint
from openpyxl.chart.shapes import GraphicalProperties
from openpyxl.drawing.line import LineProperties

from rubric_env.office._problems import Refused
from rubric_env.office._xlsx_cells import area

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

COLORS = ("1F4E79", "2E9E8F", "E07B39", "8A6FB0", "C8A415", "6B7A8F")
"""Of the series."""

_KINDS: dict[str, Any] = {
    "column": BarChart,
    "bar": BarChart,
    "line": LineChart,
    "area": AreaChart,
    "pie": PieChart,
    "scatter": ScatterChart,
}


def add_chart(sheet: Worksheet, wanted: dict[str, Any]) -> None:
    """Put a chart on a sheet. Raises Refused."""
    kind = wanted["kind"]
    chart = _KINDS[kind]()
    left, top, _, _ = area(sheet, wanted["at"])
    labels = _reference(sheet, wanted["labels"])
    if not wanted["values"]:
        raise Refused("chart: `values` names no range")
    for number, text in enumerate(wanted["values"]):
        values = _reference(sheet, text)
        if values.min_row == values.max_row and values.min_col == values.max_col:
            raise Refused(f"chart: {text!r} is one cell; a series is its heading and its values, as B1:B9")
        if kind == "scatter":
            series = Series(values, labels, title_from_data=True)
            series.marker.symbol = "circle"
            series.marker.graphicalProperties.solidFill = COLORS[number % len(COLORS)]
            series.graphicalProperties.line.noFill = True
        else:
            series = Series(values, title_from_data=True)
            if kind == "line":
                series.graphicalProperties.line.solidFill = COLORS[number % len(COLORS)]
                series.smooth = False
            elif kind != "pie":
                series.graphicalProperties.solidFill = COLORS[number % len(COLORS)]
        chart.series.append(series)
    if kind == "pie":
        if len(wanted["values"]) > 1:
            raise Refused("chart: a pie has one series")
        chart.series[0].dPt = [
            DataPoint(idx=place, spPr=GraphicalProperties(solidFill=COLORS[place % len(COLORS)]))
            for place in range(max(labels.max_row - labels.min_row, labels.max_col - labels.min_col) + 1)
        ]
        chart.dataLabels = DataLabelList()
        chart.dataLabels.showPercent = True
        for name in ("showVal", "showCatName", "showSerName", "showLegendKey", "showLeaderLines"):
            setattr(chart.dataLabels, name, False)
    else:
        _axes(chart, wanted)
    if kind != "scatter":
        chart.set_categories(labels)
    if kind in ("column", "bar"):
        chart.type = "col" if kind == "column" else "bar"
        chart.gapWidth = 60
    if wanted["stacked"] and kind in ("column", "bar", "area"):
        chart.grouping = "stacked"
        if kind != "area":
            chart.overlap = 100
    chart.title = wanted["title"]
    chart.width, chart.height = 16, 8.5
    if len(wanted["values"]) == 1 and kind != "pie":
        chart.legend = None
    elif chart.legend is not None:
        chart.legend.position = "b"
    sheet.add_chart(chart, sheet.cell(top, left).coordinate)


def _axes(chart: Any, wanted: dict[str, Any]) -> None:
    chart.x_axis.title, chart.y_axis.title = wanted["x_title"], wanted["y_title"]
    # Without these words newer programs show no axes at all.
    chart.x_axis.delete = chart.y_axis.delete = False
    chart.y_axis.majorGridlines.spPr = GraphicalProperties(ln=LineProperties(solidFill="D9D9D9"))
    if wanted["kind"] == "bar":
        chart.x_axis.scaling.orientation = "maxMin"  # the first category on top, as in the table
        chart.y_axis.crosses = "max"


def _reference(sheet: Worksheet, text: str) -> Reference:
    name, _, cells = text.rpartition("!")
    name = name.strip("'")
    if name and name not in sheet.parent.sheetnames:
        raise Refused(f"chart: there is no sheet {name!r}")
    source = sheet.parent[name] if name else sheet
    left, top, right, bottom = area(source, cells)
    if left != right and top != bottom:
        raise Refused(f"chart: {text!r} has several rows and columns; one row or column is one series")
    return Reference(source, left, top, right, bottom)
