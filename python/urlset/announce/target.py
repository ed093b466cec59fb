"""What is announced: the indexes of a build, of a folder of anybody's, or one address."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from ..destination.directory import Directory
from ..destination.state import STATE, manifests_in
from ..errors import ConfigError, InputError, PublishError
from .address import check_page, host_of, origin_of, split
from .index import read_index

#: PROTOCOL section 2: index files a site
MAX_INDEXES = 500


@dataclass(frozen=True, slots=True)
class Target:
    """
    Attributes:
        site: root of the site, ``https://www.shop.example/``; its robots.txt and key files are
            there.
        indexes: addresses of all indexes; none where they are of many hosts and no host's folder
            was named.
        urls: how many URLs are live; ``None`` where nobody has counted them.
        state: the folder in which ``announce`` keeps its journal and keys.
        folder: where the files are, ``None`` for an address.
        parts: the folders of the hosts, where no one of them was named.
        derived: the site is known from nothing but addresses inside of an index: from data.
        many_hosts: the set was built for many hosts (``{host}`` in its address).
    """

    site: str
    indexes: tuple[str, ...]
    urls: int | None
    state: Path
    folder: Path | None = None
    many_hosts: bool = False
    parts: tuple[str, ...] = ()
    derived: bool = False

    @property
    def host(self) -> str:
        """Host of the site, with a port that is not the scheme's own."""
        return host_of(urlsplit(self.site))

    def need_indexes(self) -> tuple[str, ...]:
        """The addresses of the indexes.

        Raises:
            ConfigError: ``announce.many_hosts``.
        """
        if not self.indexes:
            raise ConfigError(
                "this set was built for many hosts, and each is announced by itself: name its"
                f" folder, {(self.folder or Path()) / self.parts[0]} for one",
                code="announce.many_hosts",
            )
        return self.indexes


def read_target(
    target: str | Path, *, state: Path | None = None, sitemap_url: str | None = None
) -> Target:
    """Find out what to announce.

    Args:
        target: the folder of a build, or that of a host in it; a folder with somebody else's
            index; an index file; or the address of an index (which is not fetched).
        state: in place of ``TARGET/.urlset``.
        sitemap_url: the address of the folder, where no manifest tells it.

    Raises:
        ConfigError: ``announce.bad_url``, ``announce.no_address``.
        InputError: ``announce.no_target``, ``announce.manifest``, ``announce.empty``, and those
            of the index.
    """
    if re.match(r"https?://", str(target), re.IGNORECASE):
        parts = check_page(str(target), what="TARGET")
        home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        name = re.sub(r"[^a-z0-9.-]", "_", host_of(parts)).strip(".") or "_"
        where = state or home / "urlset" / name
        return Target(f"{origin_of(parts)}/", (str(target),), None, where / "announce")
    path = Path(target)
    if not path.exists():
        raise InputError(f"{path}: no such file or folder", code="announce.no_target")
    folder = path if path.is_dir() else path.parent
    states = state or folder / STATE
    only = None if path.is_dir() else path.name
    known = _manifests(folder, state)
    if known:
        found = _from_manifests(known, states, folder, only)
    elif state is None:
        found = _from_above(folder, only)
    else:
        found = None
    if found is not None:
        return found
    return _from_files(path, folder, states, sitemap_url)


def _wrong(path: Path, why: str) -> InputError:
    return InputError(f"{path}: {why}", code="announce.manifest", input=str(path))


def _manifests(folder: Path, state: Path | None) -> list[dict[str, Any]]:
    """The manifests of all names in a folder; below it, or below ``state``, no link is followed."""
    if state is None and not (folder / STATE).exists():
        return []
    try:
        with ExitStack() as opened:
            if state is None:
                home = opened.enter_context(Directory.open(folder))
                found = opened.enter_context(home.sub(STATE))
            elif state.is_dir():
                found = opened.enter_context(Directory.open(state))
            else:
                return []
            return [{**each.to_dict(), "path": path} for path, each in manifests_in(found)]
    except OSError as error:
        place = Path(error.filename or folder)
        raise _wrong(place, f"cannot be read: {error.strerror}") from None
    except PublishError as error:
        raise InputError(str(error), code="announce.manifest") from None


