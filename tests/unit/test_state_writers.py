"""A field of a *_state.h, which several files see, is written by one of them.

A comment "Written by NAME.c" before a struct holds for its fields; on lines of
its own within a struct it holds for those that follow.  A write is found where
the file that writes says how it comes to the field, from a pointer to a struct
on: PATH = ..., PATH++, an atomic store, memset() and the like.  What a function
does that is given the field's address is not seen: const says that.  What is
"Written by many", as counters are, is not checked.
"""

import re
import unittest

import unit

COMMENT = re.compile(r"/\*.*?\*/", re.S)
MARK = re.compile(r"Written\s+(?:\*\s+)?by\s+(?:\*\s+)?(\w+\.c|many)")
STRUCT = re.compile(r"((?:/\*(?:(?!\*/).)*\*/\s*)?)^struct (\w+) \{\n(.*?)^\}",
                    re.S | re.M)
FIELD = re.compile(r"^\t(\w[^;{]*);", re.M)
NAME = re.compile(r"(\*?)(\w+)\)?(?:\[[^\]]*\])*(?: : \d+)?(?=,|$|\()")
FUNCTION = re.compile(r"^[a-z][^;{}]*\)\n\{\n.*?^\}", re.S | re.M)
VARIABLE = re.compile(r"\bstruct (\w+) (\**)(\w+)(?= ?[=;,)\[])")
PATH = r"(\w+)((?:(?:->|\.)\w+|\[[^\[\];]*\])+)"
WRITE = re.compile(
    rf"(?:\+\+|--){PATH}"
    rf"|{PATH} ?(?:=(?!=)|[-+*/%&|^]=|<<=|>>=|\+\+|--)"
    rf"|(?:atomic_(?:store|fetch|exchange|flag|init)\w*|mem(?:set|cpy|move))"
    rf"\( ?&?{PATH}"
    rf"|thread_pool_set\( ?[^,]*, &{PATH}")


def fields_of(body: str, writer: str) -> dict:
    """Of a struct's fields, by name: (writer, type or "", is it a pointer)."""
    fields = {}
    at = 0
    marks = [(m.start(), MARK.search(m.group())) for m in
             re.finditer(r"(?m)^\t/\*(?:(?!\*/)[\s\S])*\*/$", body)]
    bare = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), body)
    bare = re.sub(r"(?ms)^\t(\w[^\n]*\{)$.*?^\t\}",
                  lambda m: "\t" + re.sub(r"[^\n]", "x", m.group())[1:], bare)
    for field in FIELD.finditer(bare):
        while at < len(marks) and marks[at][0] < field.start():
            if marks[at][1]:
                writer = marks[at][1].group(1)
            at += 1
        kind = re.match(r"(?:const )?struct (\w+)", field.group(1))
        for star, name in NAME.findall(field.group(1)):
            fields[name] = (writer, kind.group(1) if kind else "", bool(star))
    return fields


def structs_of(text: str) -> dict:
    found = {}
    for comment, name, body in STRUCT.findall(text):
        if "(*" in body:  # a table of functions is a constant
            continue
        mark = MARK.search(comment)
        found[name] = fields_of(body, mark.group(1) if mark else "")
    return found


def field_at(structs: dict, kind: str, path: str):
    """The field that is written, (struct, name), or None: it is no field of a
    struct that is known."""
    found = pointer = None
    for step, name in re.findall(r"(->|\.|\[)(\w*)",
                                 re.sub(r"\[[^\]]*", "[", path)):
        if (step == "->" and found) or (step == "[" and pointer):
            found = None
        if step == "[":
            continue
        if name not in structs.get(kind, {}):
            return found
        found = (kind, name)
        _, kind, pointer = structs[kind][name]
    return found


def wrong_writes(headers: list, sources: dict) -> list:
    """Of sources, text by file name: "FILE: STRUCT.FIELD of WRITER"."""
    states = {}
    wrong = set()
    for header in headers:
        states |= structs_of(header)
    for file, text in sources.items():
        text = COMMENT.sub("", text)
        structs = structs_of(text) | states
        for function in FUNCTION.findall(text):
            flat = re.sub(r" ?(->|\.)", r"\1",
                          re.sub(r"\s+", " ", function))
            kinds = {name: kind for kind, star, name in
                     VARIABLE.findall(flat) if star}
            for parts in WRITE.findall(flat):
                name, path = [part for part in parts if part]
                field = field_at(structs, kinds.get(name, ""), path)
                writer = states[field[0]][field[1]][0] \
                    if field and field[0] in states else ""
                if writer not in ("", "many", file):
                    wrong.add(f"{file}: {'.'.join(field)} of {writer}")
    return sorted(wrong)


class Writers(unittest.TestCase):
    def test_of_all_states(self):
        src = unit.ROOT / "src"
        sources = {path.name: path.read_text() for path in src.rglob("*.c")}
        headers = {path.name: path.read_text()
                   for path in src.rglob("*_state.h")}
        for name, header in headers.items():
            unmarked = [
                f"{struct}.{field}"
                for struct, fields in structs_of(header).items()
                for field, (writer, kind, _) in fields.items()
                if not writer]
            self.assertEqual(unmarked, [], name)
        self.assertEqual(wrong_writes(list(headers.values()), sources), [])

    def test_wrong_ones_are_found(self):
        header = """
/* What b does.  Written by b.c. */
struct part {
    int one, two[3];
    struct {
        int inner;
    } own;
    int *borrowed;
};

struct state {
    int free;
    /* Written
     * by a.c. */
    struct part part;
    _Atomic int word;
    struct part *other; /* of another */
    /* Written by many. */
    int counted;
};
""".replace("    ", "\t")
        good = """
static void f(struct state *state, struct part *part)
{
    struct part copy = { .one = 1 };

    state->free = 1;
    state->counted++;
    if (state->word == 1 || part->one == 2)
        copy.one = state->part.one;
    part->borrowed[1] = 1;
    g(&state->word);
}
""".replace("    ", "\t")
        bad = """
struct holder {
    struct state *state;
};

int f(struct holder *holder, struct part *part)
{
    part->two[part->one]++;
    ++part->own.inner;
    atomic_store_explicit(&holder->state->word, 1, memory_order_relaxed);
    memset(&holder->state
        ->part, 0, 1);
    holder->state->other->one += 1;
    holder->state->part.borrowed = NULL;
}
""".replace("    ", "\t")
        self.assertEqual(wrong_writes([header], {"c.c": good}), [])
        self.assertEqual(wrong_writes([header], {"c.c": bad}), [
            "c.c: part.borrowed of b.c", "c.c: part.one of b.c",
            "c.c: part.own of b.c", "c.c: part.two of b.c",
            "c.c: state.part of a.c", "c.c: state.word of a.c"])
        self.assertEqual(wrong_writes([header], {"b.c": bad}), [
            "b.c: state.part of a.c", "b.c: state.word of a.c"])


if __name__ == "__main__":
    unit.main()
