"""Renderings of results: text, JSON, rows. Nothing here knows a database."""
