"""Formulas as MathML, which browsers draw by themselves: no script, no fonts, nothing from elsewhere."""

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor

# What pymdownx.arithmatex leaves of $…$ and $$…$$.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def as_mathml(formula: re.Match[str]) -> str:
    """A formula as MathML, in the line or on one of its own."""
    display = "inline" if formula[2] == "(" else "block"
    drawn = convert(unescape(formula[3]), display=display)
    return drawn if display == "inline" else f'<div class="formula">{drawn}</div>'


class InMathML(Postprocessor):
    """Works on the page as HTML."""

    def run(self, text: str) -> str:
        """The page with its formulas drawn."""
        return FORMULA.sub(as_mathml, text)


class MathML(Extension):
    """To be listed after pymdownx.arithmatex."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Comes last, when all HTML is there."""
        md.postprocessors.register(InMathML(md), "mathml", 0)


def makeExtension(**settings: Any) -> MathML:
    """What Markdown calls."""
    return MathML(**settings)
