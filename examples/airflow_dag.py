"""An Airflow DAG: sitemaps every night. Airflow 3; this file was compiled, but not run.

Put it into the folder of the DAGs. urlset must be installed where the tasks run.
"""

from datetime import datetime, timedelta

from airflow.sdk import dag, task


@dag(schedule="0 3 * * *", start_date=datetime(2026, 1, 1), catchup=False)
def sitemaps():
    @task(retries=3, retry_delay=timedelta(minutes=5))
    def publish() -> int:
        # imported in the task: the scheduler reads this file often
        import urlset
        from airflow.exceptions import AirflowFailException

        try:
            report = urlset.build(
                "/data/products.parquet", site="https://www.shop.example", out="/srv/sitemaps"
            )
        except (urlset.ConfigError, urlset.DataError) as error:
            # the old set stays live; another attempt would fail as well
            raise AirflowFailException(str(error)) from error
        return report.urls

    publish()


sitemaps()
