"""The page of ``audit``: of a real server with known faults, and of values that attack it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import urlset as package
from audit_site import FAULTS, nginx
from conftest import urlset
from report_pages import HOSTILE, number, parse
from urlset.audit.report import AuditReport, Estimate, Finding, Stratum
from urlset.html.audit import audit_page

pytestmark = pytest.mark.long


def shares(text: str) -> list[float]:
    """The estimate and its interval as the page writes them."""
    return [float(one.replace("under ", "")) for one in re.findall(r"([\d.]+) %", text)]


def test_a_complete_audit(tmp_path: Path) -> None:
    """The page of an audit that took every page has the planted numbers."""
    pages, path = 600, tmp_path / "r.html"
    with nginx(tmp_path) as site:
        folder = site.sitemaps(tmp_path / "set", pages, per_shard=200)
        ended = urlset("audit", folder, "--sample", "all", "--rate", 0, "--allow-private",
                       "--report", path, "--soft-404", "no such product")  # fmt: skip
    assert ended.status == 0, ended.err
    planted = Counter(FAULTS[end] for n in range(pages) if (end := site.loc(n)[-2:]) in FAULTS)
    page = parse(path)
    rows = {row[0]: row[1:] for row in page.table("Estimated shares of the URLs")}
    for code, total in planted.items():
        assert rows[code][0] == f"{100 * total / pages:.1f} %"  # no interval: all were taken
        assert number(rows[code][1]) == number(rows[code][2]) == total
        assert code in page.by_id("findings").text
    assert set(planted) == set(rows) - {"bad in all", "could not be judged"}
    strata = page.table("Share of bad pages by stratum")
    assert [number(row[2]) for row in strata] == [200] * 3


def test_a_sample_has_intervals(tmp_path: Path) -> None:
    with nginx(tmp_path) as site:
        folder = site.sitemaps(tmp_path / "set", 3_000)
        report = package.audit(folder, sample=300, rate=0, allow_private=True,
                               report=tmp_path / "r.html")  # fmt: skip
    page = parse(tmp_path / "r.html")
    rows = {row[0]: row[1:] for row in page.table("Estimated shares of the URLs")}
    for one in report.estimates:
        text = rows[{"bad": "bad in all"}.get(one.code, one.code)][0]
        wanted = [100 * one.share, 100 * one.low, 100 * one.high]
        assert all(abs(a - b) <= 0.1 for a, b in zip(shares(text), wanted, strict=True))
    # the bars are drawn to the scale that the page names
    axis = float(re.findall(r"from 0 to (\d+) %", page.by_id("estimates").text)[0])
    table = page.by_id("estimates").one("tbody")
    for row, one in zip(table.all("tr"), sorted_as(page, report), strict=True):
        _, interval, middle = row.one("svg").all("rect")
        percent = [float(interval.attributes[key].removesuffix("%")) for key in ("x", "width")]
        assert abs(percent[0] * axis / 100 - 100 * one.low) < 0.01
        assert abs(percent[1] * axis / 100 - 100 * (one.high - one.low)) < 0.02
        assert abs(float(middle.attributes["x"][:-1]) * axis / 100 - 100 * one.share) < 0.01


def sorted_as(page: object, report: AuditReport) -> list[Estimate]:
    """The estimates in the order of the page: the totals first."""
    totals = [one for one in report.estimates if one.code in ("bad", "unjudged")]
    return totals + [one for one in report.estimates if one not in totals]


def hostile_report() -> AuditReport:
    """What servers and sitemaps say: locations, details, types, names of strata."""
    estimates = (Estimate("bad", 1, 0.0, 0.0, 0.05), Estimate("redirect", 1, 1.0, 0.9, 1.0),
                 Estimate("timeout", 3, 0.02, 0.01, 0.03))  # fmt: skip
    samples = tuple(Finding("redirect", one, one, 301, one, one, 0.1) for one in HOSTILE)
    counts = {"redirect": 10**9, "timeout": 3, "content_type": 2, "rate_limited": 5}
    return AuditReport(
        target=HOSTILE[0], by=HOSTILE[3], seed=0, urls=10**12, sampled=9, judged=9, complete=False,
        covered=10**12, estimates=estimates,
        strata=tuple(Stratum(one, 10, 1, 1, estimates) for one in HOSTILE * 300),
        counts=counts, statuses={"301": 9}, content_types=dict.fromkeys(HOSTILE, 1),
        samples=samples, page_seconds={"median": 0.02, "p95": 70.0}, ok=False, max_bad=0.01,
        requests=9, seconds=1e6,
    )  # fmt: skip


def test_hostile_values_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    path.write_text(audit_page(hostile_report()), encoding="utf-8")
    page = parse(path)
    assert path.stat().st_size < 100_000
    assert HOSTILE[0] in page.one("h1").text and HOSTILE[1] in page.by_id("findings").text
    assert "more than the limit of 1.0 %" in page.one("main").text


def test_an_audit_without_any_judged_page(tmp_path: Path) -> None:
    report = AuditReport(
        target="set", by="shard", seed=0, urls=5, sampled=5, judged=0, complete=True, covered=0,
        estimates=(), strata=(Stratum("a", 5, 5, 0, ()),), counts={"rate_limited": 5},
        statuses={"429": 4, "none": 1}, content_types={}, samples=(), page_seconds={},
        ok=True, max_bad=None, requests=0,
        seconds=0.1,
    )  # fmt: skip
    path = tmp_path / "r.html"
    path.write_text(audit_page(report), encoding="utf-8")
    page = parse(path)
    assert page.one("strong").text == "No page could be judged"
    # of the pages asked, not of those that were judged
    assert page.table("HTTP status") == [["429", "4", "80.0 %"], ["none", "1", "20.0 %"]]


def test_what_the_server_said(tmp_path: Path) -> None:
    """The status is written once, although the details of redirects and errors begin with it."""
    said = [(301, "301, 302, 200: end"), (404, "HTTP 404"), (200, "2000 things"), (None, "no name"),
            (200, None), (None, None)]  # fmt: skip
    samples = tuple(
        Finding("redirect", f"https://a.de/{n}", "all", status, None, detail)
        for n, (status, detail) in enumerate(said)
    )
    report = replace(hostile_report(), samples=samples)
    path = tmp_path / "r.html"
    path.write_text(audit_page(report), encoding="utf-8")
    where = [one for one in parse(path).all("span") if one.attributes.get("class") == "where"]
    assert [one.text for one in where] == [
        "status 301, 302, 200: end", "status 404", "status 200, 2000 things", "no answer, no name",
        "status 200", "no answer",
    ]  # fmt: skip
