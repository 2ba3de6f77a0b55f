"""The entry point of the installed script and of `python -m openclaw_state`.

One short run never needs the garbage collector; switching it off before anything else is
imported makes a start a fifth cheaper.
"""

from __future__ import annotations

import gc
from typing import NoReturn


def main() -> NoReturn:
    gc.disable()
    from .cli.run import main as run

    run()


if __name__ == "__main__":
    main()
