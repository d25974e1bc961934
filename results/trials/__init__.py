"""What blinktrial and blinkreport are made of.

The modules stand on floors, as the sources of the programs do: an import goes
down or sideways, never up.  FLOORS below is what a test enforces.

    3  wholes     runner progress       run the trials of a design
                  study                 all that a report shows, computed once
                  table export gate     as text, as other formats, as a verdict
                  plots page            as pictures, as one HTML page
                  characterise          what the machine itself is worth
    2  machine    record                trials on disk, line by line
                  programs sorter       the programs, one timed run of them
                  inputs ballast residency conditions    what a scenario asks
                  counters environment  what the machine did, and what it is
                  agent tuning          the same on nodes; blinktune
    1  pure       sweep design          what to vary, and in which order
                  racing                which variants have lost
                  schema                is a record what it should be
                  statistics comparison
    0  base       failure units

A module of floor 1 may read a file that it is told of; it starts no process and
asks the machine nothing.
"""

FLOORS = {
    "failure": 0, "units": 0,
    "sweep": 1, "design": 1, "racing": 1, "schema": 1,
    "statistics": 1, "comparison": 1,
    "record": 2, "programs": 2, "sorter": 2, "inputs": 2, "ballast": 2,
    "residency": 2, "conditions": 2, "counters": 2, "environment": 2,
    "agent": 2, "tuning": 2,
    "runner": 3, "progress": 3, "study": 3, "table": 3, "export": 3,
    "gate": 3, "plots": 3, "page": 3, "characterise": 3,
}
