"""Damaged manifests and journals: a clean end, and nothing outside of the output is changed."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from ..case import Case
from ..live import Night
from ..mutate import damage
from ..sitemaps import live_urls

WEIGHT = 3

ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**400, "", "..", "../victim", "/etc/passwd", "a\0b", "\ud800", [], {},
    [[]], {"path": "../victim"}, [None], "link/important", ["link/important"], "sitemap.xml/x",
)  # fmt: skip


def run(case: Case) -> None:
    rng = case.rng
    night = Night(case)
    victim = case.folder / "victim"
    victim.mkdir()
    (victim / "important").write_text("precious")
    (night.out / "link").symlink_to(victim)
    state = night.out / ".urlset"
    path = state / "manifest.json"
    content = json.loads(path.read_text())
    if rng.random() < 0.5:
        moves = rng.sample([e["path"] for e in content["shards"]], k=1)
        content = {"manifest": 1, "moves": moves, "remove": [], "new": content}
        path = state / "publish.json"
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        _change(content, case)
    text = json.dumps(content).encode()
    if rng.random() < 0.2:
        deep = rng.choice((100, 5_000, 200_000))
        text = text[:-1] + b', "x": ' + b"[" * deep + b"]" * deep + b"}"
    path.write_bytes(damage(text, rng) if rng.random() < 0.4 else text)
    case.urlset(*night.command(night.source))
    for command in ("verify", "read"):
        more = ["-o", case.folder / "read.csv"] if command == "read" else []
        case.urlset(command, night.out, "--quiet", *more)
    case.check(
        [p.name for p in victim.iterdir()] == ["important"]
        and (victim / "important").read_text() == "precious",
        "a file outside of the output was touched",
    )
    if (night.out / "sitemap.xml").exists():
        urls = set(live_urls(night.out))
        case.check(urls <= {*night.before, *night.after}, "unknown URLs are live")


def _change(content: dict[str, Any], case: Case) -> None:
    """Replaces some value, at any depth, by one of another type or shape."""
    rng = case.rng
    holder: Any = content
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.8:
            holder = holder[key]
            continue
        what = rng.random()
        if what < 0.2:
            del holder[key]
        elif what < 0.3 and isinstance(holder, list):
            holder.append(deepcopy(holder[key]))
        else:
            holder[key] = deepcopy(rng.choice(ODD))
        return
