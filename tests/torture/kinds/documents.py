"""Hostile documents in files and folders for ``verify``, ``read`` and ``diff``."""

from __future__ import annotations

import os

from ..case import Case
from ..documents import hostile, sitemap

WEIGHT = 4


def run(case: Case) -> None:
    rng = case.rng
    folder = case.folder / "set"
    folder.mkdir()
    for number in range(rng.choice((1, 1, 1, 3))):
        name = rng.choice(("sitemap.xml", "a.xml.gz", "b.txt", f"s{number}.xml", "c.xml"))
        (folder / name).write_bytes(hostile(rng))
    target = rng.choice([*sorted(folder.iterdir()), folder])
    if rng.random() < 0.1:  # in no index, found in the folder
        odd, target = folder / "odd.xml", folder
        match rng.randrange(4):
            case 0:
                os.mkfifo(odd)
            case 1:
                odd.symlink_to("/dev/zero")
            case 2:
                odd.symlink_to(odd)
            case _:
                odd.mkdir()
    match rng.randrange(3):
        case 0:
            case.urlset("verify", target, "--quiet", "--json", case.folder / "v.json")
        case 1:
            options = ["--lenient"] if rng.random() < 0.5 else []
            case.urlset("read", target, "-o", case.folder / "read.jsonl", *options)
        case _:
            other = case.folder / "other.xml"
            other.write_bytes(sitemap(rng))
            options = ["--lenient"] if rng.random() < 0.5 else []
            pair = [target, other] if rng.random() < 0.5 else [other, target]
            case.urlset("diff", *pair, *options)
