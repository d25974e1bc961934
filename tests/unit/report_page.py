"""Reads a report's page as a browser would, for the tests of it."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
# What a browser fetches by itself.
_FETCHED = ("src", "srcset", "data", "poster", "background", "action",
            "formaction", "manifest", "ping")


class Page(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.attributes, self.words = [], [], []
        self.source = text
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    @property
    def ids(self):
        return [value for _, name, value in self.attributes if name == "id"]

    def pictures(self):
        """{name and width: the parsed SVG}; raises if one is no XML."""
        found = re.findall(r"<svg\b.*?</svg>", self.source, re.DOTALL)
        roots = [ElementTree.fromstring(text) for text in found]
        return {root.get("aria-labelledby").split()[0]
                .removesuffix("-title"): root for root in roots}

    def missing_references(self):
        """Names of ids that something refers to and nothing has."""
        wanted = re.findall(r"url\(#([^)]*)\)", self.source)
        for _, name, value in self.attributes:
            if name in ("href", "xlink:href") and value.startswith("#"):
                wanted.append(value[1:])
            elif name in ("aria-labelledby", "aria-describedby"):
                wanted += value.split()
        return sorted(set(wanted) - set(self.ids))

    def outside(self):
        """Whatever a browser would fetch, or run."""
        found = [tag for tag in self.elements
                 if tag in ("script", "iframe", "object", "embed", "base",
                            "img", "image", "link", "foreignobject")]
        for tag, name, value in self.attributes:
            link = name in ("href", "xlink:href") and (
                tag != "a" or not value.startswith("https://doi.org/"))
            if name.startswith("on") or name in _FETCHED or (
                    link and not value.startswith("#")):
                found.append(f"{tag} {name}={value}")
        found += re.findall(r"url\((?!#)[^)]*\)|@import\b[^;]*",
                            self.source)
        return found


def segments(root):
    """Of each path of a picture the number of its separate strokes."""
    return [path.get("d", "").count("M") for path in root.iter(f"{SVG}path")]


def picture_texts(root):
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
