//! The source of each field of a `<url>`: the mapping of a run, resolved for one input.

use crate::build::render::template::Template;
use crate::config::{Config, Filter};
use crate::error::{ErrorCode, Result};
use crate::flow::cell::{ColumnKind, Columns};
use crate::flow::hash::HashKey;
use crate::flow::outcome::Chosen;
use crate::sitemap::extension;
use crate::sitemap::extension::record::record;

/// Names of columns that are used for `loc` if no option names a column; Python reads them.
pub const LOC: &[&str] = &["loc", "url", "link", "product_url", "canonical_url"];
/// The same for `lastmod`.
pub const LASTMOD: &[&str] = &["lastmod", "last_modified", "updated_at", "modified_at"];
const CHANGEFREQ: &[&str] = &["changefreq"];
const PRIORITY: &[&str] = &["priority"];

/// The source of a field.
#[derive(Debug, Clone)]
pub enum ValueSource {
    /// A column, by slot.
    Slot(usize),
    /// The same text for all rows.
    Constant(Vec<u8>),
}

impl ValueSource {
    /// The column, by slot.
    pub fn slot(&self) -> Option<usize> {
        match self {
            ValueSource::Slot(slot) => Some(*slot),
            ValueSource::Constant(_) => None,
        }
    }
}

/// The source of loc.
#[derive(Debug, Clone)]
pub enum LocSource {
    /// A column, by slot.
    Slot(usize),
    /// A template, and the slot of each of its columns.
    Template(Template, Vec<usize>),
}

/// A condition on a column.
#[derive(Debug, Clone)]
pub struct Condition {
    /// The column, by slot.
    pub slot: usize,
    /// The text to compare with.
    pub value: Vec<u8>,
    /// Rows that differ are kept.
    pub negate: bool,
}

/// The mapping of one input: which columns a renderer reads, and for which fields.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The index in the input of the column of each slot.
    pub columns: Vec<usize>,
    /// The name of the column of each slot.
    pub names: Vec<String>,
    /// The address.
    pub loc: LocSource,
    /// The last change.
    pub lastmod: Option<ValueSource>,
    /// The change frequency.
    pub changefreq: Option<ValueSource>,
    /// The priority.
    pub priority: Option<ValueSource>,
    /// The columns of images, by slot.
    pub images: Vec<usize>,
    /// The separator of the images in a cell.
    pub image_separator: Option<Vec<u8>>,
    /// The value that the set is split by.
    pub split: Option<Split>,
    /// Whether any extension is mapped.
    pub extended: bool,
    /// The source of alternates.
    pub alternates: Option<Alternates>,
    /// The extensions that are mapped field by field, by their places, and their sources.
    pub blocks: Vec<(usize, Mapped)>,
    /// The rows to keep.
    pub filters: Vec<Condition>,
    /// The columns whose content decides lastmod, by name.
    pub content: Vec<ContentColumn>,
    /// A digest of the list of these columns.
    pub content_list: u64,
}

/// A column whose content decides lastmod.
#[derive(Debug, Clone, Copy)]
pub struct ContentColumn {
    /// The column, by slot.
    pub slot: usize,
    /// Stands for its name in the content of a row.
    pub tag: u32,
}

/// The value that the set is split by.
#[derive(Debug, Clone, Copy)]
pub enum Split {
    /// The host of loc.
    Host,
    /// A column, by slot.
    Slot(usize),
}

/// The source of alternates.
#[derive(Debug, Clone, Default)]
pub struct Alternates {
    /// Languages and their columns, by slot.
    pub columns: Vec<(Vec<u8>, usize)>,
    /// Columns of maps or of lists of structs, by slot.
    pub whole: Vec<usize>,
    /// The language of loc.
    pub lang: Option<Vec<u8>>,
    /// The language whose pages also serve all other languages.
    pub x_default: Option<Vec<u8>>,
    /// Each alternate also becomes a separate entry.
    pub rows: bool,
    /// Rows with the same key are the languages of a page.
    pub group: Option<GroupColumns>,
}

/// The columns of a group of languages.
#[derive(Debug, Clone)]
pub struct GroupColumns {
    /// The column of the key, by slot.
    pub key: usize,
    /// The language of each row.
    pub language: ValueSource,
}

/// The source of the values of an extension.
#[derive(Debug, Clone)]
pub enum Mapped {
    /// For each field of the record, by its place.
    Fields(Vec<Option<ValueSource>>),
    /// A column of structs, or of lists of structs, by slot.
    Whole(usize),
}

pub(crate) struct Resolver<'a> {
    columns: &'a Columns,
    pub(crate) plan: Plan,
    chosen: Vec<Chosen>,
}