def _from_manifests(
    known: list[dict[str, Any]], states: Path, folder: Path, only: str | None
) -> Target | None:
    """The target that manifests describe; ``None`` where none of them knows the file ``only``."""
    hosts = [value for value in known if "{host}" in value["sitemap_url"]]
    plain = [value for value in known if "{host}" not in value["sitemap_url"]]
    if only is not None:
        plain = [v for v in plain if any(index["path"] == only for index in v["indexes"])]
    if hosts and not plain:
        return _of_hosts(_joined(hosts), states, folder, only)
    if not plain:
        return None
    urls = tuple(
        _address(value["sitemap_url"], index["path"])
        for value in plain
        for index in value["indexes"]
        if only in (None, index["path"])
    )
    manifest = plain[0]["path"]
    if not urls:
        raise InputError(f"{manifest}: names no index: nothing to announce", code="announce.empty")
    site = check_page(plain[0]["site"], what=f"site in {manifest}")
    for url in urls:
        check_page(url, what=f"an index of {manifest}")
    sites = {origin_of(check_page(v["site"], what=f"site in {v['path']}")) for v in plain}
    if len(sites) > 1 or hosts:
        raise ConfigError(
            f"{folder} holds sets of several sites, and each is announced by itself: name an index,"
            f" {folder / plain[0]['indexes'][0]['path'] if plain[0]['indexes'] else folder}"
            " for one",
            code="announce.several_sites",
        )
    count = sum(value["urls"] for value in plain)
    return Target(f"{origin_of(site)}/", urls, count, states / "announce", folder)


def _joined(known: list[dict[str, Any]]) -> dict[str, Any]:
    """Sets of several names that were built for many hosts, as one."""
    shards = [v["shards"] for v in known if isinstance(v.get("shards"), list)]
    return {
        **known[0],
        "urls": sum(value["urls"] for value in known),
        "indexes": [index for value in known for index in value["indexes"]],
        "shards": [shard for each in shards for shard in each],
    }


def _from_above(folder: Path, only: str | None) -> Target | None:
    """The host whose folder this is, where the folder above holds a set of many hosts."""
    above = folder.resolve().parent
    states = above / STATE
    known = [value for value in _manifests(above, None) if "{host}" in value["sitemap_url"]]
    if not known:
        return None
    found = _of_hosts(_joined(known), states, folder, only)
    return found if found is not None and found.indexes else None


def _of_hosts(value: dict[str, Any], states: Path, folder: Path, only: str | None) -> Target | None:
    """The same for a set that was built for many hosts: of one, where ``folder`` is its own."""
    manifest = value["path"]
    own = folder.resolve().name
    indexes = [index for index in value["indexes"] if index["path"].startswith(f"{own}/")]
    if only is not None:
        indexes = [index for index in indexes if index["path"] == f"{own}/{only}"]
    if not indexes:
        if only is not None:
            return None
        parts = tuple(dict.fromkeys(i["path"].partition("/")[0] for i in value["indexes"]))
        if not parts:
            raise InputError(
                f"{manifest}: names no index: nothing to announce", code="announce.empty"
            )
        site = check_page(value["site"], what=f"site in {manifest}")
        home = f"{origin_of(site)}/"
        return Target(home, (), value["urls"], states / "announce", folder, True, parts)
    urls = tuple(str(index.get("url")) for index in indexes)
    pages = [check_page(url, what=f"an index of {manifest}") for url in urls]
    shards = value.get("shards")
    count = sum(
        shard["urls"]
        for shard in (shards if isinstance(shards, list) else ())
        if isinstance(shard, dict)
        and str(shard.get("path")).startswith(f"{own}/")
        and isinstance(shard.get("urls"), int)
    )
    state = states / "announce" / own
    return Target(f"{origin_of(pages[0])}/", urls, count, state, folder, many_hosts=True)


def _address(base: str, path: str) -> str:
    return base.rstrip("/") + "/" + quote(path.lstrip("/"), safe="/!$&'()*+,;=:@~")


def _from_files(path: Path, folder: Path, states: Path, sitemap_url: str | None) -> Target:
    """Without a manifest: look into the index files themselves."""
    if path.is_dir():
        files = sorted(p for p in folder.iterdir() if p.suffix == ".xml" and p.is_file())
        parsed = [(file, read_index(file)) for file in files[: MAX_INDEXES + 1]]
        parsed = [(file, index) for file, index in parsed if index.is_index]
        if not parsed:
            raise InputError(
                f"{folder}: holds neither a manifest of urlset nor a sitemap index (*.xml)",
                code="announce.no_target",
            )
    else:
        parsed = [(path, read_index(path))]
    addresses = []
    for file, index in parsed:
        base = sitemap_url
        if base is None:
            folders = {loc.rsplit("/", 1)[0] for loc in index.locs if split(loc) is not None}
            if len(folders) != 1:
                raise ConfigError(
                    f"{file} does not tell at which address it is served: give --sitemap-url URL",
                    code="announce.no_address",
                )
            base = folders.pop()
        address = _address(base, file.name)
        check_page(address, what="the address of an index")
        addresses.append(address)
    site = origin_of(check_page(addresses[0], what="the address of an index"))
    return Target(
        f"{site}/",
        tuple(addresses),
        None,
        states / "announce",
        folder,
        derived=sitemap_url is None,
    )
