"""Pictures as SVG: bars and lines, drawn so that they can be read in a page without a legend of
their making. No script, no font and nothing else is fetched by who looks at them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pygal
from pygal.style import Style

# It leaves a finder of modules behind, for maps, in a form that Python warns of at each import.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]

# It leaves a finder of modules behind, for maps, in a form that Python warns of at each import.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]

OURS: Final = "#c2570c"
OTHER: Final = "#7d99a3"
_COLOURS: Final = (OURS, "#4b6f7d", "#a9bcc3", "#2f855a", "#8a4f9e", "#b7950b", "#34495e")
_WIDTH: Final = 860
_ROW_HEIGHT: Final = 34
_MOST_POINTS: Final = 400
_FONT: Final = "Helvetica, Arial, DejaVu Sans, sans-serif"
_STYLE: Final = Style(
    background="white",
    plot_background="white",
    foreground="#333333",
    foreground_strong="#111111",
    foreground_subtle="#666666",
    colors=_COLOURS,
    font_family=_FONT,
    label_font_size=13,
    major_label_font_size=13,
    title_font_size=17,
    legend_font_size=13,
    value_font_size=12,
    value_label_font_size=12,
    opacity="1",
    guide_stroke_color="#e2e2e2",
    major_guide_stroke_color="#e2e2e2",
    guide_stroke_dasharray="",
    major_guide_stroke_dasharray="",
)


@dataclass(frozen=True, slots=True)
class Picture:
    """``name`` is the file's, without its ending; ``caption`` says how to read it."""

    name: str
    title: str
    caption: str
    svg: bytes


def number(value: float | None) -> str:
    """Return a number as people read it: three digits, thousands apart."""
    if value is None:
        return ""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def ranking(
    name: str, title: str, values: Mapping[str, float], *, axis: str, caption: str, ours: str = ""
) -> Picture:
    """One bar for each, from top to bottom; ``ours`` stands out."""
    height = 110 + _ROW_HEIGHT * len(values)
    chart = pygal.HorizontalBar(**_options(title, height), x_title=axis, show_legend=False)
    chart.range = (0, 1.08 * max(values.values(), default=1.0) or 1.0)
    bottom_up = list(values.items())[::-1]
    # Beside a short bar there is no room for its value, so it stands with the name.
    chart.x_labels = [f"{label}: {number(value)}" for label, value in bottom_up]
    chart.add(
        "",
        [
            {"value": value, "color": OURS if not ours or label == ours else OTHER}
            for label, value in bottom_up
        ],
    )
    return Picture(name, title, caption, chart.render())


def groups(
    name: str,
    title: str,
    labels: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    *,
    axis: str,
    caption: str,
) -> Picture:
    """Bars side by side, a group for each label; the first of ``series`` is ours."""
    chart = pygal.Bar(
        **_options(title, 400),
        y_title=axis,
        print_values=True,
        legend_at_bottom=True,
        legend_at_bottom_columns=min(3, len(series)),
        show_legend=len(series) > 1,
    )
    highest = max((v for values in series.values() for v in values if v is not None), default=0)
    chart.range = (0, 1.08 * highest or 1.0)
    chart.x_labels = list(labels)
    for label, values in series.items():
        chart.add(label, list(values))
    return Picture(name, title, caption, chart.render())


def lines(
    name: str,
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    x_axis: str,
    y_axis: str,
    caption: str,
    dots: bool = False,
) -> Picture:
    """A line for each of ``series``, through its points. Their y axis begins at zero."""
    chart = pygal.XY(
        **_options(title, 400),
        x_title=x_axis,
        y_title=y_axis,
        legend_at_bottom=True,
        legend_at_bottom_columns=max(1, len(series)),
        show_dots=dots,
        dots_size=3,
        stroke_style={"width": 3},
        include_x_axis=True,
    )
    highest = max((y for points in series.values() for _, y in points), default=0.0)
    chart.range = (0, 1.08 * highest or 1.0)
    for label, points in series.items():
        chart.add(label, _thinned(points))
    return Picture(name, title, caption, chart.render())


def _options(title: str, height: int) -> dict[str, object]:
    return {
        "style": _STYLE,
        "js": [],
        "width": _WIDTH,
        "height": height,
        "title": title,
        "value_formatter": number,
        "margin": 14,
        "max_scale": 8,
        "truncate_label": -1,
        "truncate_legend": -1,
        "print_values_position": "top",
        "disable_xml_declaration": False,
    }


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Leave out what no eye could tell apart, but no peak."""
    step = -(-len(points) // _MOST_POINTS)
    if step <= 1:
        return list(points)
    parts = (points[at : at + step] for at in range(0, len(points), step))
    return [max(part, key=lambda point: point[1]) for part in parts]