impl Plan {
    /// Resolves the mapping for an input with these columns.
    ///
    /// # Errors
    /// `column.missing`, `column.ambiguous`, `column.type`, with the option that helps.
    pub fn new(config: &Config, columns: &Columns) -> Result<(Plan, Vec<Chosen>)> {
        let mapping = &config.mapping;
        let plan = Plan {
            columns: Vec::new(),
            names: Vec::new(),
            loc: LocSource::Slot(0),
            lastmod: None,
            changefreq: None,
            priority: None,
            images: Vec::new(),
            image_separator: mapping
                .image_separator
                .clone()
                .filter(|text| !text.is_empty())
                .map(String::into_bytes),
            split: None,
            extended: false,
            alternates: None,
            blocks: Vec::new(),
            filters: Vec::new(),
            content: Vec::new(),
            content_list: 0,
        };
        let mut resolver = Resolver { columns, plan, chosen: Vec::new() };
        resolver.loc(mapping.loc.as_deref(), mapping.loc_template.as_deref())?;
        resolver.plan.lastmod = resolver.field("lastmod", LASTMOD, mapping.lastmod.as_deref())?;
        resolver.plan.changefreq =
            resolver.field("changefreq", CHANGEFREQ, mapping.changefreq.as_deref())?;
        resolver.plan.priority =
            resolver.field("priority", PRIORITY, mapping.priority.as_deref())?;
        resolver.images(&mapping.image)?;
        resolver.alternates(mapping)?;
        for (place, extension) in extension::ALL.iter().enumerate() {
            let given = mapping.fields(extension);
            if let Some(mapped) = resolver.mapped(extension.name, record(place), given)? {
                resolver.plan.blocks.push((place, mapped));
            }
        }
        resolver.plan.split = match config.split_by.as_deref() {
            None => None,
            Some("@host") => Some(Split::Host),
            Some(column) => Some(Split::Slot(resolver.slot("split_by", column)?)),
        };
        let plan = &mut resolver.plan;
        plan.extended =
            !plan.images.is_empty() || plan.alternates.is_some() || !plan.blocks.is_empty();
        for filter in &config.filters {
            resolver.filter(filter)?;
        }
        resolver.content(&config.lastmod_from, &config.lastmod_ignore)?;
        Ok((resolver.plan, resolver.chosen))
    }
}

/// Column names in a message.
const MAX_LISTED: usize = 30;

/// A name in the form in which names are compared: `Product URL`, `product-url` and ` PRODUCT_URL` are `product_url`.
fn plain_name(name: &str) -> String {
    let words = name.split(|c: char| c.is_whitespace() || matches!(c, '-' | '_'));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("_").to_lowercase()
}

