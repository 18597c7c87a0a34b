"""Who is told of a run while it goes on: each sink gets the same intervals, in a thread of its own."""
