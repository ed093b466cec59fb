//! Videos of a `<url>` (PROTOCOL section 2, *Video*), in the order of the schema.

use crate::build::render::block::{At, Blocks, Rejected, json_of};
use crate::build::render::text::{escape_text, is_empty, plain};
use crate::flow::cell::Cell;
use crate::flow::chunk::Chunk;
use crate::flow::value::Value;
use crate::sitemap::characters::trim;
use crate::sitemap::iso::REGIONS;
use crate::sitemap::url;

/// The tags that can be mapped, as codes; the last part is the name.
pub(crate) const TAGS: &[&str] = &[
    "video.thumbnail_loc",
    "video.title",
    "video.description",
    "video.content_loc",
    "video.player_loc",
    "video.duration",
    "video.expiration_date",
    "video.rating",
    "video.view_count",
    "video.publication_date",
    "video.tag",
    "video.family_friendly",
    "video.restriction",
    "video.restriction_relationship",
    "video.requires_subscription",
    "video.uploader",
    "video.uploader_info",
    "video.platform",
    "video.platform_relationship",
    "video.live",
];
const THUMBNAIL: usize = 0;
const TITLE: usize = 1;
const DESCRIPTION: usize = 2;
const CONTENT: usize = 3;
const PLAYER: usize = 4;
const DURATION: usize = 5;
const EXPIRATION: usize = 6;
const RATING: usize = 7;
const VIEWS: usize = 8;
const PUBLICATION: usize = 9;
const TAG: usize = 10;
const FAMILY: usize = 11;
const RESTRICTION: usize = 12;
const SUBSCRIPTION: usize = 14;
const UPLOADER: usize = 15;
const INFO: usize = 16;
const PLATFORM: usize = 17;
const LIVE: usize = 19;

/// The tags that hold an address.
pub(crate) const URLS: [usize; 4] = [THUMBNAIL, CONTENT, PLAYER, INFO];

const MOST_TAGS: usize = 32;

/// Appends a `<video:video>`; false if one of the required tags is missing or wrong.
pub(crate) fn write(blocks: &mut Blocks, at: &At<'_>, chunk: &mut Chunk) -> Result<bool, Rejected> {
    let start = chunk.bytes.len();
    chunk.bytes.extend_from_slice(b"<video:video>");
    if !required(blocks, at, chunk)? {
        chunk.bytes.truncate(start);
        return Ok(false);
    }
    blocks.tag(at, DURATION, b"", chunk, |blocks, value, chunk| {
        whole(blocks, value, 1..=28_800, "is no number of seconds from 1 to 28800", chunk)
    })?;
    blocks.tag(at, EXPIRATION, b"", chunk, |_, value, chunk| {
        Blocks::date(at, value, chunk).map(drop)
    })?;
    blocks.tag(at, RATING, b"", chunk, rating)?;
    blocks.tag(at, VIEWS, b"", chunk, |blocks, value, chunk| {
        whole(blocks, value, 0..=u64::MAX, "is no whole number", chunk)
    })?;
    blocks.tag(at, PUBLICATION, b"", chunk, |_, value, chunk| {
        Blocks::date(at, value, chunk).map(drop)
    })?;
    tags(blocks, at, chunk)?;
    blocks.tag(at, FAMILY, b"", chunk, yes_no)?;
    let relationship = |tag: usize| {
        let mut text = Vec::new();
        plain(at.values[tag + 1], &mut text)?;
        text.make_ascii_lowercase();
        match &text[..] {
            b"allow" => Some(&b" relationship=\"allow\""[..]),
            b"deny" => Some(&b" relationship=\"deny\""[..]),
            _ => None,
        }
    };
    const RELATIONSHIP: &str = "needs a relationship, allow or deny";
    let how = relationship(RESTRICTION);
    blocks.tag(at, RESTRICTION, how.unwrap_or_default(), chunk, |_, value, chunk| {
        how.ok_or(RELATIONSHIP)?;
        words(value, chunk, |word| {
            word.make_ascii_uppercase();
            REGIONS.has(word)
        })
        .ok_or("is no list of countries by their codes of ISO 3166")
    })?;
    blocks.tag(at, SUBSCRIPTION, b"", chunk, yes_no)?;
    let info = info(blocks, at, chunk)?;
    blocks.tag(at, UPLOADER, &info, chunk, |b, value, chunk| b.text(at, value, 255, chunk))?;
    let how = relationship(PLATFORM);
    blocks.tag(at, PLATFORM, how.unwrap_or_default(), chunk, |_, value, chunk| {
        how.ok_or(RELATIONSHIP)?;
        words(value, chunk, |word| {
            word.make_ascii_lowercase();
            matches!(&*word, b"web" | b"mobile" | b"tv")
        })
        .ok_or("is no list of web, mobile and tv")
    })?;
    blocks.tag(at, LIVE, b"", chunk, yes_no)?;
    chunk.bytes.extend_from_slice(b"</video:video>");
    Ok(true)
}

