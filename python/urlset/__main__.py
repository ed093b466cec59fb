"""``python -m urlset``."""

from .cli import main

main()
