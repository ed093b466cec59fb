"""advertools reads an index and its sitemaps into a data frame, which becomes a Parquet file.

python benches/peers/advertools_read.py file:///FOLDER/sitemap.xml OUT.parquet
"""

import logging
import sys

from advertools import sitemap_to_df

logging.disable(logging.INFO)
sitemap_to_df(sys.argv[1]).to_parquet(sys.argv[2])
