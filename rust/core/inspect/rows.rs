//! Entries as Arrow batches.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, Float64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Field as Column, Fields, Schema, SchemaRef, TimeUnit};

use crate::inspect::check::value;
use crate::inspect::document::entry::{Entry, PartField};
use crate::inspect::records::{self, BlockColumn, Lists, list, text, utf8};
use crate::sitemap::date::Written;
use crate::sitemap::extension::descriptor::{Extension, ExtensionMapping};
use crate::sitemap::extension::record::record;
use crate::sitemap::extension::{self, alternate, image};

/// Rows of a batch.
pub const ROWS: usize = 16_384;
/// Text bytes of a batch: long entries make short batches.
const BYTES: usize = 16 << 20;

fn alternate_fields() -> Fields {
    Fields::from(vec![utf8("lang"), utf8("href")])
}

/// The columns of `read`.
pub fn schema() -> SchemaRef {
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let mut columns = vec![
        utf8("loc"),
        Column::new("lastmod", instant, true),
        utf8("lastmod_text"),
        utf8("changefreq"),
        Column::new("priority", DataType::Float64, true),
        list(image::EXTENSION.column, DataType::Utf8),
        list(alternate::EXTENSION.column, DataType::Struct(alternate_fields())),
    ];
    columns.extend(blocks().map(|(place, extension)| {
        let fields = DataType::Struct(records::fields(record(place)));
        match extension.root.occurs.1 {
            1 => Column::new(extension.column, fields, true),
            _ => list(extension.column, fields),
        }
    }));
    columns.push(utf8("shard"));
    Arc::new(Schema::new(columns))
}

/// The extensions whose columns come from their descriptors, with their places.
fn blocks() -> impl Iterator<Item = (usize, &'static Extension)> {
    let places = extension::ALL.iter().copied().enumerate();
    places.filter(|(_, extension)| matches!(extension.mapping, ExtensionMapping::Fields(_)))
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
    /// by the place of the extension
    blocks: Vec<(usize, BlockColumn)>,
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
            blocks: blocks().map(|(place, _)| (place, BlockColumn::new(place))).collect(),
            bytes: 0,
        }
    }

    /// Whether the batch is full.
    pub fn is_full(&self) -> bool {
        self.loc.len() >= ROWS || self.bytes >= BYTES
    }

    /// Whether there is a row.
    pub fn is_empty(&self) -> bool {
        self.loc.len() == 0
    }

    /// Adds an entry. An invalid number or date becomes null.
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
        for (_, blocks) in &mut self.blocks {
            blocks.end_row();
        }
    }

    fn parts(&mut self, entry: &Entry<'_>) {
        let mut parts = entry.parts.iter().peekable();
        while let Some(part) = parts.next() {
            let written = entry.text(part);
            match part.field {
                PartField::ImageLoc => text(&mut self.image, Some(written)),
                PartField::AlternateLang => text(&mut self.lang, Some(written)),
                PartField::AlternateHref => text(&mut self.href, Some(written)),
                PartField::Block(place) => {
                    let wanted = self.blocks.iter_mut().find(|(other, _)| *other == place);
                    if let Some((_, blocks)) = wanted {
                        blocks.push(entry, &mut parts);
                    }
                }
                _ => {}
            }
        }
    }

    /// The batch; the next rows begin a new one.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let fresh = Rows::new(self.schema.clone(), std::mem::take(&mut self.shard));
        let mut this = std::mem::replace(self, fresh);
        let rows = this.loc.len();
        let mut shard = StringBuilder::with_capacity(rows, rows * self.shard.len());
        (0..rows).for_each(|_| shard.append_value(&self.shard));
        let link: Vec<ArrayRef> = vec![Arc::new(this.lang.finish()), Arc::new(this.href.finish())];
        let link = StructArray::try_new(alternate_fields(), link, None)?;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(this.loc.finish()),
            Arc::new(this.lastmod.finish()),
            Arc::new(this.lastmod_text.finish()),
            Arc::new(this.changefreq.finish()),
            Arc::new(this.priority.finish()),
            this.images.finish(Arc::new(this.image.finish()))?,
            this.alternates.finish(Arc::new(link))?,
        ];
        for (_, blocks) in this.blocks {
            columns.push(blocks.finish()?);
        }
        columns.push(Arc::new(shard.finish()));
        RecordBatch::try_new(this.schema.clone(), columns)
    }
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok().filter(|n: &f64| n.is_finite())
}
