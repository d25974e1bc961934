"""What the names of commands stand for: their words, and what is run beside
them.
"""

from trials.record import design as designs

BESIDE = ("setup", "prepare", "conclude", "cleanup")


def lines(design) -> list[tuple[str, str]]:
    """A name and words for what the names of arms do not tell."""
    arms = designs.arms(design)
    found = [("command", f"{name}: {command['text']}")
             for name, command in arms if command["text"] != name]
    for beside in BESIDE:
        texts = {command[beside] for _, command in arms}
        if len(texts) == 1:
            found += [(beside, text) for text in texts if text]
            continue
        found += [(beside, f"{name}: {command[beside]}")
                  for name, command in arms if command[beside]]
    return found


def table(design) -> tuple[str, list]:
    """The headings and the rows of all arms, without columns that are empty."""
    arms = designs.arms(design)
    used = [name for name in BESIDE
            if any(command[name] for _, command in arms)]
    return "|".join(["configuration", "command", *used]), [
        [name, command["text"], *(command[beside] or "" for beside in used)]
        for name, command in arms]


def values(design, name) -> dict:
    """The values of a configuration's command; sorts have none."""
    command = designs.configuration(design, name).get("command")
    return command["values"] if command else {}
