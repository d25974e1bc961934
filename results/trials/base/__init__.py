"""Failures, figures as text, JSON that is read with suspicion, our programs."""
