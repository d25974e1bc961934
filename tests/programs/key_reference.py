"""Records and keys of any shape drawn at random, and their order by numpy.

Nothing here makes bytes of a key that compare as the key does: numpy reads each
key as a number of its own type, and sorts stably by columns of numbers.
Descending columns are negated.  numpy has no bfloat16, which is the upper half
of a float32.
"""

import itertools

import numpy as np

TYPES = ("u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f16 bf16 f32 f64 u16be u32be "
         "u64be u128be i16be i32be i64be i128be f16be bf16be f32be "
         "f64be").split()
NANS = ("", ":nanlast", ":nanfirst")
KINDS = [kind + nans for kind in TYPES
         for nans in (NANS if "f" in kind else NANS[:1])]
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 64, 100)
LARGE_SIZES = (257, 1000, 4095, 4096, 5000, 70000)
COUNTS = (0, 1, 2, 3, 7, 8, 9, 63, 100, 513, 1000, 1999, 4097)
LARGE_COUNTS = (20481, 50000, 131073)
# The most bytes of an input; those of large counts are few.
INPUT_BYTES = 3 << 20
LARGE_INPUT_BYTES = 10 << 20
KEYS_MAX = 8
SLICE_MAX = 20
# Of floats: the bits of the fraction.
FRACTION_BITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


