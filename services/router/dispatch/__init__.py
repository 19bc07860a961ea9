"""The dispatcher: the log as state, the live view, the plan, the actions. All pure."""
