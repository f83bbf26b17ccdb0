"""Charts on slides, with their data in the file so that they can be changed."""

from __future__ import annotations

from typing import Any

from pptx.chart.data import CategoryChartData
from pptx.dml.color import RGBColor
from pptx.enum.chart import XL_CHART_TYPE, XL_LABEL_POSITION, XL_LEGEND_POSITION
from pptx.oxml.ns import qn
from pptx.util import Pt

from rubric_env.office._pptx_fit import Box
from rubric_env.office._problems import Refused

LABELLED = 16
"""Values up to which each is written beside its mark."""

POINTS, SERIES = 200, 12

_KINDS = {
    ("column", False): XL_CHART_TYPE.COLUMN_CLUSTERED,
    ("column", True): XL_CHART_TYPE.COLUMN_STACKED,
    ("bar", False): XL_CHART_TYPE.BAR_CLUSTERED,
    ("bar", True): XL_CHART_TYPE.BAR_STACKED,
    ("line", False): XL_CHART_TYPE.LINE_MARKERS,
    ("line", True): XL_CHART_TYPE.LINE_MARKERS,
    ("area", False): XL_CHART_TYPE.AREA,
    ("area", True): XL_CHART_TYPE.AREA_STACKED,
    ("pie", False): XL_CHART_TYPE.PIE,
    ("pie", True): XL_CHART_TYPE.PIE,
}


def data_of(wanted: dict[str, Any]) -> CategoryChartData:
    """Raises Refused for series that do not go with the categories."""
    categories, series = wanted["categories"], wanted["series"]
    if not categories or not series:
        raise Refused("chart: it needs categories and a series")
    if len(categories) > POINTS or len(series) > SERIES:
        raise Refused(f"chart: at most {POINTS} categories and {SERIES} series can be told apart")
    if wanted["kind"] == "pie" and len(series) > 1:
        raise Refused("chart: a pie has one series")
    wrong = [one["name"] for one in series if len(one["values"]) != len(categories)]
    if wrong:
        raise Refused(f"chart: {', '.join(wrong)} has not one value for each of the {len(categories)} categories")
    data = CategoryChartData(number_format=wanted["number_format"] or "General")
    data.categories = categories
    for one in series:
        data.add_series(one["name"], one["values"])
    return data


def add_chart(slide: Any, wanted: dict[str, Any], area: Box) -> None:
    """Raises Refused."""
    data = data_of(wanted)
    kind, series = wanted["kind"], wanted["series"]
    chart = slide.shapes.add_chart(_KINDS[kind, bool(wanted["stacked"])], *area, data).chart
    chart.font.size = Pt(14)
    entitle(chart, wanted["title"])
    chart.has_legend = len(series) > 1 or kind == "pie"
    if chart.has_legend:
        chart.legend.position = XL_LEGEND_POSITION.RIGHT if kind == "pie" else XL_LEGEND_POSITION.BOTTOM
        chart.legend.include_in_layout = False
    plot = chart.plots[0]
    plot.vary_by_categories = kind == "pie"
    if kind in ("column", "bar"):
        plot.gap_width = 60
    if len(series) * len(wanted["categories"]) <= LABELLED and kind != "area":
        plot.has_data_labels = True
        labels = plot.data_labels
        labels.font.size = Pt(12)
        labels.show_value = kind != "pie"
        labels.show_percentage = kind == "pie"
        if kind == "pie":
            labels.number_format, labels.number_format_is_linked = "0%", False
            labels.position = XL_LABEL_POSITION.OUTSIDE_END
        elif wanted["number_format"]:
            labels.number_format, labels.number_format_is_linked = wanted["number_format"], False
    if kind != "pie":
        _axes(chart, wanted)


def entitle(chart: Any, title: str | None) -> None:
    chart.has_title = bool(title)
    if title:
        chart.chart_title.text_frame.text = title
        run = chart.chart_title.text_frame.paragraphs[0].runs[0]
        run.font.size, run.font.bold = Pt(16), True


def _axes(chart: Any, wanted: dict[str, Any]) -> None:
    values = chart.value_axis
    values.major_gridlines.format.line.color.rgb = RGBColor(0xD9, 0xD9, 0xD9)
    values.format.line.fill.background()
    values.tick_labels.font.size = chart.category_axis.tick_labels.font.size = Pt(12)
    chart.category_axis.format.line.color.rgb = RGBColor(0x8C, 0x8C, 0x8C)
    if wanted["number_format"]:
        values.tick_labels.number_format = wanted["number_format"]
        values.tick_labels.number_format_is_linked = False
    if wanted["kind"] == "bar":
        chart.category_axis.reverse_order = True  # the first category on top, as it was listed
        values._element.find(qn("c:crosses")).set("val", "max")  # and the values below all the same
