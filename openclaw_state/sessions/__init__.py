"""The rules of OpenClaw's sessions, pure: no database, no file, no clock (contract, sessions)."""