class Key:
    """OFFSET:LENGTH or OFFSET:TYPE, and maybe :desc."""

    def __init__(self, offset, kind, descending):
        self.offset = offset
        self.kind = kind  # bytes: their number; else one of KINDS
        self.descending = descending
        self.is_bytes = isinstance(kind, int)
        if not self.is_bytes:
            word, _, self.nans = kind.partition(":")
            self.order = ">" if word.endswith("be") else "<"
            self.type = word.removesuffix("be")
            self.letter = self.type.removeprefix("b")[0]
            self.length = length_of(word)

    def option(self):
        """The suffixes in either order."""
        text = f"{self.offset}:{self.kind}"
        if self.descending:
            text += ":desc"
            if self.offset % 2 and not self.is_bytes and self.nans:
                text = text.replace(f":{self.nans}:desc", f":desc:{self.nans}")
        return f"--key={text}"

    def layout(self):
        """Where numpy finds it in a record: [(offset, format)]."""
        if self.is_bytes:
            return [(self.offset, f"({self.kind},)u1")]
        if self.type == "bf16":
            return [(self.offset, f"{self.order}u2")]
        if self.length < 16:
            return [(self.offset, f"{self.order}{self.letter}{self.length}")]
        high, low = (0, 8) if self.order == ">" else (8, 0)
        return [(self.offset + high, f"{self.order}{self.letter}8"),
                (self.offset + low, f"{self.order}u8")]

    def columns(self, fields, descending):
        """Native numbers, which numpy compares as the key is; the first
        weighs most."""
        nans = []
        if self.is_bytes:
            columns = slice_words(fields[0])
        elif self.letter != "f":
            columns = [field.astype(field.dtype.newbyteorder("="))
                       for field in fields]
        elif self.nans:
            values = self.floats(fields[0])
            is_nan = np.isnan(values)
            nans = [is_nan == (self.nans == "nanlast")]
            columns = [np.where(is_nan, values.dtype.type(0), values)]
        else:
            columns = self.total_order(fields[0])
        if descending:
            # ~n is -1 - n, of unsigned numbers the greatest one - n.
            columns = [-column if column.dtype.kind == "f" else ~column
                       for column in columns]
        return nans + columns

    def floats(self, field):
        if self.type == "bf16":
            return (field.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return field.astype(f"=f{self.length}")

    def total_order(self, field):
        """IEEE 754's: NaNs with a sign are below all numbers, others above;
        numbers by value, and -0 before 0; NaNs by their payloads."""
        values = self.floats(field)
        bits = np.ascontiguousarray(field).view(
            field.dtype.str.replace("f", "u")).astype(np.uint64)
        negative = (bits >> np.uint64(8 * self.length - 1)).astype(np.int64)
        sign = 1 - 2 * negative
        is_nan = np.isnan(values)
        mantissa = np.uint64((1 << FRACTION_BITS[self.type]) - 1)
        payload = (bits & mantissa).astype(np.int64)
        return [np.where(is_nan, sign, 0),
                np.where(is_nan, values.dtype.type(0), values),
                np.where(values == 0, sign, 0),
                np.where(is_nan, sign * payload, 0)]


def slice_words(rows):
    """Slices of bytes as columns of big-endian numbers of eight of them."""
    count, length = rows.shape
    padded = np.zeros((count, (length + 7) // 8 * 8), np.uint8)
    padded[:, :length] = rows
    return list(padded.view(">u8").astype(np.uint64).T)


def length_of(kind):
    """Bytes of such a number."""
    word = kind.partition(":")[0]
    return int(word.removesuffix("be").lstrip("buif")) // 8


def key_columns(raw, size, keys, reverse):
    """Columns of numbers that compare as the records' keys do; the first
    weighs most."""
    places = [key.layout() for key in keys]
    flat = list(itertools.chain(*places))
    record = np.dtype({"names": [f"f{i}" for i in range(len(flat))],
                       "offsets": [offset for offset, _ in flat],
                       "formats": [form for _, form in flat],
                       "itemsize": size})
    table = raw.reshape(-1).view(record)
    columns, used = [], 0
    for key, place in zip(keys, places):
        fields = [table[f"f{used + i}"] for i in range(len(place))]
        used += len(place)
        columns += key.columns(fields, key.descending != reverse)
    return columns


def key_order(columns, unique=None):
    """The numbers of the records in the order in which they must come out; of
    those with equal keys all, or only the "first" or the "last"."""
    order = np.lexsort(columns[::-1])
    if unique and len(order):
        differ = np.zeros(len(order) - 1, bool)
        for column in columns:
            differ |= column[order[1:]] != column[order[:-1]]
        is_kept = np.ones(len(order), bool)
        if unique == "last":
            is_kept[:-1] = differ
        else:
            is_kept[1:] = differ
        order = order[is_kept]
    return order


def expected(raw, size, keys, reverse, unique=None):
    """The records, as uint8 rows, in that order."""
    if len(raw) == 0:
        return raw
    return raw[key_order(key_columns(raw, size, keys, reverse), unique)]


def first_disorder(raw, size, keys, reverse):
    """The number of the first record that belongs before the one before it, or
    None."""
    if len(raw) < 2:
        return None
    undecided = np.ones(len(raw) - 1, bool)
    less = np.zeros(len(raw) - 1, bool)
    for column in key_columns(raw, size, keys, reverse):
        less |= undecided & (column[1:] < column[:-1])
        undecided &= column[1:] == column[:-1]
    return int(np.argmax(less)) + 1 if less.any() else None


# --- inputs -----------------------------------------------------------------

def special_numbers(key):
    """As many bytes as the key has, in rows: corners of its type."""
    bits = 8 * key.length
    if key.letter == "f":
        sign = 1 << (bits - 1)
        one = 1 << FRACTION_BITS[key.type]
        infinity = sign - one
        corners = (0, 1, one - 1, one, sign // 2 - one, sign // 2 - one // 2,
                   infinity - 1, infinity, infinity + 1,
                   infinity + one // 2 - 1, infinity + one // 2, sign - 1)
        numbers = [n | s for n in corners for s in (0, sign)]
    else:
        half = 1 << (bits - 1)
        corners = (0, 1, 2, 255, 256, half - 1, half, half + 1)
        numbers = [n % (1 << bits) for c in corners for n in (c, -c, c - 2)]
    order = "big" if key.order == ">" else "little"
    return np.array([list(n.to_bytes(key.length, order)) for n in numbers],
                    np.uint8)


def any_records(rng, count, size):
    """Uniform bytes; few bits; few bytes; few records; all equal."""
    raw = rng.integers(0, 256, (count, size), np.uint8)
    style = rng.integers(0, 6)
    if style == 1:
        raw &= 0x83
    elif style == 2:
        raw = np.array([0, 0x7f, 0x80, 0xff], np.uint8)[raw % 4]
    elif style == 3 and count:
        raw = raw[rng.integers(0, 1 + count // 20, count)]
    elif style == 4 and count:
        raw[:] = raw[0]
    elif style == 5:
        raw = raw % 95 + 32
    return raw


def small_numbers(rng, count, key):
    """Numbers near 0, most of them very near; also as floats."""
    numbers = np.minimum(rng.zipf(1.3, count), 10 ** 6).astype(np.int64)
    if key.letter != "u":
        numbers *= rng.integers(0, 2, count) * 2 - 1
    if key.letter == "f":
        if key.type == "bf16":
            wide = (numbers / 8).astype(np.float32).view(np.uint32)
            values = (wide >> np.uint32(16)).astype("<u2")
        else:
            with np.errstate(over="ignore"):  # of float16
                values = (numbers / 8).astype(f"<f{key.length}")
        rows = values.view(np.uint8).reshape(count, key.length)
    else:
        low = numbers.astype("<i8").view(np.uint8).reshape(count, 8)
        high = np.where(numbers < 0, 255, 0).astype(np.uint8)
        rows = np.concatenate([low, np.repeat(high[:, None], 8, 1)],
                              1)[:, :key.length]
    return rows[:, ::-1] if key.order == ">" else rows


def put_numbers(rng, raw, key):
    """Into the key's place of some or all records; keys that overlap it get
    what they get."""
    count = len(raw)
    if key.is_bytes or count == 0 or rng.integers(0, 3) == 0:
        return
    place = slice(key.offset, key.offset + key.length)
    if rng.integers(0, 2):
        choice = special_numbers(key)
        rows = choice[rng.integers(0, len(choice), count)]
    else:
        rows = small_numbers(rng, count, key)
    some = rng.random(count) < rng.choice([0.1, 0.9, 1.0])
    raw[some, place] = rows[some]


def any_key(rng, size):
    descending = bool(rng.integers(0, 3) == 0)
    fitting = [kind for kind in KINDS if length_of(kind) <= size]
    if rng.integers(0, 4) == 0:
        offset = int(rng.integers(0, size))
        most = min(SLICE_MAX, size - offset)
        return Key(offset, int(rng.integers(1, most + 1)), descending)
    key = Key(0, str(rng.choice(fitting)), descending)
    key.offset = int(rng.integers(0, size - key.length + 1))
    return key


def keyed_records(rng, size, count, keys):
    """Any records, with numbers of the keys' types where these lie."""
    raw = any_records(rng, count, size)
    # The first key last, so that no other one overwrites it.
    for key in reversed(keys):
        put_numbers(rng, raw, key)
    return raw


class Input:
    """Records, and the options that describe them."""

    def __init__(self, rng, size, count, keys, reverse):
        self.size, self.keys, self.reverse = size, keys, reverse
        self.unique = "first" if rng.integers(0, 4) == 0 else None
        raw = keyed_records(rng, size, count, keys)
        if rng.integers(0, 8) == 0:
            raw = np.ascontiguousarray(
                expected(raw, size, keys, bool(rng.integers(0, 2))))
        self.raw = raw

    def options(self):
        return [f"--record-size={self.size}",
                *(key.option() for key in self.keys),
                *(["--reverse"] if self.reverse else []),
                *(["--unique"] if self.unique else [])]

    def expected(self):
        return expected(self.raw, self.size, self.keys, self.reverse,
                        self.unique)


def any_input(rng):
    size = int(rng.choice(SIZES))
    count = int(rng.choice(COUNTS))
    bytes_max = INPUT_BYTES
    dice = rng.integers(0, 40)
    if dice < 10:
        size = int(rng.integers(1, 201))
    elif dice == 10:
        size = int(rng.choice(LARGE_SIZES))
    elif dice <= 12:
        count = int(rng.choice(LARGE_COUNTS))
        bytes_max = LARGE_INPUT_BYTES
    count = min(count, bytes_max // size)
    keys = [any_key(rng, size)
            for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 5, KEYS_MAX]))]
    return Input(rng, size, count, keys, bool(rng.integers(0, 4) == 0))
