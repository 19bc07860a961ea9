"""The product's own decisions in virtual time: ``python -m simulation --seed N`` replays a seed exactly."""
