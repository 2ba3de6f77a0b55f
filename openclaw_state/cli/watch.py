"""watch: the live board on a terminal; in a pipe, the events as they come."""

from __future__ import annotations

import gc
import select
import time
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.listing import EventFilter, SessionFilter
from ..errors import BusyError, NoDatabaseError, StopError
from ..host.liveness import Lease, find_gateway, read_lease
from ..model import ON_GAP, Glance
from ..report.board import Place, Scene, Size, View, draw, until_change
from ..report.views import EVENT_FIELDS
from ..timespec import now_ms
from .look import require_known
from .options import Call, Result, Stream, command
from .steering import MOST_ROWS, press, settle

if TYPE_CHECKING:
    from ..core.waker import Waker
    from ..log.following import Following
    from .beside import Beside
    from .screen import Screen

# Where there is no board: how many older events come first.
LINES = 10
# No more than ten frames a second, however fast a log grows.
FRAME_S = 0.1
# A gateway may die without a word in its database; a missing or locked one is tried again.
GATEWAY_S = 5.0
RETRY_S = 0.5
# Keys are not answered while a look waits for a lock.
LOCK_WAIT_MS = 200
LOCKED = "locked by another process, trying again"


@command("agent", fields=EVENT_FIELDS)
def watch(
    call: Call,
    key: Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="Only these sessions.")] = None,
    monitor: Annotated[
        bool, typer.Option("--monitor", help="Run the upstream monitor beside it, once a minute.")
    ] = False,
) -> Result | Stream:
    """Show sessions, pending notices and newest events, live; in a pipe, follow the events."""
    keys = tuple(key or ())
    beside = _monitor_of(call) if monitor else None
    if call.format != "text" or not _can_show(call):
        from .follow import Request, follow

        chosen = EventFilter(session_keys=keys, agent_id=call.agent)
        return follow(call, Request(chosen, None, None, LINES, None, ON_GAP[0], None, beside=beside))
    from .screen import Screen, Stopped

    source = Source(call, keys, beside)
    try:
        with beside or nullcontext():
            Board(source, call, Screen(call.terminal)).run()
    except Stopped as stopped:
        raise StopError(stopped.number) from stopped
    return Result("watch", {}, log=source.log)


def _monitor_of(call: Call) -> Beside:
    from .beside import Beside

    return Beside(call)


def _can_show(call: Call) -> bool:
    """Is there a terminal that can place text, and a system that lets us have single keys?"""
    if not call.terminal.stdout.isatty() or call.terminal.environ.get("TERM", "") in ("", "dumb"):
        return False
    from importlib.util import find_spec

    return find_spec("termios") is not None


