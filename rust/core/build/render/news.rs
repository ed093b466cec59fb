//! The news article that a `<url>` is (PROTOCOL section 2, *News*).

use crate::build::render::block::{At, Blocks, Rejected};
use crate::build::render::text::plain;
use crate::config::NewsOld;
use crate::flow::chunk::Chunk;
use crate::sitemap::date::Lastmod;

/// The tags that can be mapped; all are required.
pub(crate) const TAGS: &[&str] =
    &["news.name", "news.language", "news.publication_date", "news.title"];
const NAME: usize = 0;
const LANGUAGE: usize = 1;
const DATE: usize = 2;
const TITLE: usize = 3;

/// Google News takes articles of the last two days.
const WINDOW: i64 = 2 * 86_400;

/// What became of a row's news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// There are none.
    None,
    /// They were written.
    Written,
    /// They are too old for the row to be kept.
    Old,
}

/// Appends a `<news:news>`.
pub(crate) fn write(blocks: &mut Blocks, at: &At<'_>, chunk: &mut Chunk) -> Result<News, Rejected> {
    let start = chunk.bytes.len();
    let most = usize::MAX;
    chunk.bytes.extend_from_slice(b"<news:news><news:publication>");
    let mut old = false;
    let mut whole =
        blocks.tag(at, NAME, b"", chunk, |b, value, chunk| b.text(at, value, most, chunk))?;
    whole &= blocks.tag(at, LANGUAGE, b"", chunk, |blocks, value, chunk| {
        plain(value, &mut blocks.scratch).ok_or("is no text")?;
        blocks.scratch.make_ascii_lowercase();
        let code = &blocks.scratch[..];
        let known = matches!(code, b"zh-cn" | b"zh-tw")
            || matches!(code.len(), 2 | 3) && code.iter().all(u8::is_ascii_lowercase);
        if !known {
            return Err("is no language of ISO 639; write two or three letters, zh-cn or zh-tw");
        }
        chunk.bytes.extend_from_slice(code);
        Ok(())
    })?;
    chunk.bytes.extend_from_slice(b"</news:publication>");
    whole &= blocks.tag(at, DATE, b"", chunk, |_, value, chunk| {
        let date = Blocks::date(at, value, chunk)?;
        // a date without a time may be that of an article of its last second
        let last = date.instant() + if matches!(date, Lastmod::Date(_)) { 86_399 } else { 0 };
        old = last < at.rules.now - WINDOW;
        Ok(())
    })?;
    whole &= blocks.tag(at, TITLE, b"", chunk, |b, value, chunk| b.text(at, value, most, chunk))?;
    if !whole {
        chunk.bytes.truncate(start);
        if let Some(missing) = at.values.iter().position(|value| super::text::is_empty(*value)) {
            blocks.wrong(at, missing, "is missing, and news need it", chunk)?;
        }
        return Ok(News::None);
    }
    match at.rules.news_old {
        NewsOld::Omit if old => {
            chunk.bytes.truncate(start);
            chunk.note("news.old");
            return Ok(News::None);
        }
        NewsOld::Drop if old => return Ok(News::Old),
        _ => {}
    }
    chunk.bytes.extend_from_slice(b"</news:news>");
    Ok(News::Written)
}
