"""The claims of the documents with their answers: made once, shown as text or
as a page."""

from dataclasses import dataclass

from scipy import stats

from trials.published import answers
from trials.record import claims

NO_RECORD = "no record here"
# Two effects have one order or the other, by chance as well.
ORDERED_MIN = 3
# How claims are answered, in the order in which they are shown.
GROUPS = (
    ("figures", ("measured", "modelled")),
    ("what tests check", ("checked",)),
    ("what is there", ("built", "other way")),
    ("what has no answer", (NO_RECORD, "not here", "pending", "not built")))


@dataclass(frozen=True)
class Answered:
    """A claim, and the answers to it, of which there may be none."""

    claim: dict
    answers: list

    @property
    def by(self) -> str:
        """The way of the first answer, which the claim is counted by."""
        return self.answers[0].by if self.answers else NO_RECORD


@dataclass(frozen=True)
class Order:
    """Effects that one document ranks, as one record does: the greatest first.
    """

    scenario: str
    statistic: str
    record: str
    published: list
    ours: list
    # Spearman's correlation of the two
    correlation: float


@dataclass(frozen=True)
class Report:
    # (document, [Answered])
    documents: list
    sources: list
    # The programs that were asked for what is modelled.
    programs: object

    @property
    def answered(self) -> list:
        return [each for _, found in self.documents for each in found]

    def counts(self) -> dict:
        """How many claims are answered in each way, the most frequent first."""
        counted = {}
        for each in self.answered:
            counted[each.by] = counted.get(each.by, 0) + 1
        return dict(sorted(counted.items(), key=lambda pair: -pair[1]))


def make(programs, names, paths) -> Report:
    """`names`: the documents; `paths`: the records, and files beside them."""
    sources = [source for source in map(answers.read, paths) if source]
    found = answers.Answers(programs, sources)
    return Report([
        (document, [Answered(claim, found.of(claim))
                    for claim in document["claims"]])
        for document in map(claims.load, names)], sources, programs)


def groups(answered) -> list:
    """(name, the claims that are answered so), those of GROUPS that have any.
    """
    found = [(name, [each for each in answered if each.by in ways])
             for name, ways in GROUPS]
    return [(name, members) for name, members in found if members]


def orders(answered) -> list:
    """An Order of each scenario, statistic and record with several effects."""
    effects = {}
    for each in answered:
        ours = each.claim["ours"]
        if "arm" not in ours or "value" not in each.claim \
                or ours["measure"] != "effect":
            continue
        for answer in each.answers:
            if answer.value is None:
                continue
            effects.setdefault((
                ours["scenario"], ours["statistic"], answer.record), {})[
                    each.claim["id"]] = each.claim["value"], answer.value
    return [_order(*key, found) for key, found in effects.items()
            if len(found) >= ORDERED_MIN]


def _order(scenario, statistic, record, found):
    def ranked(which):
        return sorted(found, key=lambda name: -found[name][which])
    published, ours = zip(*found.values())
    return Order(scenario, statistic, record, ranked(0), ranked(1),
                 stats.spearmanr(published, ours).statistic)
