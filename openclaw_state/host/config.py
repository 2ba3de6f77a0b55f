"""openclaw.json, as far as it decides which session store a watcher has."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_MAY_MEAN_STORE = re.compile(r"store|\$include|\\[ux]", re.IGNORECASE)


def config_path(state_dir: str, environ: Mapping[str, str]) -> str:
    """Where the configuration of a state directory stands."""
    return environ.get("OPENCLAW_CONFIG_PATH", "").strip() or os.path.join(state_dir, "openclaw.json")


def store_doubt(state_dir: str, environ: Mapping[str, str]) -> str | None:
    """Why the session store may not be the default one; None when it certainly is.

    A file that names no store, includes nothing and hides no letters behind escapes cannot
    configure one.
    """
    path = config_path(state_dir, environ)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{path} cannot be read ({error.strerror}) and may configure another store"
    return f"{path} may configure another store" if _MAY_MEAN_STORE.search(text) else None
