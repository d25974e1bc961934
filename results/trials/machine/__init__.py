"""What the machine is, how it is set, and what it has counted."""
