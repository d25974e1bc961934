"""Bytes a second over time, from timelines of sorts."""
