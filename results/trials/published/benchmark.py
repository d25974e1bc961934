"""The benchmark of the documents of 2011, and what a study has of it."""

RECORDS, RECORD_BYTES = 1_000_000, 100
# Of their cluster.
NODES = 16


def is_whole(study) -> bool:
    design = study.design
    return (design["records"], design["record_bytes"]) \
        == (RECORDS, RECORD_BYTES)


def is_part(study) -> bool:
    """Fewer nodes, each of which sorts what one of the cluster's did."""
    design = study.design
    count = len(design["hosts"] or ())
    return design["record_bytes"] == RECORD_BYTES and 0 < count < NODES \
        and design["records"] * NODES == RECORDS * count
