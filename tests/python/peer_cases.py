"""The checks of the test suites of three other generators: input, their result, that of urlset.

The peers are those whose users are most likely to move to urlset. The sentences and the code are
this project's own; only the facts (which input gives which result) come from the peers' suites.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SITE = "http://example.com"
NEWS = {"news": ["name=name", "language=language", "publication_date=date", "title=title"]}


@dataclass(frozen=True)
class Case:
    """One fact.

    Attributes:
        peer: the project whose suite contains the case.
        what: the behaviour, as in docs/peers.md.
        rows: columns of the catalog.
        options: of the build.
        locs: the expected entries, in order; None if nothing is published.
        contains: texts of elements of the first entry, by path of local names.
        lacks: local names that no entry may contain.
        rejects: the number of rejected rows by code.
        warnings: codes that the report must contain.
        sizes: entries of each shard, if the case is about them.
        error: the code of the error that ends the build.
        differs: the behaviour of the peer, if urlset differs.
    """

    peer: str
    what: str
    rows: dict[str, list[Any]]
    options: dict[str, Any] = field(default_factory=dict)
    locs: list[str] | None = None
    contains: dict[str, str] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()
    rejects: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    sizes: list[int] | None = None
    error: str | None = None
    differs: str | None = None


def _link(number: int) -> str:
    return f"{SITE}/mylink{number}"


def _video(**values: Any) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """A catalog of one row with one video, and the options that map it."""
    video = {
        "thumbnail_loc": f"{SITE}/thumb.jpg",
        "title": "A title",
        "description": "A description",
        "content_loc": f"{SITE}/video.mp4",
        **values,
    }
    rows: dict[str, list[Any]] = {"loc": [f"{SITE}/watch/1"]}
    rows |= {f"v_{tag}": [value] for tag, value in video.items()}
    return rows, {"video": [f"{tag}=v_{tag}" for tag in video]}


def _news(**values: Any) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    news = {
        "name": "The Paper",
        "language": "en",
        "date": "2026-01-02T03:04:05Z",
        "title": "A headline",
        **values,
    }
    return {"loc": [f"{SITE}/article/1"], **{key: [value] for key, value in news.items()}}, NEWS


def _video_case(peer: str, what: str, wrong: str | None, **values: Any) -> Case:
    """``wrong``: the code under which the video, or one of its tags, is omitted."""
    rows, options = _video(**values)
    return Case(
        peer, what, rows, options, [f"{SITE}/watch/1"], warnings=(wrong,) if wrong else (),
        differs="throws, unless an option makes it warn" if wrong else None,
    )  # fmt: skip


PHP, RUBY, JS = "samdark/sitemap", "sitemap_generator", "sitemap.js"

SAMDARK = [
    Case(PHP, "plain links", {"loc": [_link(1), _link(2)]}, locs=[_link(1), _link(2)]),
    Case(
        PHP, "lastmod, changefreq and priority in the order of the schema",
        {"loc": [_link(4)], "lastmod": ["2021-01-02T03:04:00+00:00"], "changefreq": ["daily"],
         "priority": [0.3]},
        locs=[_link(4)],
        contains={"lastmod": "2021-01-02T03:04:00Z", "changefreq": "daily", "priority": "0.3"},
    ),
    Case(
        PHP, "an ampersand in a URL is escaped", {"loc": [f"{SITE}/test.html&q=name"]},
        locs=[f"{SITE}/test.html&q=name"],
    ),
    Case(
        PHP, "a limit of two URLs per file", {"loc": [_link(n) for n in range(20)]},
        {"max_urls": 2}, locs=[_link(n) for n in range(20)], sizes=[2] * 10,
    ),
    Case(
        PHP, "an unknown changefreq",
        {"loc": [_link(1), _link(2)], "changefreq": ["daily", "invalid"]},
        locs=[_link(1), _link(2)], warnings=("changefreq.invalid",),
        differs="throws: nothing is written after it",
    ),
    Case(
        PHP, "a priority above 1", {"loc": [_link(1)], "priority": [2.0]}, locs=[_link(1)],
        lacks=("priority",), warnings=("priority.invalid",),
        differs="throws: nothing is written after it",
    ),
    Case(
        PHP, "text that is not a URL", {"loc": [_link(1), "notlink"]},
        {"max_rejects": "100%"}, locs=[_link(1)], rejects={"loc.relative": 1},
        differs="throws: nothing is written after it",
    ),
    Case(
        PHP, "a space in the host", {"loc": [_link(1), "http://bad host/invalid"]},
        {"max_rejects": "100%", "hosts": "any"}, locs=[_link(1)], rejects={"loc.host": 1},
        differs="throws: nothing is written after it",
    ),
    Case(
        PHP, "a port that is not a number", {"loc": [_link(1), "http://example.com:port/"]},
        {"max_rejects": "100%", "hosts": "any"}, locs=[_link(1)], rejects={"loc.host": 1},
        differs="throws: nothing is written after it",
    ),
    Case(
        PHP, "an ftp URL", {"loc": [_link(1), "ftp://example.com/files/export.xml"]},
        {"max_rejects": "100%"}, locs=[_link(1)], rejects={"loc.scheme": 1},
        differs="writes it; the protocol and all engines accept http and https only",
    ),
    Case(
        PHP, "letters outside ASCII in the path",
        {"loc": [f"{SITE}/zh/测试页面", f"{SITE}/ar/العامل"]},
        locs=[f"{SITE}/zh/%E6%B5%8B%E8%AF%95%E9%A1%B5%E9%9D%A2",
              f"{SITE}/ar/%D8%A7%D9%84%D8%B9%D8%A7%D9%85%D9%84"],
    ),
    Case(
        PHP, "a URL that is already percent-encoded",
        {"loc": [f"{SITE}/ar/%D8%A7%D9%84%D8%B9%D8%A7%D9%85%D9%84"]},
        locs=[f"{SITE}/ar/%D8%A7%D9%84%D8%B9%D8%A7%D9%85%D9%84"],
    ),
    Case(
        PHP, "letters outside ASCII in the query", {"loc": [f"{SITE}/search?q=café"]},
        locs=[f"{SITE}/search?q=caf%C3%A9"],
    ),
    Case(
        PHP, "a user name and a password before the host",
        {"loc": [_link(1), "http://user:secret@example.com/p"]},
        {"max_rejects": "100%"}, locs=[_link(1)], rejects={"loc.userinfo": 1},
        differs="writes them, and thus publishes a password",
    ),
    Case(
        PHP, "an IDN host", {"loc": ["http://пример.example/p"]}, {"hosts": "any"},
        locs=["http://xn--e1afmkfd.example/p"],
    ),
    Case(
        PHP, "a byte limit that is too small for any URL", {"loc": [_link(1)]}, {"max_bytes": 0},
        error="config.limit", differs="throws when the first URL is added",
    ),
    Case(
        PHP, "no URL", {"loc": []}, error="rows.none",
        differs="writes no file, and reports success",
    ),
    Case(
        PHP, "languages of a page, each with the full list",
        {"loc": [f"{SITE}/ru/mylink"], "en": [f"{SITE}/en/mylink"]},
        {"alternate": ["en=en"], "lang": "ru", "alternate_rows": True},
        locs=[f"{SITE}/ru/mylink", f"{SITE}/en/mylink"],
    ),
    Case(
        PHP, "languages count as separate URLs",
        {"loc": [f"{SITE}/ru/1", f"{SITE}/ru/2"], "en": [f"{SITE}/en/1", f"{SITE}/en/2"]},
        {"alternate": ["en=en"], "lang": "ru", "alternate_rows": True, "max_urls": 2},
        locs=[f"{SITE}/ru/1", f"{SITE}/en/1", f"{SITE}/ru/2", f"{SITE}/en/2"], sizes=[2, 2],
    ),
    Case(
        PHP, "a language with an invalid URL",
        {"loc": [f"{SITE}/ru/1"], "en": ["notlink"]},
        {"alternate": ["en=en"], "lang": "ru"}, locs=[f"{SITE}/ru/1"],
        warnings=("alternate.invalid",), differs="throws: nothing is written after it",
    ),
]  # fmt: skip

RUBY_CASES = [
    Case(RUBY, "a path is joined to the host", {"loc": ["/one"]}, locs=[f"{SITE}/one"]),
    Case(
        RUBY, "a path without a leading slash", {"loc": [_link(1), "profile"]},
        {"max_rejects": "100%"}, locs=[_link(1)], rejects={"loc.relative": 1},
        differs="joins it to the host, also N/A; urlset joins it only with --relative-urls",
    ),
    Case(
        RUBY, "a path without a leading slash, with an option", {"loc": ["profile"]},
        {"relative_urls": True}, locs=[f"{SITE}/profile"],
    ),
    Case(
        RUBY, "a host with a folder and a path that begins with a slash", {"loc": ["/profile"]},
        {"site": f"{SITE}/subdir/"}, locs=[f"{SITE}/profile"],
        differs="puts the folder before the path, unlike RFC 3986. In urlset use a template:"
        " --loc-template 'http://example.com/subdir{loc:raw}'",
    ),
    Case(
        RUBY, "a host with a folder and a path, by a template", {"path": ["/deep/profile/"]},
        {"loc_template": f"{SITE}/subdir{{path:raw}}"}, locs=[f"{SITE}/subdir/deep/profile/"],
    ),
    Case(
        RUBY, "no path", {"loc": [_link(1), None]}, {"max_rejects": "100%"}, locs=[_link(1)],
        rejects={"loc.empty": 1}, differs="writes the address of the host",
    ),
    Case(
        RUBY, "characters that are illegal in a URL", {"loc": [f"{SITE}/:$[]*"]},
        locs=[f"{SITE}/:$%5B%5D*"], differs="writes them unchanged",
    ),
    Case(
        RUBY, "letters outside ASCII in a path", {"loc": ["/RFC3986ü中文"]},
        locs=[f"{SITE}/RFC3986%C3%BC%E4%B8%AD%E6%96%87"],
    ),
    Case(
        RUBY, "a row without lastmod", {"loc": ["/home"]}, locs=[f"{SITE}/home"],
        lacks=("lastmod",), differs="writes the time of the run",
    ),
    Case(
        RUBY, "a row without priority and changefreq", {"loc": ["/home"]}, locs=[f"{SITE}/home"],
        lacks=("priority", "changefreq"), differs="writes 0.5 and weekly",
    ),
    Case(
        RUBY, "a date", {"loc": ["/1-of-them"], "lastmod": ["2010-01-01"]},
        locs=[f"{SITE}/1-of-them"], contains={"lastmod": "2010-01-01"},
    ),
    Case(
        RUBY, "a time in UTC", {"loc": ["/1-of-them"], "lastmod": ["1970-01-01T00:00:00+00:00"]},
        locs=[f"{SITE}/1-of-them"], contains={"lastmod": "1970-01-01T00:00:00Z"},
    ),
    Case(
        RUBY, "a time with an offset",
        {"loc": ["/1-of-them"], "lastmod": ["1970-01-01T08:00:00+08:00"]},
        locs=[f"{SITE}/1-of-them"], contains={"lastmod": "1970-01-01T00:00:00Z"},
        differs="keeps the offset; both name the same instant",
    ),
    Case(
        RUBY, "an integer as a time", {"loc": ["/1-of-them"], "lastmod": [0]},
        {"lastmod_epoch": "seconds"}, locs=[f"{SITE}/1-of-them"],
        contains={"lastmod": "1970-01-01T00:00:00Z"},
        differs="reads every integer as seconds since 1970; urlset requires --lastmod-epoch",
    ),
    Case(
        RUBY, "a lastmod that is not a date", {"loc": ["/1-of-them"], "lastmod": ["yesterday"]},
        locs=[f"{SITE}/1-of-them"], lacks=("lastmod",), warnings=("lastmod.invalid",),
        differs="writes the text unchanged",
    ),
    Case(
        RUBY, "the year 0", {"loc": ["/1-of-them"], "lastmod": ["0000-01-01"]},
        locs=[f"{SITE}/1-of-them"], lacks=("lastmod",), warnings=("lastmod.invalid",),
        differs="writes it; MySQL uses it for a missing date",
    ),
    Case(
        RUBY, "a priority of many digits", {"loc": ["/1-of-them"], "priority": [0.499999]},
        locs=[f"{SITE}/1-of-them"], contains={"priority": "0.5"},
    ),
    Case(
        RUBY, "a relative address of another language",
        {"loc": ["/page"], "es": ["/es/page"]}, {"alternate": ["es=es"]},
        locs=[f"{SITE}/page"], contains={"link@href": f"{SITE}/es/page"},
    ),
    Case(
        RUBY, "another language on another host",
        {"loc": ["/page"], "es": ["https://es.example.com/page"]}, {"alternate": ["es=es"]},
        locs=[f"{SITE}/page"], contains={"link@href": "https://es.example.com/page"},
    ),
    Case(
        RUBY, "more URLs than the limit of a file", {"loc": [f"/page-{n}" for n in range(7)]},
        {"max_urls": 3}, locs=[f"{SITE}/page-{n}" for n in range(7)], sizes=[3, 3, 1],
    ),
    Case(
        RUBY, "one file only", {"loc": ["/one-of-one"]}, locs=[f"{SITE}/one-of-one"], sizes=[1],
        differs="writes no index; urlset always writes one, so its address never changes",
    ),
    _video_case(RUBY, "a video", None),
    Case(RUBY, "news", *_news(), locs=[f"{SITE}/article/1"], contains={"title": "A headline"}),
]  # fmt: skip

SITEMAP_JS = [
    Case(JS, "a path is joined to the host name", {"loc": ["/"]}, {"site": SITE},
         locs=[f"{SITE}/"]),
    Case(
        JS, "no URL in a row", {"loc": [_link(1), ""]}, {"max_rejects": "100%"}, locs=[_link(1)],
        rejects={"loc.empty": 1}, differs="throws, warns or is silent, depending on an option",
    ),
    Case(
        JS, "a changefreq that is not allowed", {"loc": ["/1-of-2"], "changefreq": ["allllways"]},
        locs=[f"{SITE}/1-of-2"], lacks=("changefreq",), warnings=("changefreq.invalid",),
        differs="writes it, unless an option makes it throw",
    ),
    Case(
        JS, "a priority of 1.1", {"loc": ["/1-of-2"], "priority": [1.1]}, locs=[f"{SITE}/1-of-2"],
        lacks=("priority",), warnings=("priority.invalid",),
        differs="writes it, unless an option makes it throw",
    ),
    Case(
        JS, "a priority of six digits", {"loc": ["/1-of-2"], "priority": [0.789456]},
        locs=[f"{SITE}/1-of-2"], contains={"priority": "0.8"},
    ),
    Case(
        JS, "a day becomes an instant", {"loc": ["/1-of-2"], "lastmod": ["2019-01-01"]},
        locs=[f"{SITE}/1-of-2"], contains={"lastmod": "2019-01-01"},
        differs="writes midnight in UTC, which is not in the catalog",
    ),
    Case(
        JS, "an instant with milliseconds",
        {"loc": ["/1-of-2"], "lastmod": ["2019-01-01T00:00:00.000Z"]}, locs=[f"{SITE}/1-of-2"],
        contains={"lastmod": "2019-01-01T00:00:00Z"}, differs="keeps the milliseconds",
    ),
    Case(
        JS, "an image as text",
        {"loc": ["/1-of-2"], "img": ["http://example.com/img.jpg"]}, {"image": ["img"]},
        locs=[f"{SITE}/1-of-2"], contains={"image/loc": "http://example.com/img.jpg"},
    ),
    Case(
        JS, "several images", {"loc": ["/1-of-2"], "img": [["/img-1.jpg", "/img-2.jpg"]]},
        {"image": ["img"]}, locs=[f"{SITE}/1-of-2"], contains={"image/loc": f"{SITE}/img-1.jpg"},
    ),
    Case(
        JS, "an image with a caption and a title",
        {"loc": ["/1-of-2"], "img": [[{"loc": "/img-1.jpg", "caption": "An image"}]]},
        {"image": ["img"]}, locs=[f"{SITE}/1-of-2"], lacks=("image", "caption"),
        warnings=("image.invalid",),
        differs="writes all; urlset writes URLs only, since Google has ignored captions and titles"
        " since August 2022",
    ),
    Case(
        JS, "links to languages are joined to the host name",
        {"loc": ["/1-of-2"], "en": ["/lang"]}, {"alternate": ["en-us=en"]},
        locs=[f"{SITE}/1-of-2"], contains={"link@href": f"{SITE}/lang"},
    ),
    Case(
        JS, "a language with an underscore", {"loc": ["/1-of-2"], "en": ["/lang"]},
        {"alternate": ["en_US=en"]}, error="config.language",
        differs="writes it; engines ignore en_US and require en-US",
    ),
    Case(
        JS, "news without a title", *_news(title=None), locs=[f"{SITE}/article/1"],
        lacks=("news",), warnings=("news.title",), differs="throws",
    ),
    Case(
        JS, "news without a publication date", *_news(date=None), locs=[f"{SITE}/article/1"],
        lacks=("news",), warnings=("news.publication_date",), differs="throws",
    ),
    Case(
        JS, "news without a language", *_news(language=None), locs=[f"{SITE}/article/1"],
        lacks=("news",), warnings=("news.language",), differs="throws",
    ),
    _video_case(JS, "numbers of a video", None, view_count=12345, rating=4.5, duration=600),
    _video_case(JS, "a video without a thumbnail", "video.thumbnail_loc", thumbnail_loc=None),
    _video_case(JS, "a duration of more than eight hours", "video.duration", duration=28_801),
    _video_case(JS, "a description of more than 2,048 characters", "video.description",
                description="x" * 2_049),
    _video_case(JS, "a rating above 5", "video.rating", rating=5.1),
    _video_case(JS, "a view count below 0", "video.view_count", view_count=-1),
    _video_case(JS, "family_friendly that is neither yes nor no", "video.family_friendly",
                family_friendly="maybe"),
    _video_case(JS, "true for yes", None, live=True),
    Case(
        JS, "an item that fails in the middle",
        {"loc": ["/page-1", "ftp://example.com/x", "/page-3"]}, {"max_rejects": "100%"},
        locs=[f"{SITE}/page-1", f"{SITE}/page-3"], rejects={"loc.scheme": 1},
        differs="ends the stream by default and leaves the file incomplete",
    ),
    Case(
        JS, "no items", {"loc": []}, error="rows.none", differs="throws EmptyStream",
    ),
]  # fmt: skip

CASES = SAMDARK + RUBY_CASES + SITEMAP_JS
