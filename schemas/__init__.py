"""The words every part of Headrace shares: events, subjects, statistics. Standard library and msgspec only, pure."""
