"""The ``headrace`` command: composes the services and shows what they know. See ``services/cli/app.py``."""
