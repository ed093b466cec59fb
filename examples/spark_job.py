"""A Spark job: a Parquet folder to sitemaps.

spark-submit spark_job.py products/ https://www.shop.example /mnt/shared/sitemaps

`products` has the columns url, updated_at and in_stock. Each task writes the sitemaps of one
partition, and one commit publishes all of them: visitors see the old set or the new one.
"""

import sys

import urlset.spark
from pyspark.sql import SparkSession


def main() -> None:
    products, site, out = sys.argv[1:]
    spark = SparkSession.builder.appName("sitemaps").getOrCreate()
    urlset.spark.register(spark)
    rows = spark.read.parquet(products).where("in_stock").select("url", "updated_at")
    (
        rows.dropDuplicates(["url"])
        .write.format("urlset")
        .mode("overwrite")  # the set is replaced as a whole
        .option("site", site)
        .option("out", out)  # a folder that all machines share, or s3://bucket/prefix
        .option("loc", "url")
        .option("lastmod", "updated_at")
        .option("max_shrink", "30%")  # an incomplete table does not replace the set
        .save()
    )
    spark.stop()


if __name__ == "__main__":
    main()
