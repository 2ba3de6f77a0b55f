"""python -m tests.conformance FILE…: run measured cases, one line per failure, then the totals."""

from __future__ import annotations

import os
import sys
import time

from . import Check, cases


def problem_of(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    # The cases were measured in UTC.
    os.environ["TZ"] = "UTC"
    time.tzset()
    passed = failed = 0
    for name in sys.argv[1:]:
        for case, check in cases(name):
            if problem := problem_of(check):
                failed += 1
                print(f"FAIL {case}: {problem}")
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
