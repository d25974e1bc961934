"""What all pictures have in common: style, axes, labels, points."""
