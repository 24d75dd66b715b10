"""Puts generated text between two marks of a page: <!-- name --> and <!-- end of name -->."""


def put(text: str, name: str, generated: str) -> str:
    """The text with what stands between the marks replaced."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    start = text.index(begin) + len(begin)
    return text[:start] + generated + text[text.index(end, start) :]
