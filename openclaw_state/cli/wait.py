"""status --wait: nothing is answered before there is something to answer."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import StopError, TimedOutError
from ..log.following import Following
from ..report.escape import escape
from .options import Call
from .stream import Vigil


def await_change(call: Call, changed: Callable[[Following, bool], bool]) -> Following:
    """The open log, once `changed` finds what was waited for; it also hears whether the file is new.

    Raises TimedOutError after --timeout, StopError by signal, and what `changed` raises.
    """
    try:
        with Vigil(call) as vigil:
            log = vigil.open()
            with log.waker() as waker:
                while not vigil.patiently(lambda: waker.look(lambda: changed(log, vigil.new_file))):
                    while not vigil.wait(waker):
                        pass
            return log
    except TimedOutError as error:
        error.message = f"nothing changed within {escape(str(call.flag('timeout')))}"
        error.hint = "the same command waits again; nothing is lost between two calls"
        raise
    except StopError as stopped:
        stopped.note = "" if call.flag("quiet") else "stopped: nothing had changed"
        raise
