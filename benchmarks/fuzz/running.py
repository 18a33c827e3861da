"""One case in a fork: quick, since everything is imported already, and nothing of it stays."""

from __future__ import annotations

import io
import json
import os
import resource
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from benchmarks.fuzz import Case, Verdict
from resight.errors import ResightError

SECONDS = 20.0  # after which a case hangs; all of them are refused within one on an idle machine
MEMORY = 3 * 2**30  # bytes that a case may take beyond what is there already
_BUG = ("Traceback (most recent call last)", "This is a bug", "Exception ignored")


def run_line(words: Sequence[str]) -> Verdict:
    """Run a command line in this process."""
    from resight.cli import main

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code: Any = main(list(words))
        except SystemExit as stop:
            code = stop.code
    return judge_line(code, out.getvalue(), err.getvalue())


def judge_line(code: Any, out: str, err: str) -> Verdict:
    """Judge a command line by its exit code and what it said."""
    if any(mark in err for mark in _BUG) or code not in (0, 1, 2):
        return Verdict("traceback", f"exit code {code}: {err[-2000:]}")
    if code == 0:
        return Verdict("accepted", (out + err)[-500:])
    said = (out + err).strip()
    return Verdict("refused", said[-500:]) if said else Verdict("traceback", "said nothing")


def run_call(call: Callable[[], Any], allowed: tuple[type[BaseException], ...]) -> Verdict:
    """Make a call that must raise one of the errors that users are promised."""
    try:
        answer = call()
    except Exception as error:
        if not isinstance(error, (ResightError, *allowed)):
            raise
        return Verdict("refused", str(error)) if str(error) else Verdict("traceback", "no words")
    return Verdict("accepted", repr(answer)[:500])


def run_case(case: Case) -> Verdict:
    """Run a case in a fork, in an empty folder, with limits on time and memory."""
    pipe, theirs = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        pid = os.fork()
        if pid == 0:
            os.close(pipe)
            _child(case, theirs, folder)
        os.close(theirs)
        try:
            text = _read(pipe, time.monotonic() + SECONDS)
        finally:
            os.close(pipe)
            os.kill(pid, signal.SIGKILL)
            status = os.waitpid(pid, 0)[1]
    if text is None:
        return Verdict("hang", f"no end within {SECONDS:g} s")
    if not text:
        return Verdict("traceback", f"the process died (status {status})")
    return Verdict(*json.loads(text))


def _read(pipe: int, deadline: float) -> bytes | None:
    text = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            return None
        part = os.read(pipe, 65536)
        if not part:
            return text
        text += part


def _child(case: Case, pipe: int, folder: str) -> None:
    try:
        os.setsid()  # its own workers end with it
        os.chdir(folder)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY,) * 2)
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 2)  # what libraries written in C say
        verdict = case.work()
    except BaseException:
        verdict = Verdict("traceback", traceback.format_exc()[-2000:])
    os.write(pipe, json.dumps(verdict).encode())
    os._exit(0)  # nothing of the parent is to be flushed or cleaned up twice
