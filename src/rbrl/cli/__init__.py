"""The command line, which needs the extra `cli`."""

import sys
from collections.abc import Sequence

from rbrl._common.environment import explain_import_error


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `rbrl`; exit with 0, 1 if a run failed, or 2 if the call or its input was wrong.

    With the environment variable RBRL_DEBUG, an error shows its traceback.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments after `rbrl`. Default: the arguments of the process.
    """
    try:
        from rbrl.cli import app
    except ImportError as error:
        if (reason := explain_import_error(error, "cli", "The command line")) is error:
            raise
        sys.stderr.write(f"rbrl: {reason}\n")
        raise SystemExit(2) from None
    app.run(arguments)
