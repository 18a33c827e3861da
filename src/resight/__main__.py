"""``python -m resight`` and the installed command."""

import sys

from resight.cli import main


def run() -> None:
    """Exit with the code of the verb."""
    sys.exit(main())


if __name__ == "__main__":
    run()
