"""The router: classifies, chooses, holds, releases, serves."""
