"""lastmod from content: random nights against a plain model, with kills in between."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import urlset
from conftest import SITE
from lastmod_model import CONTENT, Catalog, Model, Row
from lxml import etree
from store_servers import BUCKET, Server, moto, objects
from urlset.options import Options

pytestmark = pytest.mark.long

NS = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
START = datetime(2026, 10, 1, 3, 0, tzinfo=UTC)
FORGET = timedelta(days=30)
Entries = list[tuple[str, str | None]]

#: a build in a process that kills itself before or after the N-th step that changes a file
DRIVER = """
import json, os, signal, sys

at, before, options = int(sys.argv[1]), sys.argv[2] == "before", json.loads(sys.argv[3])
count = 0

def killed(call):
    def wrapped(*args, **kwargs):
        global count
        count += 1
        if count == at and before:
            os.kill(os.getpid(), signal.SIGKILL)
        result = call(*args, **kwargs)
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return wrapped

import urlset
from urlset.transport.store import Location
from urlset.destination.store_state import State
for name in ("replace", "rename", "unlink", "remove", "rmdir", "fsync"):
    setattr(os, name, killed(getattr(os, name)))
Location.put = killed(Location.put)
Location.delete = killed(Location.delete)
State.upload = killed(State.upload)
urlset.build(options.pop("source"), **options)
print(count)
"""


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows in each batch: each begins with a lookup in the index."""
    plain = Options.core_json
    monkeypatch.setattr(Options, "core_json", lambda self: plain(self) | {"batch_bytes": 1024})


def entries_of(files: Callable[[str], bytes]) -> Entries:
    """What a crawler finds from the index, by lxml."""
    found: Entries = []
    for loc in etree.fromstring(files("sitemap.xml")).iter(f"{NS}loc"):
        name = loc.text.removeprefix(f"{SITE}/")
        data = files(name)
        for url in etree.fromstring(gzip.decompress(data)).iter(f"{NS}url"):
            found.append((url.findtext(f"{NS}loc"), url.findtext(f"{NS}lastmod")))
    return found


class Folder:
    """A set in a folder, read without urlset."""

    def __init__(self, path: Path) -> None:
        self.path, self.env = path, dict(os.environ)
        self.out = str(path)

    def entries(self) -> Entries:
        return entries_of(lambda name: (self.path / name).read_bytes())

    def committed(self) -> tuple[str | None, bool]:
        """The stamps that count, and whether the set is complete without another build."""
        journal = self.path / ".urlset/publish.json"
        if journal.exists() and "new" in json.loads(journal.read_bytes()):
            return json.loads(journal.read_bytes())["new"]["lastmod"]["file"], False
        manifest = self.path / ".urlset/manifest.json"
        if not manifest.exists():
            return None, True
        return json.loads(manifest.read_bytes())["lastmod"]["file"], True

    def stamps(self) -> list[str]:
        """The files in the state that begin as the stamps do."""
        return [path.name for path in (self.path / ".urlset").glob("lastmod*")]


class Bucket:
    """A set in an object store, read by boto3."""

    out = f"s3://{BUCKET}/maps"

    def __init__(self, server: Server) -> None:
        self.client, self.env = server.client, server.environ()

    def objects(self) -> dict[str, bytes]:
        found = objects(self.client, prefix="maps/")
        return {key.removeprefix("maps/"): data for key, data in found.items()}

    def entries(self) -> Entries:
        return entries_of(self.objects().__getitem__)

    def committed(self) -> tuple[str | None, bool]:
        found = self.objects()
        if "sitemap.xml" not in found:
            return None, True
        mark = found["sitemap.xml"].split(b"<!-- urlset ")[1][:32].decode()
        return json.loads(found[f".urlset/manifest-{mark}.json"])["lastmod"]["file"], True

    def stamps(self) -> list[str]:
        return [name for name in self.objects() if name.startswith(".urlset/lastmod")]


