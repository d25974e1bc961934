#!/usr/bin/env python3
"""Are documents what their schemas say?

USAGE: json_documents.py [SCHEMA FILE]...

Each FILE is a document of this SCHEMA, or each of its lines is one.  A document
names the schema in its first member, is as results/schema/SCHEMA.schema.json
says, and would not be with a member more.

Without arguments: the schemas are such themselves, and each is of documents
that have the name of its file.  Their names are printed.
"""
import os
import sys

REPO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.insert(0, os.path.join(REPO, "results"))

from trials.base import documents  # noqa: E402
from trials.record import schema  # noqa: E402

SUFFIX = ".schema.json"


def documents_of(path):
    """The document that a file is, or those that its lines are."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return [documents.loads(data)]
    except ValueError:
        return [documents.loads(line) for line in data.splitlines()]


def complaint(name, document):
    """What is wrong with a document of this schema, or None."""
    if list(document)[:1] != ["schema"]:
        return "its first member is not schema"
    if document["schema"] != name:
        return f"its schema is {document['schema']}, not {name}"
    found = schema.complaint(name, document)
    if not found and not schema.complaint(name, {**document, "added": 1}):
        return "its schema takes any member"
    return found


def check_documents(pairs):
    for name, path in pairs:
        for document in documents_of(path):
            why = complaint(name, document)
            if why:
                sys.exit(f"{path}: {why}: {str(document)[:400]}")


def check_schemas():
    for file in sorted(os.listdir(schema.FOLDER)):
        name = file.removesuffix(SUFFIX)
        if name + SUFFIX != file:
            sys.exit(f"{file}: does not end in {SUFFIX}")
        validator = schema.validator(name)
        validator.check_schema(validator.schema)
        if validator.schema["properties"]["schema"] != {"const": name}:
            sys.exit(f"{file}: is not of documents of schema {name}")
        print(name)


if len(sys.argv) > 1:
    check_documents(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
else:
    check_schemas()