fn required(blocks: &mut Blocks, at: &At<'_>, chunk: &mut Chunk) -> Result<bool, Rejected> {
    for (tag, most) in [(THUMBNAIL, 0), (TITLE, 100), (DESCRIPTION, 2_048)] {
        if is_empty(at.values[tag]) {
            blocks.wrong(at, tag, "is missing, and a video needs it", chunk)?;
            return Ok(false);
        }
        let written = blocks.tag(at, tag, b"", chunk, |blocks, value, chunk| match tag {
            THUMBNAIL => url(blocks, at, value, chunk),
            _ => blocks.text(at, value, most, chunk),
        })?;
        if !written {
            return Ok(false);
        }
    }
    if is_empty(at.values[CONTENT]) && is_empty(at.values[PLAYER]) {
        let message = "is missing, and player_loc too; a video needs one of them";
        blocks.wrong(at, CONTENT, message, chunk)?;
        return Ok(false);
    }
    let mut source = false;
    for tag in [CONTENT, PLAYER] {
        source |= blocks.tag(at, tag, b"", chunk, |blocks, value, chunk| {
            let from = chunk.bytes.len();
            url(blocks, at, value, chunk)?;
            if chunk.bytes[from..] == *at.loc {
                return Err("is the page itself; write the address of the video or of its player");
            }
            Ok(())
        })?;
    }
    Ok(source)
}

fn url(
    blocks: &mut Blocks,
    at: &At<'_>,
    value: Value<'_>,
    chunk: &mut Chunk,
) -> Result<(), &'static str> {
    let Some(Cell::Text(text)) = value.cell() else { return Err("is no URL") };
    let info = (at.rules.any.write(text, &mut blocks.encoded, &mut chunk.bytes))
        .map_err(|fault| fault.message())?;
    info.of_other().notes().for_each(|code| chunk.note(code));
    Ok(())
}

/// A whole number, however it is stored.
fn whole(
    blocks: &mut Blocks,
    value: Value<'_>,
    range: std::ops::RangeInclusive<u64>,
    wrong: &'static str,
    chunk: &mut Chunk,
) -> Result<(), &'static str> {
    plain(value, &mut blocks.scratch).ok_or(wrong)?;
    let text = std::str::from_utf8(&blocks.scratch).map_err(|_| wrong)?;
    // 90.0 is what pandas makes of integers with gaps
    let digits = match text.split_once('.') {
        Some((digits, zeros)) if zeros.bytes().all(|byte| byte == b'0') => digits,
        _ => text,
    };
    let number: u64 = digits.parse().map_err(|_| wrong)?;
    if !range.contains(&number) {
        return Err(wrong);
    }
    chunk.bytes.extend_from_slice(number.to_string().as_bytes());
    Ok(())
}

