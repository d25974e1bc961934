"""One list of what the study of 2011 found best: its Table II as it was
published, the sweep that varies it, and the profile that applies it.

Where one of them has another value, it says so by the words of OTHERWISE.
"""

import re
import unittest

import unit
from trials.record import claims, sweep

SWEEP = unit.ROOT / "results/datamation-2011.sweep"
PROFILES = unit.ROOT / "tune/profiles"
KNOBS = unit.ROOT / "tune/knobs"
OTHERWISE = "not the published value"


def same(value):
    return f"{value:g}"


def kilohertz(gigahertz):
    """3.07 GHz was the highest that the CPU of the study had."""
    return "max" if gigahertz == 3.07 else f"{gigahertz * 1e6:.0f}"


def kibibytes(sectors):
    return same(sectors / 2)


def network(mtu):
    """1500 is what a network of 1 Gbit/s has by itself."""
    return "1G" if mtu == 1500 else f"1G-mtu-{mtu:g}"


# The rows of Table II by the beginning of their claims' names, which end in
# -levels: the parameter of the sweep, and a level as it stands there; None: the
# levels are words.
ROWS = {
    "clock": ("tune.cpu-frequency", kilohertz),
    "memory-clock-set": ("machine.ram-frequency", same),
    "disks-used": ("machine.raid-disks", same),
    "stripe": ("machine.raid-chunk", same),
    "look-ahead": ("tune.drive-look-ahead", None),
    "read-ahead": ("tune.read-ahead", kibibytes),
    "placement": ("machine.disk-placement", None),
    "network": ("machine.network", None),
    "forwarding": ("machine.switch-forwarding", None),
    "mtu-10g": ("tune.mtu", same),
    "mtu-1g": ("machine.network", network),
    "coalescing": ("tune.nic-coalescing", same),
    "txqueuelen": ("tune.tx-queue-length", same),
    "msi": ("machine.msi", None),
}


def level_in(value):
    """The level in a value of several fields, as adaptive-rx? off rx-usecs 0.
    """
    found = re.search(r"rx-usecs\?? (\d+)", value)
    return found[1] if found else value


def says_otherwise(*texts):
    return any(OTHERWISE in text for text in texts if text)


def differences_of_row(values, parameter, level):
    """What of a claim's values the parameter does not have."""
    found = []
    best = level(values["best"]) if "best" in values else None
    if best not in (None, level_in(parameter.reference)):
        found.append(f"{parameter.name}: reference {parameter.reference}, "
                     f"published {best}")
    found += [f"{parameter.name}: no {missing}" for missing in sorted(
        set(map(level, values.values())) - set(map(level_in,
                                                   parameter.values)))]
    return [] if says_otherwise(parameter.reason, parameter.source) else found


def differences_of_table(claims, parameters):
    """Both as dicts by name."""
    found = []
    for row, (name, level) in ROWS.items():
        if name not in parameters or f"{row}-levels" not in claims:
            found.append(f"{row}: is not in both")
        elif level:
            found += differences_of_row(claims[f"{row}-levels"]["values"],
                                        parameters[name], level)
    return found


def lines_of_profile(name):
    """{KNOB: (value, texts)} of the last line of each knob."""
    found, knob = {}, None
    for line in (PROFILES / f"{name}.profile").read_text().splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "include":
            found.update(lines_of_profile(rest.strip()))
        elif word in ("set", "try"):
            knob, _, value = rest.partition(" ")
            found[knob] = (value.strip(), [])
        elif word in ("because", "source") and knob:
            found[knob][1].append(rest.strip())
    return found


def differences_of_profile(lines, parameters):
    found = []
    for parameter in parameters.values():
        if parameter.kind != "tune":
            continue
        value, texts = lines.get(parameter.short_name, ("absent", []))
        if level_in(value) != level_in(parameter.reference) \
                and not says_otherwise(*texts):
            found.append(f"{parameter.name}: {parameter.reference}, in the "
                         f"profile {value}")
    return found


class Agree(unittest.TestCase):
    def setUp(self):
        found = sweep.load(str(SWEEP))
        self.parameters = {p.name: p for p in found.parameters}
        self.claims = {claim["id"]: claim for claim
                       in claims.load("datamation-2011")["claims"]}

    def test_all_rows_have_reasons_and_knobs(self):
        self.assertEqual(len(ROWS), 14)
        for parameter in self.parameters.values():
            self.assertTrue(parameter.reason, parameter.name)
            self.assertTrue(parameter.source, parameter.name)
            if parameter.kind == "tune":
                knob = KNOBS / f"{parameter.short_name}.sh"
                self.assertTrue(knob.exists(), parameter.name)

    def test_sweep_has_the_table(self):
        self.assertEqual(
            differences_of_table(self.claims, self.parameters), [])

    def test_profile_has_the_references(self):
        self.assertEqual(differences_of_profile(
            lines_of_profile("reference"), self.parameters), [])

    def test_differences_are_seen(self):
        for text, want in (
                ("9000 | 1500", []),
                ("1500 | 9000", ["tune.mtu: reference 1500, published 9000"]),
                ("9000 | 1400", ["tune.mtu: no 1500"]),
                (f"1500 | 9000\n  source {OTHERWISE}", [])):
            parameter = sweep.parse(f"tune.mtu {text}").parameters[0]
            self.assertEqual(differences_of_row(
                {"best": 9000, "a": 1500}, parameter, same), want)
        parameters = {"tune.mtu": sweep.parse("tune.mtu 9 | 1").parameters[0]}
        for value, texts, count in (("9", [], 0), ("1", [], 1),
                                    ("1", [OTHERWISE], 0)):
            self.assertEqual(len(differences_of_profile(
                {"mtu": (value, texts)}, parameters)), count)
        self.assertEqual(len(differences_of_profile({}, parameters)), 1)


if __name__ == "__main__":
    unit.main()
