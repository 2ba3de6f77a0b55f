"""`python -m openclaw_state`: the same command as the installed script."""

from __future__ import annotations

from .cli.run import main

if __name__ == "__main__":
    main()