def nights_of(
    place: Folder | Bucket, folder: Path, seed: int, nights: int, *, kills: float,
) -> int:  # fmt: skip
    """Random nights; returns the number of builds that were killed."""
    pick = random.Random(seed)
    catalog = Catalog(seed, mapped=pick.random() < 0.5, duplicates=pick.random() < 0.4)
    drop = catalog.duplicates and pick.random() < 0.4
    layout = pick.choice(("packed", "stable"))
    model, now, killed = Model(), START, 0
    columns: tuple[str, ...] = CONTENT
    live: Entries | None = None
    for night in range(nights):
        if night:
            catalog.change()
        if pick.random() < 0.1:
            columns = pick.choice((CONTENT, ("price", "title"), ("seen",)))
        step = pick.choice((1, 1, 1, 5, 29, 30, 31, -3))
        now += timedelta(days=step, seconds=pick.randrange(3600))
        rows = first_of_each(catalog.rows) if drop else catalog.rows
        after, expected = model.night(rows, columns, now, FORGET)
        options: dict[str, Any] = {
            "source": str(catalog.write(folder, night)), "site": SITE, "out": place.out,
            "lastmod_from": ",".join(pick.sample(columns, len(columns))), "layout": layout,
            "now": now.isoformat(), "forget": f"{FORGET.days}d", "max_urls": 20,
            "max_shrink": "100%", "duplicates": "drop" if drop else "keep",
            **({"lastmod": "updated"} if catalog.mapped else {}),
        }  # fmt: skip
        is_killed = False
        if pick.random() < kills:
            before = place.committed()[0]
            moment = str(pick.randrange(1, 22)), pick.choice(("before", "after"))
            done = subprocess.run(
                [sys.executable, "-c", DRIVER, *moment, json.dumps(options)],
                capture_output=True, env=place.env, timeout=300,
            )  # fmt: skip
            assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
            is_killed = done.returncode != 0
            killed += is_killed
            stamps, complete = place.committed()
            if is_killed and stamps == before:
                # nothing was published, and the next build compares with what is live; if the
                # build before was killed as well, its set may still be incomplete
                if complete:
                    assert (place.entries() if live is not None else None) == live
                continue
            if is_killed and not complete:
                model, live = after, expected
                continue
        else:
            source = options.pop("source")
            urlset.build(source, **options)
        assert place.entries() == expected, (seed, night)
        if not is_killed:
            assert len(place.stamps()) <= 1 or isinstance(place, Bucket)
        model, live = after, expected
    return killed


def first_of_each(rows: list[Row]) -> list[Row]:
    found: dict[str, Row] = {}
    for row in rows:
        found.setdefault(row.loc, row)
    return list(found.values())


@pytest.mark.parametrize("seed", range(12))
def test_random_nights(tmp_path: Path, small_batches: None, seed: int) -> None:
    nights_of(Folder(tmp_path / "out"), tmp_path, seed, 12, kills=0)


def test_random_nights_with_kills(tmp_path: Path) -> None:
    killed = 0
    for seed in range(3):
        killed += nights_of(Folder(tmp_path / str(seed)), tmp_path, seed, 12, kills=0.4)
    assert killed >= 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_random_nights_with_kills(tmp_path: Path, small_batches: None, seed: int) -> None:
    nights_of(Folder(tmp_path / "out"), tmp_path, seed, 60, kills=0.4)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with moto() as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        for key in objects(server.client):  # moto keeps them as long as the process runs
            server.client.delete_object(Bucket=BUCKET, Key=key)
        yield Bucket(server)


def test_random_nights_in_a_store(tmp_path: Path, bucket: Bucket) -> None:
    assert nights_of(bucket, tmp_path, 7, 12, kills=0.5) > 0
    # what killed builds uploaded is removed, and what is live is not
    bucket.client.put_object(Bucket=BUCKET, Key=f"maps/.urlset/lastmod-{'0' * 32}", Body=b"x")
    live = bucket.committed()[0]
    urlset.clean(bucket.out, older_than="0s")
    assert bucket.stamps() == [f".urlset/{live}"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 210))
def test_many_random_nights_in_a_store(tmp_path: Path, bucket: Bucket, seed: int) -> None:
    nights_of(bucket, tmp_path, seed, 40, kills=0.5)
