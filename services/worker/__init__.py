"""One worker beside one backend: pulls, claims, runs, tells."""
