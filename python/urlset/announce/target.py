"""The target: the indexes of a build, of any other folder, or one URL."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from .._core import Listing
from ..destination.directory import Directory
from ..destination.manifest import Manifest
from ..destination.state import STATE, manifests_in
from ..errors import ConfigError, InputError, PublishError
from .address import check_page, split
from .index import read_index

#: index files of one site that Google accepts
MAX_INDEXES = 500
#: the folder of journals and keys in the state folder
ANNOUNCE = "announce"

#: a manifest, and the path where it was read
Known = tuple[Path, Manifest]


@dataclass(frozen=True, slots=True)
class Target:
    """
    Attributes:
        site: root of the site, ``https://www.shop.example/``, with its robots.txt and key files.
        indexes: URLs of all indexes; empty for a set of many hosts without the folder of one.
        urls: how many URLs are live; ``None`` if unknown.
        state: the folder in which ``announce`` keeps its journal and keys.
        folder: where the files are; ``None`` for a URL.
        parts: the folders of the hosts, if the target is not the folder of one of them.
        derived: only URLs inside of an index, that is data, name the site.
        many_hosts: the set was built for many hosts (``{host}`` in its URL).
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
        """Host of the site, with the port if it is not the default."""
        return check_page(self.site, what="site").authority

    def need_indexes(self) -> tuple[str, ...]:
        """The URLs of the indexes.

        Raises:
            ConfigError: ``announce.many_hosts``.
        """
        if not self.indexes:
            raise ConfigError(
                "this set was built for many hosts, and each is announced separately: give the"
                f" folder of a host, such as {(self.folder or Path()) / self.parts[0]}",
                code="announce.many_hosts",
            )
        return self.indexes


def read_target(
    target: str | Path, *, state: Path | None = None, sitemap_url: str | None = None
) -> Target:
    """Finds the indexes to announce.

    Args:
        target: the folder or prefix of a build, or of a host in it; a folder with an index of
            another producer; an index; or the URL of an index (which is not fetched).
        state: used instead of ``TARGET/.urlset``.
        sitemap_url: the URL of the folder, if there is no manifest.

    Raises:
        ConfigError: ``announce.bad_url``, ``announce.no_address``, ``announce.several_sites``.
        InputError: ``announce.no_target``, ``announce.manifest``, ``announce.empty``, and those
            of the index.
    """
    if re.match(r"https?://", str(target), re.IGNORECASE):
        page = check_page(str(target), what="TARGET")
        where = state or home_of(page.authority)
        return Target(f"{page.origin}/", (str(target),), None, where / ANNOUNCE)
    path = Path(target)
    if not path.exists():
        raise InputError(f"{path}: no such file or folder", code="announce.no_target")
    folder = path if path.is_dir() else path.parent
    states = state or folder / STATE
    file = None if path.is_dir() else path.name
    known = _manifests(folder, state)
    found = None
    if known:
        found = from_manifests(known, states, folder, file)
    elif state is None:
        found = _from_parent(folder, file)
    return found or from_files(path, folder, states, sitemap_url)


def home_of(host: str) -> Path:
    """The state folder for a host whose files are not on this machine."""
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return home / "urlset" / (re.sub(r"[^a-z0-9.-]", "_", host).strip(".") or "_")


def _manifests(folder: Path, state: Path | None) -> list[Known]:
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
            return list(manifests_in(found))
    except OSError as error:
        message = f"{error.filename or folder}: cannot be read: {error.strerror}"
        raise InputError(message, code="announce.manifest") from None
    except PublishError as error:
        raise InputError(str(error), code="announce.manifest") from None


def _is_of_hosts(manifest: Manifest) -> bool:
    return "{host}" in manifest.sitemap_url


