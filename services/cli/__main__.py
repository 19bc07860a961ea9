"""The entry point of ``headrace``: run a command, end with its exit code.

Answers "how does it end?". An error of ours is one line with its way out, never a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from schemas.errors import HeadraceError
from services.cli.app import app
from services.cli.exits import CommandFailed, Exit
from services.cli.output import complain
from services.cli.usage import Mistyped, mistyped


def run(arguments: Sequence[str]) -> int:
    """The exit code of one command line."""
    try:
        return int(app(args=list(arguments), prog_name="headrace", standalone_mode=False) or Exit.OK)
    except Mistyped as error:
        if str(complaint := mistyped(error)):
            complain(complaint, as_json="--json" in arguments)
        return Exit.USAGE
    except SystemExit as end:
        return int(end.code or 0) if not isinstance(end.code, str) else Exit.FAILED
    except HeadraceError as error:
        complain(error, as_json="--json" in arguments)
        return error.code if isinstance(error, CommandFailed) else Exit.FAILED
    except (KeyboardInterrupt, typer.Abort):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return Exit.OK


def main() -> None:
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
