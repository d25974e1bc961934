"""What blinktrial and blinkreport are made of.

Each folder is a layer: an import points to the same folder or to one above it
in this list (tests/unit/test_trial_layers.py).

    base          failures, figures as text, JSON that is not trusted, programs
    statistics    what times say by themselves and against others: summaries,
                  drift, comparisons, races, when a run ends, a gate's verdict
    record        sweep files, designs, and trials on disk, line by line; what
                  documents say of sorts
    machine       what the machine is, how it is set, what it has counted
    scenario      what a scenario asks of the machine, brought about and
                  measured; the records that are sorted; blinktune
    run           blinktrial: its options, a session of trials, the runner, one
                  timed run, of a sorter here or on a cluster or of any command;
                  the gate for two commits
    drawing       what all pictures have in common: style, axes, labels
    report        blinkreport: a study, as text, other formats, pictures and a
                  page; what has changed between two records
    characterise  what the parts of the machine take: measured, and shown as
                  text, pictures and a page
    forecast      what a cluster of such machines would take, from a
                  characterisation, beside what was measured
    rates         bytes a second over time, from a timeline of blinksort's
    published     what documents say of sorts, beside what answers it

A module of base, statistics or record may read a file that the caller names; it
measures nothing of the machine, and only base/programs.py starts processes.
"""
