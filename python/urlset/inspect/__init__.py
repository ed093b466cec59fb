"""Sitemaps to findings and rows: ``verify``, ``read`` and ``diff``."""
