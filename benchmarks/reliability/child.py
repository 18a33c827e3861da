"""A forked child that tells its parent what it has done, so that it can be killed in between."""

from __future__ import annotations

import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from typing import Any

from resight.errors import ResightError

Tell = Callable[[object], None]
State = dict[str, Any]


class Child:
    """Run ``work(tell)`` in a fork: quick, since everything is imported already.

    Parameters
    ----------
    work : callable
        `tell` sends what was acknowledged, as JSON. What `work` returns is sent at its end.
    limit : float
        Seconds of silence after which it hangs and is killed.

    Attributes
    ----------
    alive : bool
        Whether it may still say something.
    told : list
        What was acknowledged so far.
    end : dict or None
        ``{"result": ...}``, ``{"error": ...}`` for an error that a user may see, or
        ``{"traceback": ...}`` for one that nobody should; None if it was killed.
    """

    def __init__(self, work: Callable[[Tell], Any], limit: float = 120.0) -> None:
        self._limit = limit
        self._pipe, theirs = os.pipe()
        self._rest = b""
        self.alive = True
        self.told: list[Any] = []
        self.end: dict[str, Any] | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._pipe)
            _work(work, theirs)
        os.close(theirs)

    def wait(self, for_first: bool = False) -> Child:
        """Read until the child ends, or until it has acknowledged something."""
        while self.alive and not (for_first and (self.told or self.end)):
            if not self.take(self._limit):
                os.kill(self.pid, signal.SIGKILL)
                self.end = {"traceback": f"it hung: no word for {self._limit:g} s"}
                break
        if not for_first:
            os.close(self._pipe)
            os.waitpid(self.pid, 0)
        return self

    def kill(self, delay: float = 0.0) -> Child:
        """Kill it after some seconds and read what it said until then."""
        time.sleep(delay)
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def take(self, seconds: float) -> bool:
        """Read what the child says; False if it says nothing within so many seconds."""
        if not select.select([self._pipe], [], [], seconds)[0]:
            return False
        data = os.read(self._pipe, 65536)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            kind, value = json.loads(line)
            if kind == "end":
                self.end = value
            else:
                self.told.append(value)
        self.alive = bool(data)
        return True


def _work(work: Callable[[Tell], Any], pipe: int) -> None:
    def send(kind: str, value: object) -> None:
        os.write(pipe, json.dumps([kind, value]).encode() + b"\n")

    try:
        send("end", {"result": work(lambda value: send("told", value))})
    except (ResightError, OSError) as error:
        send("end", {"error": str(error)})
    except BaseException:
        send("end", {"traceback": traceback.format_exc()})
    finally:
        os._exit(0)  # nothing of the parent is to be flushed or cleaned up twice
