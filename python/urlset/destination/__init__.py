"""Where a set is published."""
