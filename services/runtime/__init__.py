"""What any Headrace process needs: bus, feed, take, embedded server, settings, clock, lifecycle, logs."""