class Source:
    """The database as the board sees it, while it is not there yet and while it is locked, too."""

    def __init__(self, call: Call, keys: tuple[str, ...], beside: Beside | None = None) -> None:
        """Open the database; only the tool's own may be missing. Raises StateError."""
        self._call = call
        self._beside = beside
        self._keys = keys
        self._location = call.location()
        self._lease: Lease | None = None
        self.last = Glance()
        self._filter = ""
        self._trouble: str | None = None
        self._waker: Waker | None = None
        self.log = self._open(keys)

    def _open(self, known: Iterable[str] = ()) -> Following | None:
        try:
            log = self._call.follow(self._location, lock_wait_ms=LOCK_WAIT_MS)
        except NoDatabaseError:
            if self._location.embedded:
                return None
            raise
        for key in known:
            require_known(log, key)
        self._waker = self._call.terminal.opened.enter_context(log.waker())
        return log

    def look(self, view: View, size: Size) -> None:
        """Read anew what the view shows of the database, in one short transaction.

        A locked database leaves what was read last, and the reason; any other error is raised.
        """
        try:
            log = self.log = self.log or self._open()
            if log is not None and self._waker is not None:
                self._waker.look(lambda: self._read(log, view, size))
            self._trouble = None
        except BusyError:
            self._trouble = LOCKED

    def _read(self, log: Following, view: View, size: Size) -> None:
        agent, containing = self._call.agent, view.filter or None
        chosen = SessionFilter(agent, self._keys, containing)
        wanted = EventFilter(session_keys=self._keys, agent_id=agent, containing=containing)
        if view.opened:
            wanted = EventFilter(session_keys=view.opened[:1], agent_id=view.opened[1])
        if view.paused:
            wanted = wanted._replace(through=self.last.newest)
        with log.snapshot():
            found = log.glance(
                chosen,
                wanted,
                most_sessions=min(MOST_ROWS, view.row + 2 * size.rows),
                most_behind=size.rows,
                most_events=min(MOST_ROWS, view.scroll + size.rows),
            )
            self._lease = log.inspect(read_lease) if self._location.state_dir else None
        # Whoever has paused may still look around in what stands still.
        kept = view.paused and self._filter == view.filter
        self.last = self.last._replace(events=found.events) if kept else found
        self._filter = view.filter

    def scene(self, now: int) -> Scene:
        """What was read last, as it stands at this time (epoch ms)."""
        return Scene(self.last, self._place(now), now, self._call.utc)

    def _place(self, now: int) -> Place:
        home = self._call.terminal.environ.get("HOME", "").rstrip("/")
        path = self._location.path
        if home and path.startswith(home + "/"):
            path = "~" + path.removeprefix(home)
        place = Place(path, self._location.via, trouble=self._trouble, waiting=self.log is None)
        if self._beside is not None:
            self._beside.take()
            place = place._replace(monitor=self._beside.words)
        if self._location.state_dir is None:
            own = self._location.embedded or (self.log is not None and self.log.embedded)
            return place._replace(detail="the tool's own file" if own else "a file on its own")
        gateway = find_gateway(self._location.state_dir, self._lease, now=now)
        return place._replace(gateway=gateway.state, detail=gateway.detail)

    def wait(self, timeout_s: float | None, also: list[int]) -> bool:
        """True when the database may have changed, False when a descriptor is readable or time is up."""
        if self._beside is not None:
            also = [*also, self._beside.descriptor]
        if self._waker is None or self._trouble:
            return not select.select(also, (), (), RETRY_S)[0]
        try:
            return self._waker.wait(timeout_s, also)
        except BusyError:
            self._trouble = LOCKED
            return False

    def patience_s(self, scene: Scene) -> float | None:
        """Seconds until this scene may look different though nothing was written."""
        change = until_change(scene)
        waits = [] if change is None else [max(change / 1000, FRAME_S)]
        if self._location.state_dir is not None:
            waits.append(GATEWAY_S)
        return min(waits, default=None)


class Board:
    """The loop: look, draw what differs, wait for the log, a key, a signal or the clock."""

    def __init__(self, source: Source, call: Call, screen: Screen) -> None:
        from ..report.live import Painter

        self._source = source
        self._environ = call.terminal.environ
        self._screen = screen
        self._painter = Painter(color=call.palette.enabled, encoding=call.terminal.stdout.encoding or "ascii")
        self._view = self._looked = View(keyed=screen.has_keys)
        self._size = screen.size()
        self._painted_at = 0.0
        self._now = 0

    def run(self) -> None:
        """Show the board until the person quits or the terminal goes. Raises StateError, Stopped."""
        gc.enable()  # off at the start of every command, because most end soon
        self._look()
        with self._screen.ours():
            scene = self._scene()
            while True:
                self._paint(scene)
                paused = self._view.paused
                patience = None if paused else self._source.patience_s(scene)
                changed = self._source.wait(patience, self._screen.descriptors)
                self._pace()
                resized = self._attend()
                if not self._take_keys():
                    return
                live = not self._view.paused and (changed or scene.place.trouble is not None)
                if live or resized or self._view != self._looked:
                    self._look()
                scene = self._scene()

    def _look(self) -> None:
        self._source.look(self._view, self._size)
        self._view = self._looked = settle(self._view, self._source.last, self._size)

    def _scene(self) -> Scene:
        if not self._view.paused or not self._now:
            self._now = now_ms(self._environ)
        return self._source.scene(self._now)

    def _paint(self, scene: Scene) -> None:
        frame = self._painter.frame(draw(scene, self._view, self._size), self._size)
        if frame:
            self._screen.write(frame)
            self._painted_at = time.monotonic()

    def _pace(self) -> None:
        time.sleep(max(0.0, self._painted_at + FRAME_S - time.monotonic()))

    def _attend(self) -> bool:
        """See to signals; True where the terminal has another size, which one may have announced."""
        if self._screen.attend():
            self._painter.forget()
        size, self._size = self._size, self._screen.size()
        return size != self._size

    def _take_keys(self) -> bool:
        """Steer by the keys pressed since; False when that was the end."""
        keys = self._screen.read_keys()
        if keys is None:
            return False
        for key in keys:
            # A key is meant for what the one before it leads to.
            if self._view != self._looked and not self._view.typing:
                self._look()
            view = press(self._view, key, self._source.last, self._size)
            if view is None:
                return False
            self._view = view
        return True
