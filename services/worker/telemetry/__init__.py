"""What this machine says about itself: every field readable or None with its reason, never 0 for "I do not know"."""
