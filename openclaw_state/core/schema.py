"""The four tables of the signal log: what the embedded file holds, and what is expected elsewhere.

user_version stays 0 and there is no schema_meta, so that a gateway can adopt the embedded
file later (contract, signal-log section 3).
"""

from __future__ import annotations

KNOWN_VERSION = 18
EMBEDDED_VERSION = 0

EVENTS = "session_state_events"
HEADS = "session_state_heads"
CURSORS = "session_watch_cursors"
LINKS = "session_upstream_links"

COLUMNS = {
    EVENTS: "sequence dedupe_key session_key session_id agent_id kind actor_type actor_id run_id"
    " occurred_at summary payload_json",
    HEADS: "session_key agent_id last_sequence pruned_max_sequence updated_at",
    CURSORS: "watcher_session_key target_session_key last_seen_sequence notified_sequence"
    " material_sequence provenance updated_at",
    LINKS: "session_key agent_id catalog_id host_id thread_id upstream_kind upstream_ref_json"
    " last_marker_json last_scanned_at created_at updated_at",
}
STORE_COLUMN = "watcher_store_path"

# In the order of model.Event's fields.
EVENT_COLUMNS = (
    "sequence, session_key, agent_id, kind, actor_type, occurred_at, summary,"
    " session_id, actor_id, run_id, dedupe_key, payload_json"
)

STATEMENTS = (
    """CREATE TABLE IF NOT EXISTS session_state_events (
         sequence INTEGER PRIMARY KEY AUTOINCREMENT,
         dedupe_key TEXT UNIQUE,
         session_key TEXT NOT NULL,
         session_id TEXT,
         agent_id TEXT NOT NULL,
         kind TEXT NOT NULL,
         actor_type TEXT NOT NULL,
         actor_id TEXT,
         run_id TEXT,
         occurred_at INTEGER NOT NULL,
         summary TEXT NOT NULL,
         payload_json TEXT
       ) STRICT""",
    """CREATE TABLE IF NOT EXISTS session_state_heads (
         session_key TEXT NOT NULL,
         agent_id TEXT NOT NULL,
         last_sequence INTEGER NOT NULL,
         pruned_max_sequence INTEGER NOT NULL DEFAULT 0,
         updated_at INTEGER NOT NULL,
         PRIMARY KEY (session_key, agent_id)
       ) STRICT""",
    """CREATE TABLE IF NOT EXISTS session_watch_cursors (
         watcher_session_key TEXT NOT NULL,
         watcher_store_path TEXT,
         target_session_key TEXT NOT NULL,
         last_seen_sequence INTEGER NOT NULL DEFAULT 0,
         notified_sequence INTEGER NOT NULL DEFAULT 0,
         material_sequence INTEGER NOT NULL DEFAULT 0,
         provenance TEXT NOT NULL DEFAULT 'explicit' CHECK (provenance IN ('explicit', 'ambient-group')),
         updated_at INTEGER NOT NULL,
         PRIMARY KEY (watcher_session_key, target_session_key)
       ) STRICT""",
    """CREATE TABLE IF NOT EXISTS session_upstream_links (
         session_key TEXT NOT NULL,
         agent_id TEXT NOT NULL,
         catalog_id TEXT NOT NULL,
         host_id TEXT NOT NULL,
         thread_id TEXT NOT NULL,
         upstream_kind TEXT NOT NULL,
         upstream_ref_json TEXT,
         last_marker_json TEXT,
         last_scanned_at INTEGER,
         created_at INTEGER NOT NULL,
         updated_at INTEGER NOT NULL,
         PRIMARY KEY (session_key, agent_id)
       ) STRICT""",
    """CREATE INDEX IF NOT EXISTS idx_session_state_events_session_sequence
         ON session_state_events (session_key, sequence DESC)""",
    """CREATE INDEX IF NOT EXISTS idx_session_state_events_time
         ON session_state_events (occurred_at DESC, sequence DESC)""",
    """CREATE INDEX IF NOT EXISTS idx_session_watch_cursors_target
         ON session_watch_cursors (target_session_key)""",
    """CREATE INDEX IF NOT EXISTS idx_session_upstream_links_catalog_id
         ON session_upstream_links (catalog_id)""",
)
