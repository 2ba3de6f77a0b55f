"""The log-and-cursor module: OpenClaw's rules for signals, versions, watches and notices."""
