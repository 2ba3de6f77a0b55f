"""openclaw-state: the operator's view of OpenClaw's session-state signal log."""

__version__ = "0.1.0"
