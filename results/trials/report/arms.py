"""What the names of arms stand for: the commands, and what is run beside them.
"""

BESIDE = ("setup", "prepare", "conclude", "cleanup")


def named(design) -> list[tuple[str, dict]]:
    """Each command of a design once, with its first name."""
    found = {}
    for configuration in design["configurations"]:
        command = configuration.get("command")
        if command:
            found.setdefault(str(command), (configuration["name"], command))
    return list(found.values())


def lines(design) -> list[tuple[str, str]]:
    """A name and words for what the names of arms do not tell."""
    arms = named(design)
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


def table(design) -> tuple[list, list]:
    """The heads and the rows of all arms, without columns that are empty."""
    arms = named(design)
    used = [name for name in BESIDE
            if any(command[name] for _, command in arms)]
    return ["configuration", "command", *used], [
        [name, command["text"], *(command[beside] or "" for beside in used)]
        for name, command in arms]


def values(design, name) -> dict:
    """The values of a configuration's command; sorts have none."""
    found = next(c for c in design["configurations"] if c["name"] == name)
    return (found.get("command") or {"values": {}})["values"]
