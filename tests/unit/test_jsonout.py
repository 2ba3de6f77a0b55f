"""The machine formats: what a document holds, in which order, and that rows are streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from openclaw_state.errors import AheadError, UsageError
from openclaw_state.report.jsonout import (
    check_fields,
    document,
    dumps,
    envelope,
    error_document,
    jsonl,
    select_fields,
    tsv,
)

ROWS = [{"sequence": 1, "kind": "goal_changed"}, {"sequence": 2, "kind": "compacted"}]


def endless(taken: list[int]) -> Iterator[dict[str, Any]]:
    number = 0
    while True:
        taken.append(number)
        yield {"number": number}
        number += 1


def test_a_value_is_compact_in_its_own_order_and_its_own_letters() -> None:
    assert dumps({"b": [1, None, True], "a": "é 日"}) == '{"b":[1,null,true],"a":"é 日"}'


def test_control_characters_and_line_separators_are_written_as_escapes() -> None:
    assert dumps("\x1b\x7f\x9b\u2028\u2029\ud800") == r'"\u001b\u007f\u009b\u2028\u2029\ud800"'
    assert dumps({"\x9b": 1}) == r'{"\u009b":1}'


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_never_written(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps({"a": number})


def test_a_document_is_one_json_object_whatever_its_lists_hold() -> None:
    pieces = document({"none": iter([]), "one": iter([1]), "rows": iter(ROWS), "list": ROWS, "text": "x"})
    written = "".join(pieces)
    assert written.endswith("}\n")
    assert json.loads(written) == {"none": [], "one": [1], "rows": ROWS, "list": ROWS, "text": "x"}


def test_a_count_may_stand_after_the_rows_that_it_counts() -> None:
    seen: list[int] = []

    def rows() -> Iterator[int]:
        for number in range(3):
            seen.append(number)
            yield number

    assert json.loads("".join(document({"rows": rows(), "count": lambda: len(seen)})))["count"] == 3


def test_an_envelope_names_schema_success_database_body_and_warnings_in_that_order() -> None:
    database = {"path": "/x/openclaw.sqlite", "via": "--db"}
    members = envelope(
        "cursors list", database=database, body={"cursors": [], "count": 0}, warnings=("careful",)
    )
    assert list(members) == ["schema", "ok", "database", "cursors", "count", "warnings"]
    assert members["schema"] == "openclaw-state/cursors-list/v1"
    assert (members["ok"], members["database"], members["warnings"]) == (True, database, ["careful"])


def test_a_failure_carries_its_code_its_words_and_its_details() -> None:
    error = AheadError("version 9 is ahead", hint="wait", requested=9, head=4)
    assert error_document("status", error) == {
        "schema": "openclaw-state/status/v1",
        "ok": False,
        "error": {
            "code": "ahead_of_head",
            "message": "version 9 is ahead",
            "hint": "wait",
            "requested": 9,
            "head": 4,
        },
    }


def test_fields_choose_and_order_the_members_of_each_row() -> None:
    check_fields(["kind", "sequence"], ["sequence", "kind", "runId"])
    assert [list(row.items()) for row in select_fields(ROWS, ["kind", "sequence"])] == [
        [("kind", "goal_changed"), ("sequence", 1)],
        [("kind", "compacted"), ("sequence", 2)],
    ]
    assert list(select_fields(ROWS, ["runId"])) == [{"runId": None}] * 2
    assert list(select_fields(ROWS, None)) == ROWS


@pytest.mark.parametrize("fields", [["sequence", "size"], []])
def test_a_choice_of_fields_that_cannot_be_made_names_those_that_can(fields: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        check_fields(fields, ["sequence", "kind"])
    assert caught.value.hint == "fields: sequence, kind"


def test_tsv_is_a_line_of_heads_then_a_line_a_row() -> None:
    assert list(tsv(ROWS, ["kind", "sequence"])) == [
        "kind\tsequence\n",
        "goal_changed\t1\n",
        "compacted\t2\n",
    ]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, ""),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        ("", ""),
        ("a\tb\nc\rd\\e", r"a\tb\nc\rd\\e"),
        ("\x1b[31m\x9b", r"\x1b[31m\x9b"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ({"a": "\n"}, r'{"a":"\\n"}'),
    ],
    ids=ascii,
)
def test_a_tsv_cell_holds_no_separator_and_no_control_character(value: object, cell: str) -> None:
    assert list(tsv([{"a": value}], ["a"]))[1] == f"{cell}\n"


def test_a_row_without_a_field_leaves_its_cell_empty() -> None:
    assert list(tsv([{"b": 1}], ["a", "b"]))[1] == "\t1\n"


def test_json_lines_are_one_object_a_line() -> None:
    lines = list(jsonl([{"a": "x\ny"}, {"a": 2}]))
    assert lines == ['{"a":"x\\ny"}\n', '{"a":2}\n']


def test_rows_are_written_as_they_come() -> None:
    taken: list[int] = []
    assert next(jsonl(select_fields(endless(taken), ["number"]))) == '{"number":0}\n'
    lines = tsv(endless(taken), ["number"])
    assert (next(lines), next(lines)) == ("number\n", "0\n")
    pieces = document({"rows": endless(taken)})
    assert [next(pieces) for _ in range(4)][-1] == ',\n    {"number":1}'
    assert taken == [0, 0, 0, 1]
