//! Entries as Arrow batches.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StructArray, new_null_array};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field as Column, Fields, Schema, SchemaRef, TimeUnit};

use crate::inspect::check::value;
use crate::inspect::document::entry::{Entry, Field, NewsField, VideoField};
use crate::sitemap::date::Written;

/// Rows of a batch.
pub const ROWS: usize = 16_384;
/// Text bytes of a batch, so that long entries make short batches.
const BYTES: usize = 16 << 20;

fn utf8(name: &str) -> Column {
    Column::new(name, DataType::Utf8, true)
}

fn list(name: &str, item: DataType) -> Column {
    Column::new(name, DataType::List(Arc::new(Column::new("item", item, true))), true)
}

fn alternate_fields() -> Fields {
    Fields::from(vec![utf8("lang"), utf8("href")])
}

fn video_fields() -> Fields {
    let columns = VideoField::ALL.iter().map(|(field, name)| match field {
        VideoField::Duration | VideoField::ViewCount => Column::new(*name, DataType::Int64, true),
        VideoField::Rating => Column::new(*name, DataType::Float64, true),
        VideoField::Tag => list(name, DataType::Utf8),
        _ => utf8(name),
    });
    columns.collect()
}

fn news_fields() -> Fields {
    NewsField::ALL.iter().map(|(_, name)| utf8(name)).collect()
}

/// The columns of rows that were read back.
pub fn schema() -> SchemaRef {
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        utf8("loc"),
        Column::new("lastmod", instant, true),
        utf8("lastmod_text"),
        utf8("changefreq"),
        Column::new("priority", DataType::Float64, true),
        list("images", DataType::Utf8),
        list("alternates", DataType::Struct(alternate_fields())),
        list("video", DataType::Struct(video_fields())),
        Column::new("news", DataType::Struct(news_fields()), true),
        utf8("shard"),
    ]))
}

/// A nested column under construction: where each row's items end, and which rows have none.
#[derive(Default)]
struct Lists {
    ends: Vec<i32>,
    valid: Vec<bool>,
}

impl Lists {
    fn row(&mut self, items: usize) {
        let before = self.ends.last().copied().unwrap_or(0);
        self.valid.push(items as i32 > before);
        self.ends.push(items as i32);
    }

    fn finish(self, column: &DataType, items: ArrayRef) -> Result<ArrayRef, ArrowError> {
        let rows = self.ends.len();
        let DataType::List(item) = column else { return Ok(new_null_array(column, rows)) };
        if items.is_empty() {
            return Ok(new_null_array(column, rows));
        }
        let offsets = std::iter::once(0).chain(self.ends).collect::<Vec<i32>>();
        let mut nulls = NullBufferBuilder::new(rows);
        self.valid.iter().for_each(|&valid| nulls.append(valid));
        let offsets = OffsetBuffer::new(offsets.into());
        Ok(Arc::new(ListArray::try_new(item.clone(), offsets, items, nulls.finish())?))
    }
}

/// Rows under construction.
pub struct Rows {
    schema: SchemaRef,
    shard: String,
    loc: StringBuilder,
    lastmod: TimestampMicrosecondBuilder,
    lastmod_text: StringBuilder,
    changefreq: StringBuilder,
    priority: Float64Builder,
    images: Lists,
    image: StringBuilder,
    alternates: Lists,
    lang: StringBuilder,
    href: StringBuilder,
    videos: Lists,
    video: Vec<StringBuilder>,
    duration: Int64Builder,
    view_count: Int64Builder,
    rating: Float64Builder,
    tags: Lists,
    tag: StringBuilder,
    news: Vec<StringBuilder>,
    has_news: Vec<bool>,
    bytes: usize,
}

impl Rows {
    /// No rows yet; `shard` is their last column.
    pub fn new(schema: SchemaRef, shard: String) -> Rows {
        Rows {
            schema,
            shard,
            loc: StringBuilder::new(),
            lastmod: TimestampMicrosecondBuilder::new().with_timezone("UTC"),
            lastmod_text: StringBuilder::new(),
            changefreq: StringBuilder::new(),
            priority: Float64Builder::new(),
            images: Lists::default(),
            image: StringBuilder::new(),
            alternates: Lists::default(),
            lang: StringBuilder::new(),
            href: StringBuilder::new(),
            videos: Lists::default(),
            video: VideoField::ALL.iter().map(|_| StringBuilder::new()).collect(),
            duration: Int64Builder::new(),
            view_count: Int64Builder::new(),
            rating: Float64Builder::new(),
            tags: Lists::default(),
            tag: StringBuilder::new(),
            news: NewsField::ALL.iter().map(|_| StringBuilder::new()).collect(),
            has_news: Vec::new(),
            bytes: 0,
        }
    }

    /// Whether the batch is to be given out.
    pub fn is_full(&self) -> bool {
        self.loc.len() >= ROWS || self.bytes >= BYTES
    }

    /// Whether there is a row.
    pub fn is_empty(&self) -> bool {
        self.loc.len() == 0
    }

