"""A Ray job: a Parquet folder to sitemaps.

python ray_job.py products/ https://www.shop.example /mnt/shared/sitemaps

`products` has the columns url and updated_at. Each task writes the sitemaps of its blocks, and one
commit publishes all of them: visitors see the old set or the new one.
"""

import sys

import ray
import urlset.ray


def main() -> None:
    products, site, out = sys.argv[1:]
    rows = ray.data.read_parquet(products, columns=["url", "updated_at"])
    report = urlset.ray.write(
        rows,
        site=site,
        out=out,  # a folder that all machines share, or s3://bucket/prefix
        loc="url",
        lastmod="updated_at",
        max_shrink="30%",  # an incomplete dataset does not replace the set
    )
    print(f"{report.urls} URLs in {len(report.shards)} sitemaps")


if __name__ == "__main__":
    main()
