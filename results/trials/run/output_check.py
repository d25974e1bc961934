"""Is an output the sorted input?  By what blinkval says of it."""

from dataclasses import dataclass

from trials.base.programs import first_line


@dataclass(frozen=True)
class OutputCheck:
    good: bool
    message: str | None
    checksum: str | None


def of_report(done, records: int, checksum: str) -> OutputCheck:
    """The verdict of a blinkval that has run over the whole output; what the
    input has must be in it."""
    said = dict(line.split(": ", 1) for line in done.stderr.splitlines()
                if ": " in line)
    found = said.get("Checksum")
    if done.returncode != 0:
        return OutputCheck(False, complaint(done.stderr), found)
    if said.get("Records") != str(records):
        return OutputCheck(
            False, f"{said.get('Records')} records in the output, "
            f"{records} in the input", found)
    if found != checksum:
        return OutputCheck(
            False, f"checksum {found}, {checksum} of the input", found)
    return OutputCheck(True, None, found)


def complaint(report: str) -> str | None:
    """What blinkval complains of stands at the end, after figures."""
    errors = [line for line in report.splitlines()
              if line.startswith("ERROR - ")]
    return errors[0].removeprefix("ERROR - ") if errors else first_line(report)
