"""A quick look whether a document is as its schema says.

A record has thousands of lines of one schema, and the library that validates
them takes milliseconds for each.  accepts() makes a function of a schema, which
is true of what is certainly right; the library then has to look at the others
only, and says what is wrong with them.  The function knows the few keywords
that the schema of a trial has; accepts() raises Unknown for any other.
"""

import re

_TYPES = {"object": dict, "array": list, "string": str, "integer": int,
          "boolean": bool, "null": type(None)}
_WITHOUT_EFFECT = {"$schema", "title", "description"}


class Unknown(Exception):
    """A keyword that is not known here."""


def accepts(schema: dict):
    """A function of a document: True, or False if the library must look."""
    checks = [_keyword(name, value, schema) for name, value in schema.items()
              if name not in _WITHOUT_EFFECT]
    checks = [check for check in checks if check]

    def accepted(value):
        return all(check(value) for check in checks)
    return accepted


def _keyword(name, wanted, schema):
    try:
        make = _KEYWORDS[name]
    except KeyError:
        raise Unknown(name) from None
    return make(wanted, schema)


def _is_number(value):
    return type(value) in (int, float)


def _type(wanted, _schema):
    names = wanted if isinstance(wanted, list) else [wanted]
    types = []
    for name in names:
        if name == "number":
            types += [int, float]
        elif name in _TYPES:
            types.append(_TYPES[name])
        else:
            raise Unknown(name)
    # Types are compared by identity: in Python a bool is an int, too.
    types = frozenset(types)
    return lambda value: type(value) in types


def _const(wanted, _schema):
    return lambda value: type(value) is type(wanted) and value == wanted


def _enum(wanted, _schema):
    checks = [_const(each, None) for each in wanted]
    return lambda value: any(check(value) for check in checks)


def _minimum(least, _schema):
    return lambda value: not _is_number(value) or value >= least


def _maximum(most, _schema):
    return lambda value: not _is_number(value) or value <= most


def _pattern(wanted, _schema):
    found = re.compile(wanted).search
    return lambda value: type(value) is not str or found(value) is not None


def _min_items(least, _schema):
    return lambda value: type(value) is not list or len(value) >= least


def _items(wanted, _schema):
    check = accepts(wanted)
    return lambda value: type(value) is not list or all(map(check, value))


def _required(names, _schema):
    names = frozenset(names)
    return lambda value: type(value) is not dict or names <= value.keys()


def _properties(wanted, schema):
    """Checks additionalProperties, too, in one go over the keys."""
    checks = {name: accepts(each) for name, each in wanted.items()}
    others = _others(schema)

    def check(value):
        return type(value) is not dict or all(
            checks.get(name, others)(each) for name, each in value.items())
    return check


def _others(schema):
    wanted = schema.get("additionalProperties", True)
    if isinstance(wanted, bool):
        return lambda _value: wanted
    return accepts(wanted)


def _additional(_wanted, schema):
    # _properties() has it, if there are properties.
    return None if "properties" in schema else _properties({}, schema)


_KEYWORDS = {"type": _type, "const": _const, "enum": _enum,
             "minimum": _minimum, "maximum": _maximum, "pattern": _pattern,
             "minItems": _min_items, "items": _items, "required": _required,
             "properties": _properties, "additionalProperties": _additional}