impl Resolver<'_> {
    fn loc(&mut self, named: Option<&str>, template: Option<&str>) -> Result<()> {
        if let Some(text) = template {
            if named.is_some() {
                return Err(ErrorCode::ConfigLoc.error("give loc or loc_template, not both"));
            }
            let template = Template::parse(text)?;
            let slots = template
                .columns()
                .map(|name| self.slot("loc_template", name))
                .collect::<Result<_>>()?;
            self.plan.loc = LocSource::Template(template, slots);
            self.choose("loc", text, false);
            return Ok(());
        }
        match self.field("loc", LOC, named)? {
            Some(ValueSource::Slot(slot)) => self.plan.loc = LocSource::Slot(slot),
            Some(ValueSource::Constant(_)) => {
                return Err(ErrorCode::ConfigLoc.error("loc cannot be a constant; name a column"));
            }
            None => {
                let first = self.columns.names.first().map(|name| name.to_ascii_lowercase());
                if first.is_some_and(|name| name.starts_with("http") && name.contains("://")) {
                    return Err(ErrorCode::ColumnMissing.error(
                        "the first row is no header but a URL; if the file is a list of URLs, one \
                         a line, say so (--format lines), else put the names of its columns first",
                    ));
                }
                return Err(ErrorCode::ColumnMissing.error(format!(
                    "no column is named {}; name the one with the URL (--loc COLUMN, or \
                         --loc-template 'https://…/{{slug}}'); there are: {}",
                    LOC.join(", "),
                    self.listed()
                )));
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &'static str,
        names: &[&str],
        named: Option<&str>,
    ) -> Result<Option<ValueSource>> {
        if let Some(constant) = named.and_then(|name| name.strip_prefix('=')) {
            self.choose(field, &format!("={constant}"), false);
            return Ok(Some(ValueSource::Constant(constant.as_bytes().to_vec())));
        }
        if let Some(name) = named {
            let slot = self.slot(field, name)?;
            self.choose(field, name, false);
            return Ok(Some(ValueSource::Slot(slot)));
        }
        let found: Vec<&String> = (self.columns.names.iter())
            .filter(|column| names.contains(&&*plain_name(column)))
            .collect();
        match found[..] {
            [] => Ok(None),
            [name] => {
                let name = name.clone();
                let slot = self.slot(field, &name)?;
                self.choose(field, &name, true);
                Ok(Some(ValueSource::Slot(slot)))
            }
            _ => {
                let list: Vec<String> = found.iter().map(|name| format!("{name:?}")).collect();
                Err(ErrorCode::ColumnAmbiguous.error(format!(
                    "{} could each be {field}; select one (--{field} COLUMN)",
                    list.join(" and ")
                )))
            }
        }
    }

    fn filter(&mut self, filter: &Filter) -> Result<()> {
        let slot = self.slot("where", &filter.column)?;
        let value = filter.value.clone().into_bytes();
        self.plan.filters.push(Condition { slot, value, negate: filter.negate });
        Ok(())
    }

    /// The columns of `--lastmod-from`. `*` are all columns but those of loc and lastmod: their
    /// changes are no changes of the page.
    fn content(&mut self, names: &[String], ignored: &[String]) -> Result<()> {
        let mut names = names.to_vec();
        if names == ["*"] {
            let slot = |slot: usize| self.plan.columns.get(slot).copied();
            let lastmod = self.plan.lastmod.as_ref().and_then(ValueSource::slot).and_then(slot);
            let loc = match &self.plan.loc {
                LocSource::Slot(loc) => slot(*loc),
                LocSource::Template(..) => None,
            };
            let mut left_out: Vec<usize> = [lastmod, loc].into_iter().flatten().collect();
            for name in ignored {
                let Some(column) = self.columns.names.iter().position(|column| column == name)
                else {
                    return Err(ErrorCode::ColumnMissing.error(format!(
                        "--lastmod-ignore: there is no column {name:?}; there are: {}",
                        self.listed()
                    )));
                };
                left_out.push(column);
            }
            let all = self.columns.names.iter().enumerate();
            names = all.filter(|(i, _)| !left_out.contains(i)).map(|(_, n)| n.clone()).collect();
        }
        names.sort_unstable();
        names.dedup();
        let digest = |text: &str| HashKey::fixed(0, 0).hash64(text.as_bytes());
        for name in &names {
            let slot = self.any_slot("lastmod_from", name)?;
            self.plan.content.push(ContentColumn { slot, tag: digest(name) as u32 });
        }
        self.plan.content_list = digest(&names.join("\0"));
        Ok(())
    }

    /// The slot of a column without nested values.
    pub(crate) fn slot(&mut self, option: &str, name: &str) -> Result<usize> {
        let slot = self.any_slot(option, name)?;
        if self.columns.kinds.get(self.plan.columns[slot]) == Some(&ColumnKind::Nested) {
            return Err(ErrorCode::ColumnType.error(format!(
                "--{}: column {name:?} contains lists or structs; choose a column of plain values",
                option.replace('_', "-")
            )));
        }
        Ok(slot)
    }

    /// The slot of a column. Fields with the same column share its slot.
    pub(crate) fn any_slot(&mut self, option: &str, name: &str) -> Result<usize> {
        let mut places =
            (self.columns.names.iter().enumerate()).filter(|(_, column)| *column == name);
        let Some((column, _)) = places.next() else {
            return Err(ErrorCode::ColumnMissing.error(format!(
                "--{}: there is no column {name:?}; there are: {}",
                option.replace('_', "-"),
                self.listed()
            )));
        };
        if places.next().is_some() {
            return Err(ErrorCode::ColumnAmbiguous.error(format!(
                "--{}: {name:?} is the name of two columns; rename one",
                option.replace('_', "-")
            )));
        }
        if matches!(self.columns.kinds.get(column), Some(ColumnKind::Other)) {
            return Err(ErrorCode::ColumnType.error(format!(
                "--{}: column {name:?} contains neither text nor numbers nor times; cast it first",
                option.replace('_', "-")
            )));
        }
        if let Some(slot) = self.plan.columns.iter().position(|&c| c == column) {
            return Ok(slot);
        }
        self.plan.columns.push(column);
        self.plan.names.push(name.to_owned());
        Ok(self.plan.columns.len() - 1)
    }

    pub(crate) fn choose(&mut self, field: &'static str, from: &str, found: bool) {
        self.chosen.push(Chosen { field, from: from.to_owned(), found });
    }

    /// The columns for a message, at most [`MAX_LISTED`].
    fn listed(&self) -> String {
        let names = &self.columns.names;
        let mut list: Vec<String> =
            names.iter().take(MAX_LISTED).map(|name| format!("{name:?}")).collect();
        if names.len() > MAX_LISTED {
            list.push(format!("and {} more", names.len() - MAX_LISTED));
        }
        if list.is_empty() { "none".into() } else { list.join(", ") }
    }
}
