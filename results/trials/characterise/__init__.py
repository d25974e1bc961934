"""What the parts of the machine take, measured and shown."""
