"""A Dagster asset: sitemaps that are built whenever the catalog is.

SITEMAPS_SOURCE=products.parquet SITEMAPS_OUT=/srv/sitemaps dagster dev -f dagster_asset.py

An error of urlset fails the run with one line that says what to do, and the old set stays live.
"""

import os

import dagster
import urlset


@dagster.asset
def sitemaps() -> dagster.MaterializeResult:
    """The sitemaps of the shop."""
    try:
        report = urlset.build(
            os.environ["SITEMAPS_SOURCE"],
            site="https://www.shop.example",
            out=os.environ["SITEMAPS_OUT"],
        )
    except urlset.Error as error:
        # the data or the options are wrong: another attempt would fail as well
        raise dagster.Failure(description=str(error), allow_retries=False) from error
    return dagster.MaterializeResult(
        metadata={
            "urls": report.urls,
            "rejected rows": report.rejected,
            "sitemaps": len(report.shards),
            "changed sitemaps": sum(shard.changed for shard in report.shards),
            "index": dagster.MetadataValue.url(report.url or ""),
        }
    )


definitions = dagster.Definitions(assets=[sitemaps])
