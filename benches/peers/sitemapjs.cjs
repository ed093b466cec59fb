// sitemap.js (npm `sitemap`): SitemapAndIndexStream with the options of its own README.
//
//     node benches/peers/sitemapjs.cjs CATALOG.csv OUT [--plain]   (where `npm install sitemap` ran)
//
// The CSV is read by lines and cut by hand, which costs less than any CSV package; the cells of the
// default catalogs hold no line breaks.
const fs = require('fs');
const path = require('path');
const readline = require('readline');
const zlib = require('zlib');
const { Readable } = require('stream');
const { pipeline } = require('stream/promises');
const { createRequire } = require('module');
const { SitemapAndIndexStream, SitemapStream } = createRequire(process.cwd() + '/')('sitemap');

const SITE = 'https://www.shop.example';
const [source, out, mode] = process.argv.slice(2);

function cells(line) {
  if (!line.includes('"')) return line.split(',');
  const found = [];
  let cell = '';
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const c = line[i];
    if (quoted && c === '"' && line[i + 1] === '"') {
      cell += '"';
      i++;
    } else if (c === '"') {
      quoted = !quoted;
    } else if (c === ',' && !quoted) {
      found.push(cell);
      cell = '';
    } else {
      cell += c;
    }
  }
  found.push(cell);
  return found;
}

async function* items() {
  let columns = null;
  for await (const line of readline.createInterface({ input: fs.createReadStream(source) })) {
    const row = cells(line);
    if (columns === null) {
      columns = ['url', 'updated_at', 'priority'].map((name) => row.indexOf(name));
      continue;
    }
    yield { url: row[columns[0]], lastmod: row[columns[1]], priority: Number(row[columns[2]]) };
  }
}

const finished = [];
const stream = new SitemapAndIndexStream({
  limit: 50000,
  getSitemapStream: (number) => {
    const shard = new SitemapStream({
      hostname: SITE,
      xmlns: { news: false, xhtml: false, image: false, video: false },
    });
    const name = `sitemap-${number}.xml` + (mode === '--plain' ? '' : '.gz');
    const file = fs.createWriteStream(path.join(out, name));
    const last = mode === '--plain' ? shard.pipe(file) : shard.pipe(zlib.createGzip({ level: 1 })).pipe(file);
    finished.push(new Promise((done, failed) => last.on('finish', done).on('error', failed)));
    return [`${SITE}/${name}`, shard, last];
  },
});

(async () => {
  const index = fs.createWriteStream(path.join(out, 'sitemap-index.xml'));
  await pipeline(Readable.from(items()), stream, index);
  await Promise.all(finished);
})().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