/// A number from 0 to 5 as a plain decimal, which is what the schema reads.
fn rating(blocks: &mut Blocks, value: Value<'_>, chunk: &mut Chunk) -> Result<(), &'static str> {
    const WRONG: &str = "is no number from 0.0 to 5.0";
    plain(value, &mut blocks.scratch).ok_or(WRONG)?;
    let text = std::str::from_utf8(&blocks.scratch).map_err(|_| WRONG)?;
    let number: f64 = text.parse().map_err(|_| WRONG)?;
    if !(0.0..=5.0).contains(&number) {
        return Err(WRONG);
    }
    // never with an exponent; -0 without its sign
    chunk.bytes.extend_from_slice(format!("{}", number.abs()).as_bytes());
    Ok(())
}

fn yes_no(blocks: &mut Blocks, value: Value<'_>, chunk: &mut Chunk) -> Result<(), &'static str> {
    const WRONG: &str = "is neither yes nor no";
    plain(value, &mut blocks.scratch).ok_or(WRONG)?;
    blocks.scratch.make_ascii_lowercase();
    let word: &[u8] = match &blocks.scratch[..] {
        b"yes" | b"true" | b"1" => b"yes",
        b"no" | b"false" | b"0" => b"no",
        _ => return Err(WRONG),
    };
    chunk.bytes.extend_from_slice(word);
    Ok(())
}

/// Words, from a list or from a text with blanks or commas between them, each made canonical and
/// checked by `check`; appended with one blank between.
fn words(
    value: Value<'_>,
    chunk: &mut Chunk,
    mut check: impl FnMut(&mut [u8]) -> bool,
) -> Option<()> {
    let mut text = Vec::new();
    let mut whole = true;
    let is_list = value.items(|item| {
        whole &= item.cell().is_some_and(|cell| matches!(cell, Cell::Text(_)));
        if let Some(cell) = item.cell() {
            cell.write(&mut text);
            text.push(b' ');
        }
    });
    if !is_list {
        value.cell()?.write(&mut text);
    }
    let start = chunk.bytes.len();
    let parts = text.split_mut(|byte| matches!(byte, b' ' | b',' | b'\t' | b'\n' | b'\r'));
    for word in parts.filter(|word| !word.is_empty()) {
        if !check(word) {
            return None;
        }
        if chunk.bytes.len() > start {
            chunk.bytes.push(b' ');
        }
        chunk.bytes.extend_from_slice(word);
    }
    (whole && chunk.bytes.len() > start).then_some(())
}

/// The tags: one, or a list.
fn tags(blocks: &mut Blocks, at: &At<'_>, chunk: &mut Chunk) -> Result<(), Rejected> {
    let value = at.values[TAG];
    let json = json_of(value);
    let value = json.as_ref().map_or(value, Value::Json);
    let mut written = 0;
    let mut result = Ok(());
    let mut one = |item: Value<'_>| {
        if result.is_err() || is_empty(item) {
            return;
        }
        if written == MOST_TAGS {
            chunk.note("video.over_32_tags");
            return;
        }
        let mut values = at.values.to_vec();
        values[TAG] = item;
        let at = At { values: &values, ..*at };
        let most = usize::MAX;
        result = blocks
            .tag(&at, TAG, b"", chunk, |b, value, chunk| b.text(&at, value, most, chunk))
            .map(|done| {
                written += usize::from(done);
            });
    };
    if !value.items(&mut one) {
        one(value);
    }
    result
}

/// The attribute with the page of the uploader, which is on the domain of loc.
fn info(blocks: &mut Blocks, at: &At<'_>, chunk: &mut Chunk) -> Result<Vec<u8>, Rejected> {
    let mut attribute = Vec::new();
    let value = at.values[INFO];
    if is_empty(value) || is_empty(at.values[UPLOADER]) {
        return Ok(attribute);
    }
    let encoded = match value.cell() {
        Some(Cell::Text(text)) => at.rules.any.encode(trim(text), &mut blocks.encoded).is_ok(),
        _ => false,
    };
    if !encoded || !url::same_domain(&blocks.encoded, at.loc) {
        blocks.wrong(at, INFO, "is no URL on the domain of the page", chunk)?;
        return Ok(attribute);
    }
    attribute.extend_from_slice(b" info=\"");
    escape_text(&blocks.encoded, &mut attribute);
    attribute.push(b'"');
    Ok(attribute)
}
