"""What the thread groups and timers of a plan ask for, and each slave's part of it."""
