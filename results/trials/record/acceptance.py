"""A quick look whether a document is as its schema says.

A record has thousands of lines of one schema, and the library that validates
them takes milliseconds for each.  accepts() makes a function of a schema, which
is true of what is certainly right; the library then has to look at the others
only, and says what is wrong with them.  The function knows the few keywords
that the schema of a trial has; accepts() raises Unknown for any other.
"""

import re

_TYPES = {"object": (dict,), "array": (list,), "string": (str,),
          "integer": (int,), "number": (int, float), "boolean": (bool,),
          "null": (type(None),)}
_WITHOUT_EFFECT = {"$schema", "title", "description"}
_OF_KEYS = {"properties", "additionalProperties"}


class Unknown(Exception):
    """A keyword that is not known here."""


def accepts(schema: dict):
    """A function of a document: True, or False if the library must look."""
    try:
        checks = [_KEYWORDS[name](wanted) for name, wanted in schema.items()
                  if name not in _OF_KEYS and name not in _WITHOUT_EFFECT]
    except KeyError as unknown:
        raise Unknown(unknown.args[0]) from None
    if _OF_KEYS & schema.keys():
        checks.append(_of((dict,), _properties(schema)))
    return lambda value: all(check(value) for check in checks)


def _of(types, check):
    """What is of no such type is not for this keyword to judge."""
    return lambda value: type(value) not in types or check(value)


def _type(wanted):
    # Types are compared by identity: in Python a bool is an int, too.
    types = frozenset(kind for name in (
        wanted if isinstance(wanted, list) else [wanted])
        for kind in _TYPES[name])
    return lambda value: type(value) in types


def _const(wanted):
    return lambda value: type(value) is type(wanted) and value == wanted


def _enum(wanted):
    checks = [_const(each) for each in wanted]
    return lambda value: any(check(value) for check in checks)


def _pattern(wanted):
    found = re.compile(wanted).search
    return _of((str,), lambda value: found(value) is not None)


def _items(wanted):
    check = accepts(wanted)
    return _of((list,), lambda value: all(map(check, value)))


def _properties(schema):
    """The properties and all others in one go over the keys."""
    checks = {name: accepts(each)
              for name, each in schema.get("properties", {}).items()}
    wanted = schema.get("additionalProperties", True)
    others = (lambda _value: wanted) if isinstance(wanted, bool) \
        else accepts(wanted)
    return lambda value: all(checks.get(name, others)(each)
                             for name, each in value.items())


_KEYWORDS = {
    "type": _type, "const": _const, "enum": _enum, "pattern": _pattern,
    "items": _items,
    "minimum": lambda least: _of((int, float), lambda value: value >= least),
    "maximum": lambda most: _of((int, float), lambda value: value <= most),
    "minItems": lambda least: _of((list,), lambda value: len(value) >= least),
    "required": lambda names: _of((dict,), frozenset(names).issubset)}
