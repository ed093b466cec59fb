"""DuckDB concatenates strings; Python cuts its Arrow batches into plain shards.

    python benches/peers/duckdb_concat.py CATALOG.csv OUT --plain

DuckDB reads and concatenates on all cores. An Arrow batch holds its texts one after another, so
cutting it needs no loop over the rows.
"""

import sys
from pathlib import Path

import duckdb
import pyarrow as pa

SITE = "https://www.shop.example"
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
QUERY = """
    SELECT '<url><loc>'
        || replace(replace(replace(url, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')
        || '</loc><lastmod>' || updated_at || '</lastmod><priority>' || priority
        || '</priority></url>' || chr(10) AS entry
    FROM read_csv(?, all_varchar = true, header = true)
"""


def texts(column: pa.Array) -> memoryview:
    """The bytes of all texts of a column, one after another."""
    width = "q" if pa.types.is_large_string(column.type) else "i"
    _, offsets, data = column.buffers()
    edges = memoryview(offsets).cast(width)
    return memoryview(data)[edges[column.offset] : edges[column.offset + len(column)]]


def main(source: str, out: str) -> None:
    """Writes shards of 50,000 URLs and their index."""
    folder = Path(out)
    names = []
    waiting: list[pa.Array] = []
    rows = 0

    def write() -> None:
        names.append(f"sitemap-{len(names) + 1:05}.xml")
        with (folder / names[-1]).open("wb") as file:
            file.write(f"{DECLARATION}<urlset {NAMESPACE}>\n".encode())
            file.writelines(map(texts, waiting))
            file.write(b"</urlset>\n")
        waiting.clear()

    batches = duckdb.execute(QUERY, [source]).to_arrow_reader(100_000)
    for batch in batches:
        column = batch.column(0)
        while len(column):
            part = column[: 50_000 - rows]
            waiting.append(part)
            rows += len(part)
            column = column[len(part) :]
            if rows == 50_000:
                write()
                rows = 0
    if rows:
        write()
    index = "".join(f"<sitemap><loc>{SITE}/{name}</loc></sitemap>\n" for name in names)
    (folder / "sitemap.xml").write_text(
        f"{DECLARATION}<sitemapindex {NAMESPACE}>\n{index}</sitemapindex>\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
