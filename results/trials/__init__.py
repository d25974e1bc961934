"""What blinktrial and blinkreport are made of.

The modules stand on floors, as the sources of the programs do: an import goes
down or sideways, never up.  tests/unit/trial_floors.txt is what a test enforces.

    3  wholes     session runner progress summary    run the trials of a design
                  machine cluster       where they take place
                  study                 all that a report shows, computed once
                  table export gate     as text, as other formats, as a verdict
                  plots page            as pictures, as one HTML page; with what
                                        these are made of
                  characterise          what the machine itself is worth
                  traits trait_table trait_plots trait_page    all that is shown
                                        of that; as text, pictures, a page
    2  machine    record                trials on disk, line by line
                  programs sorter watch verdict    one timed run, and was it
                                        right
                  inputs ballast residency disks conditions    what a scenario
                                        asks of the machine
                  counters environment ethernet    what the machine did, and
                                        what it is
                  agent tuning          the same on nodes; blinktune
    1  pure       options               what was asked for
                  sweep design          what to vary, and in which order
                  racing                which variants have lost
                  documents             JSON, read with suspicion
                  schema                is a record what it should be
                  statistics modes sequence    what times say by themselves
                  comparison            what they say against others
    0  base       failure units

A module of floor 1 may read a file that it is told of; it starts no process and
asks the machine nothing.
"""
