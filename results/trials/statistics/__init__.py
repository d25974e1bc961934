"""What times say by themselves and against others; asks the machine nothing."""
