"""What a cluster of such machines would take, beside what was measured."""
