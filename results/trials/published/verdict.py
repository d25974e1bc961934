"""What a published figure and ours say of each other, in a few words."""

# Within this, figures of two machines are the same.
SAME = 0.05


def of(claim, answer) -> str:
    published = claim.get("values", claim.get("value"))
    if answer.value is None or published is None:
        return answer.by
    if isinstance(published, str):
        return "equal" if answer.value == published else "differs"
    if isinstance(published, dict):
        return _of_all(published, answer.value)
    if not answer.shown:
        return "no effect shown"
    if claim["statistic"] == "difference":
        return _of_effects(claim, answer.value)
    return _factor(published, answer.value)


def _of_all(published, ours):
    """From the least to the largest factor of what both have."""
    factors = [ours[label] / value for label, value in published.items()
               if value and label in ours]
    if not factors:
        return "nothing alike"
    least, most = min(factors), max(factors)
    if _times(least) == _times(most):
        return _times(least)
    return f"{_short(least)} to {_short(most)} times"


def _of_effects(claim, ours):
    """A published 0 tells the sign alone, if its bound is "above"."""
    published, bound = claim["value"], claim.get("bound")
    if published == 0 and bound != "above":
        return "effect shown"
    if bound == "below" and abs(ours) <= published:
        return "within the bound"
    if ours < 0 <= published or published < 0 < ours:
        return "opposite sign"
    if published == 0:
        return "same sign"
    return _factor(abs(published), abs(ours))


def _factor(published, ours):
    if published == ours:
        return "equal"
    return _times(ours / published) if published else "none published"


def _times(factor):
    if abs(factor - 1) <= SAME:
        return "the same"
    if 0 < factor < 0.01:
        return f"1/{_short(1 / factor)}"
    return f"{_short(factor)} times"


def _short(factor):
    return f"{factor:,.0f}" if 100 <= factor < 1e6 else f"{factor:.3g}"
