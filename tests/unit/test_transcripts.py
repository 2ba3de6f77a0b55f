"""Windows of transcript files: what is read, what waits, and what cannot be read."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openclaw_state.model import Link
from openclaw_state.results import Echo, Verdict
from openclaw_state.upstream import claude, pi, transcripts
from openclaw_state.upstream.findings import QUIET, Activity, Finding, Missing, Probe, Silence
from tests.support import needs_permissions

HUMAN = (
    b'{"type":"user","timestamp":"2026-07-13T10:00:00.000Z","message":{"role":"user","content":"hello"}}\n'
)
TOOL = b'{"type":"assistant","message":{"role":"assistant","content":"result"}}\n'
PI_HUMAN = b'{"type":"message","message":{"role":"user","content":"hello","timestamp":1000}}\n'

both_checks = pytest.mark.parametrize("check", [claude.check, pi.check], ids=["claude", "pi"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "t.jsonl"


def claude_probe(path: Path | str, offset: Any = 0, own: tuple[str, ...] = ()) -> Probe:
    marker = {"offset": offset}
    ref = {"filePath": str(path)}
    return Probe(
        Link("agent:main:s", "main", "claude", "gateway:local", "t", "claude-cli", ref, marker, 0, 0), own
    )


def pi_probe(path: Path | str, offset: Any = 0) -> Probe:
    probe = claude_probe(path, offset)
    return Probe(probe.link._replace(host_id="gateway", upstream_kind="pi-cli"))


def turns(finding: Finding) -> int:
    assert isinstance(finding, Activity), finding
    return int(finding.turns)


def follow(path: Path, *, size: int, check: Callable[..., Finding] = claude.check) -> tuple[int, int]:
    """Check until nothing more comes; (turns, offset reached)."""
    probe = claude_probe if check is claude.check else pi_probe
    found = offset = 0
    while isinstance(finding := check(probe(path, offset), window_size=size), Activity):
        found += finding.turns
        offset = finding.next_marker["offset"]
    return found, offset


@pytest.mark.parametrize("size", [len(HUMAN), len(HUMAN) + 1, 3 * len(HUMAN) - 1, 1_000, transcripts.WINDOW])
def test_windows_of_any_size_see_every_row_once(file: Path, size: int) -> None:
    file.write_bytes((HUMAN + TOOL) * 30)
    assert follow(file, size=size) == (30, file.stat().st_size)


@both_checks
def test_a_row_that_fills_the_window_passes_and_one_byte_more_blocks(
    file: Path, check: Callable[..., Finding]
) -> None:
    row = HUMAN if check is claude.check else PI_HUMAN
    file.write_bytes(row + row)
    assert follow(file, size=len(row), check=check) == (2, 2 * len(row))
    finding = check((claude_probe if check is claude.check else pi_probe)(file), window_size=len(row) - 1)
    assert finding == Silence(
        Verdict.BLOCKED, f"at offset 0: the row there is longer than {len(row) - 1} bytes"
    )


def test_rows_behind_a_row_that_is_too_long_stay_unseen(file: Path) -> None:
    file.write_bytes(HUMAN + b"x" * 1_000 + b"\n" + HUMAN)
    assert follow(file, size=500) == (1, len(HUMAN))


def test_a_huge_row_costs_no_memory(file: Path) -> None:
    with open(file, "wb") as out:
        out.truncate(150_000_000)
        out.seek(0, os.SEEK_END)
        out.write(b"\n" + HUMAN)
    tracemalloc.start()
    finding = claude.check(claude_probe(file))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(finding, Silence)
    assert finding.verdict is Verdict.BLOCKED
    assert peak < 8_000_000


@pytest.mark.parametrize("cut", range(1, len(HUMAN) + 1, 13))
def test_a_half_written_row_waits_for_its_end(file: Path, cut: int) -> None:
    file.write_bytes(HUMAN + HUMAN[:-cut])
    assert follow(file, size=4_096) == (1, len(HUMAN))
    with open(file, "ab") as out:
        out.write(HUMAN[-cut:])
    assert turns(claude.check(claude_probe(file, len(HUMAN)))) == 1


def test_a_row_without_its_end_is_named(file: Path) -> None:
    file.write_bytes(HUMAN + HUMAN[:-1])
    finding = claude.check(claude_probe(file, len(HUMAN)))
    assert finding == Silence(Verdict.WAITING, f"the row at offset {len(HUMAN)} has no end yet")


def test_letters_of_several_bytes_survive_every_cut(file: Path) -> None:
    row = HUMAN.replace(b"hello", "\u65e5\u672c\U0001f600 \u00e9".encode())
    file.write_bytes(row * 20)
    own = ("\u65e5\u672c\U0001f600 \u00e9",)
    for size in range(len(row), len(row) + 20):
        finding = claude.check(claude_probe(file, 0, own), window_size=size)
        assert turns(finding) == 0
        assert isinstance(finding, Activity)
        assert finding.echoes == (Echo(1, 1),)
        assert finding.next_marker == {"offset": len(row)}
    # A marker in the middle of a letter costs the row that it stands in, and no other.
    middle = row.index("\u672c".encode()) + 1
    assert turns(claude.check(claude_probe(file, middle))) == 19


@pytest.mark.parametrize(
    ("row", "counted"),
    [
        (HUMAN.replace(b"\n", b"\r\n"), 1),
        (b" \t" + HUMAN, 1),
        (b"\x00\x00" + HUMAN, 0),
        (b"\xef\xbb\xbf" + HUMAN, 0),
        (b"\xc2\xa0" + HUMAN, 0),
        (HUMAN.replace(b"hello", b"h\xff\xfello"), 1),
        (HUMAN.replace(b"hello", b"a\rb"), 0),
        (HUMAN.replace(b'"user"', b'"us\\u0065r"'), 1),
        (HUMAN.replace(b'"user"', b'"\\u0075\\u0073\\u0065\\u0072"'), 1),
        (HUMAN.replace(b'"hello"', b'"\\u001b[31m"'), 1),
        (HUMAN.replace(b'"timestamp"', b'"n":' + b"9" * 5_000 + b',"timestamp"'), 1),
        (HUMAN.replace(b'"timestamp"', b'"n":' + b"[" * 5_000 + b"]" * 5_000 + b',"timestamp"'), 1),
        (HUMAN.replace(b'"timestamp"', b'"n":NaN,"timestamp"'), 0),
        (HUMAN.replace(b'"timestamp"', b'"n":-Infinity,"timestamp"'), 0),
        (HUMAN.replace(b'{"type"', b'{"type":"x","type"'), 1),
        (HUMAN.replace(b"}}\n", b'},"type":"x"}\n'), 0),
        (HUMAN.replace(b"}}\n", b'},"isMeta":true,"isMeta":1}\n'), 1),
        (b"[" * 5_000 + b'"user"' + b"]" * 5_000 + b"\n", 0),
        (b"null\n", 0),
        (b"\n", 0),
    ],
)
def test_odd_rows_are_judged_alone(file: Path, row: bytes, counted: int) -> None:
    file.write_bytes(HUMAN + row + HUMAN)
    finding = claude.check(claude_probe(file))
    assert turns(finding) == 2 + counted
    assert isinstance(finding, Activity)
    assert finding.next_marker == {"offset": file.stat().st_size}


@pytest.mark.parametrize("row", [b"null\n", b" null\r\n", b"\tnull\n"])
def test_a_null_row_blocks_only_as_openclaw_is_followed(file: Path, row: bytes) -> None:
    file.write_bytes(HUMAN + row)
    assert turns(claude.check(claude_probe(file))) == 1
    finding = claude.check(claude_probe(file), strict=True)
    assert finding == Silence(Verdict.BLOCKED, "at offset 0: a row there is null")
    file.write_bytes(HUMAN + b"nullx\n" + b'"null"\n')
    assert turns(claude.check(claude_probe(file), strict=True)) == 1


@pytest.mark.parametrize("bad", [b"garbage\n", b"[1]\n", b"7\n", b"null\n", b'{"a":NaN}\n', b"\x00{}\n"])
def test_pi_stops_before_a_row_that_is_no_object(file: Path, bad: bytes) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + PI_HUMAN + b"\xc2\xa0\r\n" + bad + PI_HUMAN)
    reached = 3 + len(PI_HUMAN) + 4
    assert follow(file, size=4_096, check=pi.check) == (1, reached)
    assert pi.check(pi_probe(file, reached)) == Silence(
        Verdict.BLOCKED, f"at offset {reached}: the row there is no JSON object"
    )


@pytest.mark.parametrize("number", ["1e400", "9" * 400, "NaN"])
def test_pi_takes_no_time_that_is_not_finite(file: Path, number: str) -> None:
    file.write_bytes(PI_HUMAN.replace(b"1000", number.encode()))
    os.utime(file, ns=(5_000_000, 5_000_000))
    finding = pi.check(pi_probe(file))
    if number == "NaN":
        assert isinstance(finding, Silence)
    else:
        assert isinstance(finding, Activity)
        assert finding.occurred_at == 5


def test_own_messages_are_echoes_by_their_place_in_the_list(file: Path) -> None:
    texts = ["one", "two", "three", " two "]
    rows = [{"type": "user", "message": {"role": "user", "content": text}} for text in texts]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    finding = claude.check(claude_probe(file, 0, ("zero", "two", "one")))
    assert isinstance(finding, Activity)
    assert finding.turns == 1
    assert finding.echoes == (Echo(3, 3), Echo(2, 3), Echo(2, 3))


@both_checks
@pytest.mark.parametrize("marker", [-1, 1.5, True, None, "0", 2**53, float("nan"), [0]])
def test_a_marker_that_is_no_offset_is_refused_before_the_file_is_looked_at(
    check: Callable[..., Finding], marker: Any
) -> None:
    probe = (claude_probe if check is claude.check else pi_probe)("/nowhere", marker)
    assert check(probe) == Silence(Verdict.UNUSABLE, "the marker holds no offset")


def test_what_does_not_grow_is_quiet_and_what_is_gone_is_missing(file: Path) -> None:
    assert isinstance(claude.check(claude_probe(file)), Missing)
    file.write_bytes(HUMAN)
    assert claude.check(claude_probe(file, len(HUMAN))) == QUIET
    assert claude.check(claude_probe(file, len(HUMAN) + 5)) == QUIET
    assert claude.peek(claude_probe(file, len(HUMAN)).link) == QUIET
    assert claude.peek(claude_probe(file).link) is None


@pytest.mark.parametrize("path", ["/etc/passwd/x", "n" * 300, "a\0b"])
def test_a_path_that_cannot_be_opened_is_not_missing(path: str) -> None:
    finding = claude.check(claude_probe(path))
    assert isinstance(finding, Silence)
    assert finding.verdict is Verdict.UNREADABLE
    assert finding.reason


def test_half_a_surrogate_pair_in_a_path_names_another_file(tmp_path: Path) -> None:
    (tmp_path / "a\ufffd").write_bytes(HUMAN)
    assert turns(claude.check(claude_probe(f"{tmp_path}/a\udc80"))) == 1


def test_a_pipe_does_not_hang_the_check(file: Path) -> None:
    os.mkfifo(file)
    assert isinstance(claude.check(claude_probe(file)), Missing)


@needs_permissions
def test_a_file_without_permission_is_unreadable(file: Path) -> None:
    file.write_bytes(HUMAN)
    file.chmod(0)
    finding = claude.check(claude_probe(file))
    assert finding == Silence(Verdict.UNREADABLE, "Permission denied")


def test_file_times_keep_their_low_bits() -> None:
    assert transcripts.mtime_ms(1_790_000_000_000_250_000) == 1_790_000_000_000.25
    assert transcripts.mtime_ms(1_790_000_000_123_456_789) == 1_790_000_000_000 + 123_456_789 / 1e6


def test_a_fraction_of_a_time_is_kept_only_as_openclaw_is_followed(file: Path) -> None:
    file.write_bytes(HUMAN.replace(b'"timestamp"', b'"time"'))
    os.utime(file, ns=(1_790_000_000_000_250_000,) * 2)
    plain, strict = claude.check(claude_probe(file)), claude.check(claude_probe(file), strict=True)
    assert isinstance(plain, Activity)
    assert isinstance(strict, Activity)
    assert (plain.occurred_at, strict.occurred_at) == (1_790_000_000_000, 1_790_000_000_000.25)
