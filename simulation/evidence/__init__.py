"""What the fleet finds out by itself, and at what price: probes, drift and judged quality in virtual time."""
