"""Training (5): loss, schedule, optimizer and the loop that learns."""
