"""The public Python API in parts by meaning; readers load only what reads."""
