"""stage_sums.py FILE... - the stages that blinksort --json tells of a sort
beyond memory are all that was read and written, and all the time of its threads

Each file is a document of a sort, or of a rank.
"""

import json
import sys

TEAMS = (["bucket"], ["order", "gather", "put"])
wrong = []


def expect(what, got, wanted):
    if got != wanted:
        wrong.append(f"{what}: {got}, not {wanted}")


def bytes_of(stage, passes):
    return sum(one["bytes"] for each in passes for one in each["stages"]
               if one["stage"] == stage)


def check_time(one):
    """Each thread of a team works or waits."""
    for team in TEAMS:
        stages = [stage for stage in one["stages"] if stage["stage"] in team]
        spent = sum(stage["busy_ns"] + sum(wait["ns"] for wait in
                                           stage["waits"].values())
                    for stage in stages)
        if stages:
            expect(f"ns of {team[0]} in {one['pass']}", spent,
                   one["ns"] * stages[0]["workers"])


def check_rank(said, passes):
    own = next(rank for rank in said["ranks"] if rank["rank"] == said["rank"])
    for one, told in zip(passes, own["passes"]):
        expect(f"exchanged in {one['pass']}", bytes_of("exchange", [one]),
               told["sent_bytes"] + told["received_bytes"])
    return own["records_in"] * said["record_size"]


def check(said):
    external, passes = said["external"], said["external"]["passes"]
    input_bytes = said["bytes"]
    left = input_bytes - said["dropped_records"] * said["record_size"]
    for one in passes:
        check_time(one)
        expect(f"read in {one['pass']}", bytes_of("read", [one]),
               one["read_bytes"])
    if "rank" in said:
        input_bytes = check_rank(said, passes)
    else:
        expect("plain bytes", bytes_of("put", passes[:2]),
               external["plain_bytes"])
        expect("passes take longer than the sort",
               sum(one["ns"] for one in passes) >
               said["phases_ns"]["bucket"] + said["phases_ns"]["order"], False)
    if external["merges_inputs"]:
        expect("into buckets", bytes_of("bucket", passes[2:]), input_bytes)
    elif external["way"] != "keys":
        expect("into buckets", bytes_of("bucket", passes[:1]), input_bytes)
    expect("spilled", bytes_of("write", passes[:2]),
           external["spilled_bytes"])
    expect("gathered", bytes_of("gather", passes[2:]), left)
    expect("written", passes[2]["written_bytes"], left)
    expect("handed over", bytes_of("put", passes[2:]),
           bytes_of("write", passes[2:]))


for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        check(json.load(file))
sys.exit("\n".join(wrong) or 0)
