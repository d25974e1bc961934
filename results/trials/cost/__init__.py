"""What a sort costs: the machine's price, and energy."""