    /// Adds an entry. What is no number, no date or no text becomes null.
    pub fn push(&mut self, entry: &Entry<'_>) {
        self.bytes += entry.loc.len() + entry.arena.len();
        text(&mut self.loc, Some(entry.loc).filter(|loc| !loc.is_empty()));
        let lastmod = entry.lastmod.and_then(|lastmod| Written::w3c(lastmod).ok());
        self.lastmod.append_option(lastmod.map(|lastmod| lastmod.instant()));
        text(&mut self.lastmod_text, entry.lastmod);
        text(&mut self.changefreq, entry.changefreq.map(value::trim));
        self.priority.append_option(entry.priority.and_then(number));
        if !entry.parts.is_empty() {
            self.parts(entry);
        }
        self.images.row(self.image.len());
        self.alternates.row(self.href.len());
        self.videos.row(self.duration.len());
        if self.has_news.len() < self.loc.len() {
            self.has_news.push(false);
            self.news.iter_mut().for_each(StringBuilder::append_null);
        }
    }

    fn parts(&mut self, entry: &Entry<'_>) {
        let mut parts = entry.parts.iter().peekable();
        while let Some(part) = parts.next() {
            let written = entry.text(part);
            match part.field {
                Field::ImageLoc => text(&mut self.image, Some(written)),
                Field::AlternateLang => text(&mut self.lang, Some(written)),
                Field::AlternateHref => text(&mut self.href, Some(written)),
                Field::Video => {
                    let mut of_video: [Option<&[u8]>; 32] = [None; 32];
                    while let Some(next) = parts.peek()
                        && let Field::VideoPart(field) = next.field
                    {
                        let written = entry.text(next);
                        if field == VideoField::Tag {
                            text(&mut self.tag, Some(written));
                        } else if let Some(slot) = of_video.get_mut(field as usize) {
                            *slot = Some(written);
                        }
                        parts.next();
                    }
                    for (column, (field, _)) in self.video.iter_mut().zip(VideoField::ALL) {
                        let written = of_video.get(*field as usize).copied().flatten();
                        match field {
                            VideoField::Duration => {
                                self.duration.append_option(written.and_then(whole))
                            }
                            VideoField::ViewCount => {
                                self.view_count.append_option(written.and_then(whole))
                            }
                            VideoField::Rating => {
                                self.rating.append_option(written.and_then(number))
                            }
                            VideoField::Tag => {}
                            _ => text(column, written),
                        }
                    }
                    self.tags.row(self.tag.len());
                }
                Field::News if self.has_news.len() < self.loc.len() => {
                    let mut of_news: [Option<&[u8]>; 16] = [None; 16];
                    while let Some(next) = parts.peek()
                        && let Field::NewsPart(field) = next.field
                    {
                        if let Some(slot) = of_news.get_mut(field as usize) {
                            *slot = Some(entry.text(next));
                        }
                        parts.next();
                    }
                    self.has_news.push(true);
                    for (column, (field, _)) in self.news.iter_mut().zip(NewsField::ALL) {
                        text(column, of_news.get(*field as usize).copied().flatten());
                    }
                }
                _ => {}
            }
        }
    }

    /// The batch; the rows begin anew.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let fresh = Rows::new(self.schema.clone(), std::mem::take(&mut self.shard));
        let mut this = std::mem::replace(self, fresh);
        let rows = this.loc.len();
        let kind = |n: usize| this.schema.field(n).data_type();
        let mut shard = StringBuilder::with_capacity(rows, rows * self.shard.len());
        (0..rows).for_each(|_| shard.append_value(&self.shard));
        let link: Vec<ArrayRef> = vec![Arc::new(this.lang.finish()), Arc::new(this.href.finish())];
        let link = StructArray::try_new(alternate_fields(), link, None)?;
        let video = {
            let fields = video_fields();
            let tags = this.tags.finish(
                fields[VideoField::Tag as usize].data_type(),
                Arc::new(this.tag.finish()),
            )?;
            let mut columns = Vec::new();
            for (builder, (field, _)) in this.video.iter_mut().zip(VideoField::ALL) {
                let column: ArrayRef = match field {
                    VideoField::Duration => Arc::new(this.duration.finish()),
                    VideoField::ViewCount => Arc::new(this.view_count.finish()),
                    VideoField::Rating => Arc::new(this.rating.finish()),
                    VideoField::Tag => tags.clone(),
                    _ => Arc::new(builder.finish()),
                };
                columns.push(column);
            }
            StructArray::try_new(fields, columns, None)?
        };
        let news: ArrayRef = if this.has_news.contains(&true) {
            let columns = this.news.iter_mut().map(|b| Arc::new(b.finish()) as ArrayRef).collect();
            Arc::new(StructArray::try_new(news_fields(), columns, Some(this.has_news.into()))?)
        } else {
            new_null_array(kind(8), rows)
        };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(this.loc.finish()),
            Arc::new(this.lastmod.finish()),
            Arc::new(this.lastmod_text.finish()),
            Arc::new(this.changefreq.finish()),
            Arc::new(this.priority.finish()),
            this.images.finish(kind(5), Arc::new(this.image.finish()))?,
            this.alternates.finish(kind(6), Arc::new(link))?,
            this.videos.finish(kind(7), Arc::new(video))?,
            news,
            Arc::new(shard.finish()),
        ];
        RecordBatch::try_new(this.schema.clone(), columns)
    }
}

/// Appends bytes that are UTF-8, or else with U+FFFD in the place of what is not.
pub(crate) fn text(builder: &mut StringBuilder, bytes: Option<&[u8]>) {
    match bytes.map(simdutf8::basic::from_utf8) {
        None => builder.append_null(),
        Some(Ok(text)) => builder.append_value(text),
        Some(Err(_)) => builder.append_value(String::from_utf8_lossy(bytes.unwrap_or_default())),
    }
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok().filter(|n: &f64| n.is_finite())
}

fn whole(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
