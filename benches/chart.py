"""A bar chart as SVG, readable on a light and on a dark page.

The background stays clear and every colour has a contrast of at least 3.6 to 1 against white and
against GitHub's dark background alike: an image in a README follows the theme of the system, which
can differ from that of the page, so two sets of colours would not be safe.
"""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

WIDTH, LABELS, VALUES = 860, 300, 130
BAR, STEP, TOP, BOTTOM = 18, 28, 58, 8
TEXT, RULE = "#748091", "#8b949e"
COLOURS = {"urlset": "#2f81f7", "peer": "#7d8590", "limit": "#b7791f"}
NAMES = {"urlset": "urlset", "peer": "others", "limit": "limit of the machine"}
FONT = "-apple-system,Segoe UI,Helvetica,Arial,sans-serif"


def svg(results: list[dict[str, Any]], machine: dict[str, Any]) -> str:
    """Rows per second of each result, one bar each, in the given order; gzip only.

    The others write less: a bar of theirs among these would compare two different jobs.
    """
    shown = [result for result in results if result["gzip"]]
    height = TOP + STEP * len(shown) + BOTTOM
    most = max((result["rows_per_second"] for result in shown), default=1.0)
    title = f"Rows a second to gzipped sitemaps, {machine['cores']} cores"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="{FONT}" font-size="13" role="img" '
        f'aria-label="{escape(title)}">',
        f'<text x="{LABELS}" y="20" font-size="15" font-weight="600" fill="{TEXT}">'
        f"{escape(title)}</text>",
    ]
    x = LABELS
    for group, colour in COLOURS.items():
        parts.append(_bar(x, 32, 11, 11, group, colour))
        parts.append(_text(x + 17, 42, NAMES[group], TEXT))
        x += 40 + 7 * len(NAMES[group])
    for number, result in enumerate(shown):
        colour = COLOURS[result["group"]]
        top = TOP + STEP * number
        length = max(2.0, (WIDTH - LABELS - VALUES) * result["rows_per_second"] / most)
        bold = result["group"] == "urlset"
        label = result["label"].removeprefix("limit: ").split(",")[0]
        if bold:
            label = result["label"].removesuffix(" to gzip")
        parts.append(_text(LABELS - 10, top + 14, label, colour if bold else TEXT, "end", bold))
        parts.append(_bar(LABELS, top, length, BAR, result["group"], colour))
        speed = _speed(result["rows_per_second"])
        parts.append(_text(LABELS + length + 8, top + 14, speed, colour, "start", bold))
    bottom = TOP + STEP * len(shown) + 2
    parts.append(f'<path d="M{LABELS} {TOP - 4}V{bottom - 4}" stroke="{RULE}"/>')
    parts.append("</svg>\n")
    return "\n".join(parts)


def _bar(x: float, y: float, width: float, height: float, group: str, colour: str) -> str:
    """A filled bar; an outlined one for a limit."""
    paint = f'fill="{colour}"'
    if group == "limit":
        paint = f'fill="{colour}" fill-opacity="0.25" stroke="{colour}"'
    return f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{height}" rx="2" {paint}/>'


def _text(
    x: float, y: float, text: str, colour: str, anchor: str = "start", bold: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" fill="{colour}"{weight}>'
        f"{escape(text)}</text>"
    )


def _speed(rows: float) -> str:
    if rows >= 1e6:
        return f"{rows / 1e6:.2f} M"
    return f"{rows / 1e3:,.0f} k" if rows >= 1e4 else f"{rows / 1e3:.1f} k"
