"""Convert formulas to MathML, which browsers draw without scripts or fonts."""

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor

# The output of pymdownx.arithmatex for $…$ and $$…$$.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def as_mathml(formula: re.Match[str]) -> str:
    """Return a formula as MathML, inline or as a block."""
    display = "inline" if formula[2] == "(" else "block"
    drawn = convert(unescape(formula[3]), display=display)
    return drawn if display == "inline" else f'<div class="formula">{drawn}</div>'


class InMathML(Postprocessor):
    """Convert the formulas of a page in HTML."""

    def run(self, text: str) -> str:
        """Return the page with converted formulas."""
        return FORMULA.sub(as_mathml, text)


class MathML(Extension):
    """A Markdown extension, to be listed after pymdownx.arithmatex."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register after all other processors."""
        md.postprocessors.register(InMathML(md), "mathml", 0)


def makeExtension(**settings: Any) -> MathML:
    """Return the extension; Markdown calls this function."""
    return MathML(**settings)
