"""Rows to a published set: the job and its parts."""
