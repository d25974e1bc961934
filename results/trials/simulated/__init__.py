"""Exchanges in simulated time: by the number of nodes, beside what was
measured, and as a part of a whole sort."""
