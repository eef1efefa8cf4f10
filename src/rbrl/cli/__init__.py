"""The command line: each command parses, calls the library and prints."""

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]

STOPPED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `rbrl`; exit with 0, 1 if a run failed, or 2 if the call or its input was wrong.

    With the environment variable RBRL_DEBUG an error shows its traceback.
    """
    from rbrl.cli.app import app

    try:
        app(args=arguments, prog_name="rbrl")
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; nothing more may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        _say("stopped")
        raise SystemExit(STOPPED) from None
    except Exception as error:
        if os.environ.get("RBRL_DEBUG") or not _is_users(error):
            raise
        _say(_line(error))
        raise SystemExit(2) from None


def _is_users(error):
    """Whether the input is to blame, as far as one can tell: a wrong value, a file, a name, a missing extra."""
    return isinstance(error, ValueError | OSError | ImportError) or type(error).__module__.startswith("rbrl")


def _line(error):
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def _say(text):
    print(f"rbrl: {text}", file=sys.stderr)
