"""Install what the tests need from Debian's packages: a browser.

Quick when everything is there; says what it does; where it cannot install, the tests that need
the package skip themselves and say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

# Command that must be there -> package that brings it.
NEEDED = {"chromium": "chromium"}
_ONCE = "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends"


def main() -> int:
    """Install what is missing, if this is Debian and we are root; never fail the build."""
    missing = sorted(pack for command, pack in NEEDED.items() if shutil.which(command) is None)
    if not missing:
        return 0
    names = " ".join(missing)
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        print(
            f"missing: {names}. Browser tests will be skipped; to run them: sudo {_ONCE} {names}",
            file=sys.stderr,
        )
        return 0
    print(f"installing {names} with apt-get, for the browser tests", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *missing]
    for step in (["apt-get", "update", "--quiet"], install):
        done = subprocess.run(step, env=environment, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            print(
                f"`{' '.join(step)}` failed ({done.returncode}): browser tests will be skipped",
                file=sys.stderr,
            )
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
