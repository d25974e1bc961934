"""A figure as SVG text that can stand in a page beside others.

matplotlib's SVG is made to be a file of its own: its style element, its ids and
its font would reach beyond it in a page, and it writes six digits after each
point.  Text stays text, in the reader's own font.  The same figure gives the
same bytes.
"""

import io
import re
from html import escape

import matplotlib

FONTS = ("system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', "
         "Arial, 'Noto Sans', 'DejaVu Sans', sans-serif")
_TAG = re.compile(r"<[^>]*>")
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_PATH = re.compile(r'\bd="([^"]*)"')
_FONT = re.compile(r"font: (?:(\d+) )?([\d.]+)px [^;\"]*")


def text(figure, prefix: str, title: str, description: str) -> str:
    """One <svg> element.  No other picture may have this prefix."""
    stream = io.StringIO()
    # matplotlib derives its ids from this and from what they name.
    matplotlib.rcParams["svg.hashsalt"] = prefix
    figure.savefig(stream, format="svg", metadata={
        "Date": None, "Creator": None, "Format": None, "Type": None})
    body = stream.getvalue()
    width, height = figure.get_size_inches() * 72
    body = body[body.index("<defs"):]
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body,
                  count=1, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.DOTALL)
    body = _TAG.sub(lambda tag: _tidy(tag.group()), body)
    body = re.sub(r"\n\s*", "\n", body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-labelledby="{prefix}-title {prefix}-text" '
        f'viewBox="0 0 {width:.10g} {height:.10g}" '
        f'width="{width:.10g}" height="{height:.10g}" '
        f'stroke-linejoin="round" font-family="{FONTS}" '
        'style="font-variant-numeric: tabular-nums">\n'
        f'<title id="{prefix}-title">{escape(title)}</title>\n'
        f'<desc id="{prefix}-text">{escape(description)}</desc>\n{body}')


def _tidy(tag: str) -> str:
    tag = _NUMBER.sub(lambda number: _short(number.group()), tag)
    tag = _PATH.sub(lambda path: f'd="{_path(path.group(1))}"', tag)
    tag = _FONT.sub(_font, tag)
    if tag.startswith("<g id="):
        # An empty one ends where it begins.
        return "" if tag.endswith("/>") else "<g>"
    return re.sub(r' transform="rotate\(-?0 [^"]*"', "", tag)


def _short(number: str) -> str:
    short = f"{float(number):.2f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def _path(data: str) -> str:
    return re.sub(r"\s*([MLCQZz])\s*", r"\1", data.strip())


def _font(match) -> str:
    weight = f"; font-weight: {match.group(1)}" if match.group(1) else ""
    return f"font-size: {match.group(2)}px{weight}"
