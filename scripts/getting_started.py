"""Follow docs/getting-started.md literally and paste times and outputs into it.

Every command of the page runs in one empty folder, in an environment that is empty at first; the
package is installed from a wheel of this checkout. A command that fails stops it, and the page
stays as it was. `--check` follows the page without changing it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "getting-started.md"
BLOCK = re.compile(r"```console\n(.*?)```\n(?:\n\*Took .*?\*\n)?", re.S)
SHOWN = 30  # lines of an output
SERVING = 60  # seconds that a server has to print its link


def follow(text: str, folder: Path, environment: dict[str, str]) -> str:
    """Run each command of the page; return the page with what they printed."""

    def run(block: re.Match[str]) -> str:
        lines, seconds = [], 0.0
        for command in re.findall(r"^\$ (.*)$", block[1], re.M):
            print(f"$ {command}", flush=True)
            start = time.perf_counter()
            printed = output_of(command, folder, environment)
            seconds += time.perf_counter() - start
            lines += [f"$ {command}", *shortened(printed, folder)]
        told = "\n".join(line.rstrip() for line in lines)
        return f"```console\n{told}\n```\n\n*Took {seconds:.0f} s.*\n"

    return BLOCK.sub(run, text)


def output_of(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Return what a command prints; a server is stopped when it has said where it is."""
    with tempfile.TemporaryFile("w+") as stream:
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

        def printed() -> str:
            stream.seek(0)
            return stream.read()

        if command.startswith("resight serve"):
            deadline = time.monotonic() + SERVING
            while "http" not in printed() and time.monotonic() < deadline:
                time.sleep(0.2)
            time.sleep(5)  # for what follows the address, and until it listens to signals
            os.killpg(process.pid, signal.SIGINT)
        failed = process.wait() and not command.startswith("resight serve")
        if failed or (command.startswith("resight serve") and "http" not in printed()):
            raise SystemExit(f"failed: {command}\n{printed()}")
        # Ports and keys are others every time.
        shown = re.sub(r"(http://127\.0\.0\.1:)\d+", r"\g<1>54321", printed())
        return re.sub(r"(=)[\w-]{16,}", r"\1...", shown)


def shortened(printed: str, folder: Path) -> list[str]:
    """Return the lines of an output without what is this machine's, the middle of long ones cut."""
    printed = printed.replace(f"{folder}/home", "~").replace(f"{folder}/", "")
    printed = re.sub(r", (Linux|macOS|Windows)-\S+", "", printed)  # this machine's kernel
    lines = printed.strip("\n").splitlines()
    lines = [line.rpartition("\r")[2] for line in lines]
    if len(lines) <= SHOWN:
        return lines
    return [*lines[: SHOWN // 2], "...", *lines[-SHOWN // 2 :]]


def main() -> None:
    """Build a wheel, follow the page, write it."""
    with tempfile.TemporaryDirectory() as place:
        wheels, tools, folder = (Path(place) / name for name in ("wheels", "tools", "empty"))
        home = folder / "home"  # compiled code is kept below it
        for one in (tools, folder, home):
            one.mkdir()
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(wheels)]
        subprocess.run([*build, str(ROOT)], check=True)
        (tools / "python").symlink_to(sys.executable)
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        path = os.pathsep.join([str(folder / "env" / "bin"), str(tools), os.environ["PATH"]])
        kept |= {"PATH": path, "HOME": str(home), "COLUMNS": "100"}
        kept |= {"PIP_FIND_LINKS": str(wheels), "PIP_QUIET": "2"}
        text = follow(PAGE.read_text("utf-8"), folder, kept)
    if "--check" not in sys.argv:
        PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
