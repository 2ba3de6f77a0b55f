"""OpenClaw around the database: where it stands, its stores, its configuration, its gateway."""
