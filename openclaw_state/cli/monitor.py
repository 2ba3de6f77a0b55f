"""monitor: look once, or again and again, for what people wrote in adopted sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NamedTuple

import typer

from ..core.opening import is_blank
from ..errors import ExitStatus, NotFoundError, StateError, TimedOutError, UpstreamError, UsageError
from ..log.reading import Reading
from ..report.escape import escape
from ..report.jsonout import check_fields
from ..report.lines import notice_lines
from ..report.monitoring import (
    LINK_FIELDS,
    TICK_FIELDS,
    blocked_words,
    counts,
    link_lines,
    link_view,
    summary,
)
from ..report.views import notice_view
from ..results import LinkReport, RowReport, Tick, Verdict
from ..timespec import parse_duration
from ..upstream.explaining import explain as explained
from .hooks import Runner, deliverer, delivery
from .look import style_of
from .notices import GATEWAY_PROGRAM
from .options import Call, Result, Stream, command
from .overview import gateway_view
from .stream import Vigil
from .ticker import BesideError, Settings, Ticker

_FAILED = {Verdict.FAILED, Verdict.UNREADABLE}
_NOT_ASKED = {Verdict.ELSEWHERE, Verdict.SKIPPED, Verdict.AMBIGUOUS, Verdict.UNWATCHED, Verdict.ISOLATED}
_DELIVERY_RETRIES = 2
UNDONE = "what was recorded stays; the rest waits for the next tick"


class Form(NamedTuple):
    """What else the answer is to say: the reason of every row, and that something was recorded."""

    explain: bool
    exit_code: bool


@command("write", "plan", "ends")
def monitor(
    call: Call,
    key: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY]...", help="Only the links of these sessions.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once; so it does without --every.")] = False,
    every: Annotated[
        str | None, typer.Option("--every", metavar="D", help="Look again and again, at this pace.")
    ] = None,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Read on, 1 MiB of a link at a time, until no link moves.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of every link and every row why it counts or not.")
    ] = False,
    provider_timeout: Annotated[
        str, typer.Option("--provider-timeout", metavar="D", help="How long one catalog may take.")
    ] = "45s",
    strict: Annotated[
        bool, typer.Option("--strict", help="Follow OpenClaw also where this tool does better.")
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Go on beside a live gateway, and with an isolated state.")
    ] = False,
    unless_gateway: Annotated[
        bool, typer.Option("--unless-gateway", help="Beside a live gateway do nothing and exit 0.")
    ] = False,
    deliver: Annotated[
        str | None,
        typer.Option(
            "--deliver", metavar=GATEWAY_PROGRAM, help="Hand each notice that opens to its session."
        ),
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit 1 when something was recorded.")
    ] = False,
) -> Result | Stream:
    """Look into the transcripts of adopted sessions and record what people wrote there."""
    if every is not None and (once or exit_code):
        raise UsageError(f"--every contradicts {'--once' if once else '--exit-code'}")
    if anyway and unless_gateway:
        raise UsageError("--anyway and --unless-gateway contradict each other")
    if deliver not in (None, GATEWAY_PROGRAM):
        raise UsageError(f"--deliver knows only {GATEWAY_PROGRAM}")
    if deliver and call.flag("dry_run"):
        raise UsageError("--deliver contradicts --dry-run")
    check_fields(call.fields, LINK_FIELDS if every is None else TICK_FIELDS)
    settings = Settings(
        frozenset(key) if key else None,
        strict=strict,
        anyway=anyway,
        catch_up=catch_up,
        provider_timeout_s=_seconds("--provider-timeout", provider_timeout),
    )
    if every is not None:
        from .follow_monitor import Request, follow

        settings = settings._replace(every_s=_seconds("--every", every))
        runner = deliverer(call, retries=_DELIVERY_RETRIES) if deliver else None
        return follow(call, Request(settings, runner, explain=explain, unless_gateway=unless_gateway))
    call.refuse_alone("count", needs="--every")
    return _once(
        call,
        settings,
        Form(explain, exit_code),
        runner=deliverer(call, retries=_DELIVERY_RETRIES) if deliver else None,
        unless_gateway=unless_gateway,
    )


def _seconds(option: str, text: str) -> float:
    duration = parse_duration(text)
    if not duration:
        raise UsageError(f"{option} is longer than 0")
    return duration / 1000


def opened(call: Call, settings: Settings) -> Reading:
    """The log that the monitor works on: for reading where it only plans."""
    location = call.location()
    if call.flag("dry_run") or (location.embedded and is_blank(location.path)):
        return call.read()
    changing = call.changing(strict=settings.strict, clock=call.clock)
    return call.terminal.opened.enter_context(changing)


def require_links(log: Reading, keys: Iterable[str]) -> None:
    """Raise NotFoundError for a session that has no upstream link."""
    linked = {link.session_key for link, _ in log.links()}
    for key in sorted(set(keys) - linked):
        close = log.similar_keys(key)
        hint = f"did you mean {', '.join(close)}?" if close else None
        raise NotFoundError(f"{key} has no upstream link", hint=hint, sessionKey=key, similar=close)


def _once(
    call: Call, settings: Settings, form: Form, *, runner: Runner | None, unless_gateway: bool
) -> Result:
    log = opened(call, settings)
    require_links(log, settings.only or ())
    vigil = call.terminal.opened.enter_context(Vigil(call))
    ticker = Ticker(call, log, settings, stopped=lambda: vigil.over)
    try:
        tick = ticker.tick()
    except BesideError:
        if not unless_gateway:
            raise
        shown = Shown(call, Tick(call.clock(), ()), ticker, explain=form.explain)
        return Result("monitor", shown.view(), fields=LINK_FIELDS, log=log)
    if tick.listing_failure is not None:
        raise tick.listing_failure
    shown = Shown(call, tick, ticker, explain=form.explain)

    def after() -> None:
        deliver_all(log, tick, runner, vigil)
        if failure := failure_of(tick, ticker):
            raise failure
        if tick.stopped:
            vigil.check()
            raise TimedOutError(f"not done within {call.flag('timeout')}", hint=UNDONE)

    recorded = any(report.verdict in (Verdict.RECORDED, Verdict.REMOVED) for report in tick.links)
    return Result(
        "monitor",
        shown.view(),
        text=shown.lines(),
        rows=shown.links(),
        fields=LINK_FIELDS if form.explain else LINK_FIELDS[:-1],
        log=log,
        warnings=shown.warnings(),
        status=ExitStatus.FINDINGS if form.exit_code and recorded else ExitStatus.OK,
        after=after,
    )


class Shown:
    """One tick in every form; rows of transcripts are read again where they were asked for."""

    def __init__(self, call: Call, tick: Tick, ticker: Ticker, *, explain: bool) -> None:
        self._tick = tick
        self._gateway = ticker.gateway
        self._dry = bool(call.flag("dry_run"))
        self._explain = explain
        self._style = style_of(call)._replace(now=call.clock())

    def view(self) -> dict[str, Any]:
        """The members of the document, or of the line of one tick."""
        return {
            "at": self._tick.at,
            "dryRun": self._dry,
            "gateway": gateway_view(self._gateway),
            "summary": counts(self._tick),
            "links": self.links(),
            "failures": [
                {"catalogId": failure.catalog_id, "message": failure.message}
                for failure in self._tick.failures
            ],
            "notices": [notice_view(notice) for notice in self._tick.notices],
        }

    def links(self) -> Iterator[dict[str, Any]]:
        for report in self._tick.links:
            yield link_view(report, dry_run=self._dry, rows=self._rows_of(report))

    def lines(self) -> Iterator[str]:
        for report in self._tick.links:
            yield from link_lines(report, self._style, dry_run=self._dry, rows=self._rows_of(report))
            for notice in report.notices:
                yield from notice_lines(notice, self._style)
        yield summary(self._tick, dry_run=self._dry)

    def warnings(self) -> list[str]:
        failures = [f"{failure.catalog_id} failed: {failure.message}" for failure in self._tick.failures]
        return [*blocked_words(self._tick.links), *failures]

    def _rows_of(self, report: LinkReport) -> list[RowReport] | None:
        return list(explained(report)) if self._explain else None


def deliver_all(log: Reading, tick: Tick, runner: Runner | None, vigil: Vigil) -> None:
    """Hand the notices that opened to OpenClaw, one after the other. Raises HookError."""
    for notice in tick.notices if runner else ():
        assert runner
        runner.run(delivery(notice, log.location.state_dir), vigil)
        vigil.say(f"delivered to {escape(notice.watcher)}")


def failure_of(tick: Tick, ticker: Ticker) -> StateError | None:
    """What went wrong in a tick so that the run has failed, although all that was found has been told."""
    for report in tick.links:
        if report.failure is not None:
            return report.failure
    if isinstance(ticker.unsaved, StateError):
        return ticker.unsaved
    by_catalog: dict[str, list[LinkReport]] = {}
    for report in tick.links:
        if report.verdict not in _NOT_ASKED:
            by_catalog.setdefault(report.link.catalog_id, []).append(report)
    for catalog_id, reports in by_catalog.items():
        if all(report.verdict in _FAILED for report in reports):
            return UpstreamError(
                f"nothing of the catalog {catalog_id} could be checked: {reports[0].reason}",
                hint="markers and streaks stay as they are; the next run tries again",
                catalogId=catalog_id,
            )
    return None
