"""A live set and its interrupted next build: a crawler always finds a complete set."""

from __future__ import annotations

from pathlib import Path

from . import catalogs
from .case import SITE, Case
from .sitemaps import live_urls, read_set


class Night:
    """A live set, and a build that will replace it."""

    def __init__(self, case: Case) -> None:
        rng = case.rng
        self.case = case
        self.layout = rng.choice(("stable", "packed"))
        self.out = case.folder / "out"
        count = rng.choice((50, 900, 3_000))
        old, self.source = case.folder / "old.csv", case.folder / "new.csv"
        self.before = catalogs.plain(old, range(count))
        first = rng.randint(1, 9)
        self.after = catalogs.plain(self.source, [n for n in range(first, count + 40) if n % 50])
        case.urlset(*self.command(old), statuses=(0,))

    def command(self, source: Path) -> list[object]:
        return [
            "build", source, "--site", SITE, "--out", self.out, "--max-urls", 100, "--quiet",
            "--layout", self.layout, "--max-shrink", "100%",
        ]  # fmt: skip

    def check(self, what: str) -> None:
        """The live set is complete: the previous set or the next one; packed names mix
        both until the next build, which completes it."""
        urls = live_urls(self.out)
        if self.layout == "stable" or not (self.out / ".urlset/publish.json").exists():
            self.case.check(urls in (self.before, self.after), f"{what}: neither set is live")
        else:
            known = {*self.before, *self.after}
            self.case.check(known.issuperset(urls), f"{what}: unknown URLs are live")
        self.case.urlset(*self.command(self.source), statuses=(0,))
        found = [loc for loc, _ in read_set(self.out)]
        self.case.check(found == self.after, f"{what}: the next build is not whole")
        leftovers = {path.name for path in (self.out / ".urlset").iterdir()}
        self.case.check(leftovers == {"lock", "manifest.json"}, f"{what}: left over: {leftovers}")