def from_manifests(
    known: list[Known], states: Path, folder: Path, file: str | None
) -> Target | None:
    """The target that manifests describe; ``None`` if none of them lists the index ``file``."""
    hosts = [(path, each) for path, each in known if _is_of_hosts(each)]
    plain = [
        (path, each)
        for path, each in known
        if not _is_of_hosts(each) and file in (None, *(index.path for index in each.indexes))
    ]
    if hosts and not plain:
        return _of_host(hosts, states, folder, file)
    if not plain:
        return None
    urls = tuple(
        _address(each.sitemap_url, index.path)
        for _, each in plain
        for index in each.indexes
        if file in (None, index.path)
    )
    first = plain[0][0]
    if not urls:
        raise _empty(first)
    sites = {check_page(each.site, what=f"site in {path}").origin: each for path, each in plain}
    for url in urls:
        check_page(url, what=f"an index of {first}")
    if len(sites) > 1 or hosts:
        index = next(index.path for _, each in plain for index in each.indexes)
        raise ConfigError(
            f"{folder} contains sets of several sites, and each is announced separately: give an"
            f" index, such as {folder / index}",
            code="announce.several_sites",
        )
    count = sum(each.urls for _, each in plain)
    return Target(f"{next(iter(sites))}/", urls, count, states / ANNOUNCE, folder)


def _empty(manifest: Path) -> InputError:
    return InputError(f"{manifest}: lists no index: nothing to announce", code="announce.empty")


def _from_parent(folder: Path, file: str | None) -> Target | None:
    """The target for the folder of a host, if its parent contains a set of many hosts."""
    parent = folder.resolve().parent
    known = [(path, each) for path, each in _manifests(parent, None) if _is_of_hosts(each)]
    found = _of_host(known, parent / STATE, folder, file) if known else None
    return found if found is not None and found.indexes else None


def _of_host(known: list[Known], states: Path, folder: Path, file: str | None) -> Target | None:
    """The target for sets of many hosts: of one host if ``folder`` is the folder of that host."""
    path, first = known[0]
    own = folder.resolve().name
    all_indexes = [index for _, each in known for index in each.indexes]
    indexes = [index for index in all_indexes if index.path.startswith(f"{own}/")]
    if file is not None:
        indexes = [index for index in indexes if index.path == f"{own}/{file}"]
        if not indexes:
            return None
    if not indexes:
        parts = tuple(dict.fromkeys(index.path.partition("/")[0] for index in all_indexes))
        if not parts:
            raise _empty(path)
        home = check_page(first.site, what=f"site in {path}").origin + "/"
        count = sum(each.urls for _, each in known)
        return Target(home, (), count, states / ANNOUNCE, folder, True, parts)
    urls = tuple(str(index.url) for index in indexes)
    pages = [check_page(url, what=f"an index of {path}") for url in urls]
    shards = [shard for _, each in known for shard in each.shards]
    count = sum(shard.urls for shard in shards if shard.path.startswith(f"{own}/"))
    state = states / ANNOUNCE / own
    return Target(f"{pages[0].origin}/", urls, count, state, folder, many_hosts=True)


def _address(base: str, path: str) -> str:
    return base.rstrip("/") + "/" + quote(path.lstrip("/"), safe="/!$&'()*+,;=:@~")


def from_files(path: Path, folder: Path, states: Path, sitemap_url: str | None) -> Target:
    """Without a manifest: the index files themselves."""
    if path.is_dir():
        files = sorted(p for p in folder.iterdir() if p.suffix == ".xml" and p.is_file())
        listings = [(file, read_index(file)) for file in files[: MAX_INDEXES + 1]]
        listings = [(file, listing) for file, listing in listings if listing.kind == "index"]
        if not listings:
            raise InputError(
                f"{folder}: contains neither a manifest of urlset nor a sitemap index (*.xml)",
                code="announce.no_target",
            )
    else:
        listings = [(path, read_index(path))]
    urls = [
        _address(_base(file, listing) if sitemap_url is None else sitemap_url, file.name)
        for file, listing in listings
    ]
    pages = [check_page(url, what="the URL of an index") for url in urls]
    return Target(
        f"{pages[0].origin}/",
        tuple(urls),
        None,
        states / ANNOUNCE,
        folder,
        derived=sitemap_url is None,
    )


def _base(file: Path, index: Listing) -> str:
    """The folder of all URLs that an index lists, which is its own as well.

    Raises:
        ConfigError: ``announce.no_address``: they are in no folder, or in several.
    """
    locs = [child.loc for child in index.children if split(child.loc) is not None]
    folders = {loc.rsplit("/", 1)[0] for loc in locs}
    if len(folders) != 1:
        raise ConfigError(
            f"{file} does not determine its own URL: give --sitemap-url URL",
            code="announce.no_address",
        )
    return folders.pop()
