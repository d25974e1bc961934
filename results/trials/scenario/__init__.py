"""What a scenario asks of the machine, brought about and measured."""
