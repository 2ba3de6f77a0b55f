"""python -m tests.conformance FILE…: run measured cases, one line per failure, then the totals."""

from __future__ import annotations

import sys

from . import run_file

if __name__ == "__main__":
    passed = failed = 0
    for name in sys.argv[1:]:
        for case, problem in run_file(name):
            if problem is None:
                passed += 1
            else:
                failed += 1
                print(f"FAIL {case}: {problem}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)
