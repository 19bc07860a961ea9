"""What the planner promises of order, counted from the log alone. Pure."""
