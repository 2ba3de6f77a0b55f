"""SignalLog: the public Python API on one signal log, OpenClaw's own or the embedded one."""

from __future__ import annotations

from .following import Following
from .keeping import Keeping
from .recording import Recording
from .watching import Watching


class SignalLog(Following, Recording, Watching, Keeping):
    """One signal log, opened for reading or, with change=True, for change.

    Use it as a context manager. Every thread gets its own connection; the queue of notices
    and wakes belongs to this object, as a gateway's belongs to its process. All times are
    epoch ms; methods raise the classes of `openclaw_state.errors`.
    """
