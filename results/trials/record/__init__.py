"""What was planned, and what was measured, on disk and line by line."""
