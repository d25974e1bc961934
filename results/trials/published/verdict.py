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
        return _of_effects(published, answer.value)
    return _factor(published, answer.value)


def _of_all(published, ours):
    """From the least to the largest factor of what both have."""
    factors = [ours[label] / value for label, value in published.items()
               if value and label in ours]
    if not factors:
        return "nothing alike"
    ends = dict.fromkeys(map(_times, (min(factors), max(factors))))
    return " to ".join(ends)


def _of_effects(published, ours):
    if published * ours < 0:
        return "opposite sign"
    return f"same sign, {_factor(abs(published), abs(ours))}"


def _factor(published, ours):
    if published == ours:
        return "equal"
    return _times(ours / published) if published else "none published"


def _times(factor):
    if abs(factor - 1) <= SAME:
        return "the same"
    if factor >= 1:
        return f"x{factor:.3g}"
    return f"x1/{1 / factor:.3g}" if factor > 0 else "none"
