"""A figure as SVG text that can stand in a page beside others.

matplotlib's SVG is made to be a file of its own: its style element, its ids and
its font would reach beyond it in a page, and it writes six digits after each
point.  Text stays text, in the reader's own font.  The same figure gives the
same bytes; another version of matplotlib may place it a fraction of a pixel
otherwise.
"""

import io
import re
from html import escape

from trials.base.units import printable
from trials.drawing import style

FONTS = ("system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', "
         "Arial, 'Noto Sans', 'DejaVu Sans', sans-serif")
_TAG = re.compile(r"<[^>]*>")
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_PATH = re.compile(r'\bd="([^"]*)"')
_STYLE = re.compile(r'\bstyle="([^"]*)"')
_FONT = re.compile(r"font: (?:(\d+) )?([\d.]+)px [^;\"]*")
_ID = re.compile(r'(\bid="|url\(#|href="#)([^")]+)')
# A file is drawn for a phone's width and shown so much larger where there is
# room: its smallest text is then as large as that of the page around it.
_FILE_SCALE = 1.5


def text(figure, prefix: str, title: str, description: str) -> str:
    """One <svg> element.  No other picture may have this prefix."""
    stream = io.StringIO()
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
    ids = {}
    body = _ID.sub(lambda found: found[1] + ids.setdefault(
        found[2], f"{prefix}-{len(ids)}"), body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-labelledby="{prefix}-title {prefix}-text" '
        f'viewBox="0 0 {width:.10g} {height:.10g}" '
        f'width="{width:.10g}" height="{height:.10g}" '
        f'stroke-linejoin="round" font-family="{FONTS}" '
        'style="font-variant-numeric: tabular-nums">\n'
        f'<title id="{prefix}-title">{escape(printable(title))}</title>\n'
        f'<desc id="{prefix}-text">{escape(printable(description))}</desc>\n'
        f'{body}')


def alone(picture: str) -> str:
    """The <svg> element as a file that stands in a page of any colour: it has
    no paper, and other colours where the reader prefers a dark page."""
    rules = "\n".join(
        f'[style*="{what}: {light}"] {{ {what}: {dark} !important }}'
        for light, dark in style.DARK.items() for what in ("fill", "stroke"))
    head, rest = picture.replace(f"fill: {style.PAPER}", "fill: none").split(
        "\n", 1)
    head = re.sub(r' (width|height)="([\d.]+)"', lambda size: (
        f' {size[1]}="{float(size[2]) * _FILE_SCALE:.10g}"'), head)
    return (f"{head}\n<style>\n@media (prefers-color-scheme: dark) {{\n{rules}"
            f"\n}}\n</style>\n{rest}")


def _tidy(tag: str) -> str:
    tag = _NUMBER.sub(lambda number: _short(number.group()), tag)
    tag = _PATH.sub(lambda path: f'd="{_path(path.group(1))}"', tag)
    tag = _STYLE.sub(lambda style: f'style="{_style(style[1])}"', tag)
    if tag.startswith("<g id="):
        # An empty one ends where it begins.
        return "" if tag.endswith("/>") else "<g>"
    return re.sub(r' transform="rotate\(-?0 [^"]*"', "", tag)


def _short(number: str) -> str:
    short = f"{float(number):.2f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def _path(data: str) -> str:
    return re.sub(r"\s*([MLCQZz])\s*", r"\1", data.strip())


def _style(text: str) -> str:
    text = _FONT.sub(lambda font: f"font-size: {font[2]}px" + (
        f"; font-weight: {font[1]}" if font[1] else ""), text)
    return "; ".join(sorted(each for each in text.split("; ")
                            if not each.startswith("font-family")))
