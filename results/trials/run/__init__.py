"""Trials of a design, run one after the other on this machine or a cluster."""
