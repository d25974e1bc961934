"""What a machine costs, and what of its time a cent buys, by a price list as
blinktrial(1) describes it and the rules of PennySort (sortbenchmark.org).
"""

import re
from decimal import Decimal

from trials.base.failure import FILE, Failure
from trials.cost import csv_lines

LIFE_S = 94_608_000
COLUMNS = ("part", "count", "price", "currency")
COUNT_MAX = 1_000_000
_PRICE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,4})?")


def read(path: str) -> dict:
    """The list as it is recorded; prices are decimal texts, which are exact.
    Raises Failure."""
    lines = csv_lines.read(path)
    where, head = next(lines, (path, []))
    if not head:
        raise Failure(path, "has no price", FILE)
    columns = csv_lines.columns(where, head, COLUMNS)
    parts, currency = [], None
    for where, fields in lines:
        if len(fields) > len(columns):
            raise Failure(where, f"has {len(fields)} fields, for "
                          f"{len(columns)} columns", FILE)
        part = _part(where, dict(zip(columns, fields)))
        found = part.pop("currency")
        if currency not in (None, found):
            raise Failure(where, f"is in {found}, and lines before it in "
                          f"{currency}", FILE)
        currency = found
        parts.append(part)
    if not parts:
        raise Failure(path, "has no price", FILE)
    whole = total(parts)
    if not whole:
        raise Failure(path, "has a total of 0: a cent would buy all time", FILE)
    return {"file": path, "currency": currency, "total": str(whole),
            "seconds_per_cent": seconds_per_cent(whole), "parts": parts}


def _part(where, fields):
    missing = next((name for name in COLUMNS if not fields.get(name)), None)
    if missing:
        raise Failure(where, f"has no {missing}", FILE)
    part, count, price, currency = (fields[name] for name in COLUMNS)
    if not re.fullmatch("[0-9]{1,7}", count) or not (
            1 <= int(count) <= COUNT_MAX):
        raise Failure(where, f"count '{count:.40}' is not a number from 1 to "
                      f"{COUNT_MAX}", FILE)
    if not _PRICE.fullmatch(price):
        raise Failure(where, f"price '{price:.40}' is not a number such as "
                      "39.99", FILE)
    if not re.fullmatch("[A-Z]{3}", currency):
        raise Failure(where, f"currency '{currency:.40}' is not a code such "
                      "as USD", FILE)
    return {"part": part, "count": int(count), "price": price,
            "currency": currency}


def total(parts: list[dict]) -> Decimal:
    return sum((part["count"] * Decimal(part["price"]) for part in parts),
               Decimal(0))


def seconds_per_cent(whole: Decimal) -> float:
    """The seconds for which one may use a machine of this price for a cent."""
    return LIFE_S / float(100 * whole)
