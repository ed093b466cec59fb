"""Markdown of texts of the code: tables, help texts, docstrings."""

from __future__ import annotations

import html
import inspect
import re
import textwrap
from collections.abc import Iterable
from typing import Any


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; the cells are Markdown in one line."""
    lines = [list(head)]
    lines += [["---"] * len(lines[0])]
    lines += [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(text: str) -> str:
    """Text as code, in a cell of a table too."""
    if "|" in text:  # a table would show the backslash before it
        text = html.escape(text, quote=False).replace("|", "&#124;<wbr>")
        return f'<code class="choices">{text}</code>'
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def prose(text: str) -> str:
    """Help or a message as Markdown: nothing in it is markup, and names of options are code."""
    text = html.escape(text, quote=False)
    text = re.sub(r"([*_\[\]{}])", r"\\\1", text)
    text = re.sub(r"\bdocs/(\w+)\.md", r"[\1](../\1.md)", text)
    # class: not broken at its hyphens
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r'<code class="option">\1</code>', text)


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def docstring(thing: Any) -> str:
    return markdown(inspect.getdoc(thing) or "")


def markdown(doc: str) -> str:
    """A docstring with sections (Args, Returns, Raises, Attributes) as Markdown."""
    lines, out = doc.splitlines(), []
    while lines:
        line = lines.pop(0)
        heading = re.fullmatch(r"(Args|Returns|Raises|Attributes|Yields):", line)
        if heading is None:
            out.append(line)
            continue
        body = []
        while lines and (not lines[0] or lines[0].startswith(" ")):
            body.append(lines.pop(0))
        items = re.findall(
            r"^([^\s:][^:\n]*): (.*(?:\n(?: .*)?)*)", textwrap.dedent("\n".join(body)), re.MULTILINE
        )
        out.append(f"\n**{heading[1].replace('Args', 'Arguments')}**\n")
        if items and heading[1] not in ("Returns", "Yields"):
            out += [f"- `{key}`: {' '.join(value.split())}" for key, value in items]
        else:
            out.append(" ".join(" ".join(body).split()))
        out.append("")
    text = "\n".join(out)
    text = re.sub(r"^::\n\n((?: {4}.*\n|\n)+)", literal, text + "\n", flags=re.M)
    text = re.sub(r"\bdocs/(\w+)\.md", r"[\1](../\1.md)", text)
    text = re.sub(r":\w+:`[~.]?(?:urlset\.)?([^`]+)`", r"`\1`", text)
    text = re.sub(r"(?<!`)``([^`]+)``(?!`)", r"`\1`", text)
    # tables of reStructuredText stay as they are
    return re.sub(r"((?:^ *=+ .*\n)(?:.*\n)*?(?:^ *=+.*$))", r"```text\n\1\n```", text, flags=re.M)


def literal(match: re.Match[str]) -> str:
    """A literal block of reStructuredText as code."""
    return f"```text\n{textwrap.dedent(match[1]).strip()}\n```\n\n"
