"""python -m tests.perf: one table of measured ratios; exits 1 when a bound is missed."""

from __future__ import annotations

import math
import sys

from . import follow, measures, sessions, upstream


def main() -> int:
    missed = 0
    print(f"{'MEASURE':58}  {'FIGURE':>12}  {'BOUND':>12}")
    for measure in (*measures.MEASURES, *upstream.MEASURES, sessions.sessions, follow.follow):
        for row in measure():
            mark = "" if row.figure <= row.bound else "  MISSED"
            missed += bool(mark)
            bound = "-" if math.isinf(row.bound) else f"{row.bound:.2f} {row.unit:2}"
            print(f"{row.name:58}  {row.figure:>9.2f} {row.unit:2}  {bound:>12}{mark}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
