"""``python -m resight`` and the installed command."""

import gc
import sys

from resight.cli import main


def run() -> None:
    """Exit with the code of the verb."""
    code = main()
    # Python would look for unused cycles among all objects at its end, which costs a search more
    # than its ranking. Whatever must be closed is closed before that.
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    run()
