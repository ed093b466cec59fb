//! Content models, after the official schemas: which elements an element contains, in which order
//! and how often, with which attributes and what kind of value.

use crate::sitemap::code::Code;
use crate::sitemap::value::ValueKind;

/// What an element contains.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// Elements in this order.
    Elements {
        /// In the order of the schema.
        children: &'static [Element],
        /// Whether elements of other namespaces may follow.
        others: bool,
    },
    /// Text.
    Text(ValueKind),
    /// Nothing.
    Empty,
}

/// The role of an element in reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is checked only.
    Checked,
    /// A whole `url` or `sitemap`.
    Entry,
    /// `loc`
    Loc,
    /// `lastmod`
    Lastmod,
    /// `changefreq`
    Changefreq,
    /// `priority`
    Priority,
    /// `image:loc`
    ImageLoc,
    /// `xhtml:link`
    Link,
    /// It begins the element of an extension in a `url`.
    Block,
    /// It is a column, or a field of one.
    Field,
}

/// An upper limit; a build omits the values beyond it.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// How many are allowed.
    pub count: u32,
    /// The code under which a build counts the omitted values.
    pub note: &'static str,
    /// The finding of `verify`, where the limit is part of the format.
    pub finding: Option<&'static Code>,
}

/// The age from which a crawler ignores an extension.
#[derive(Debug, Clone, Copy)]
pub struct MaxAge {
    /// Seconds after which a build applies the policy of the user.
    pub build_seconds: i64,
    /// Seconds after which `verify` reports it: a day of grace for the crawler.
    pub verify_seconds: i64,
    /// The finding.
    pub finding: &'static Code,
    /// The code for a URL that is written without the block.
    pub omitted: &'static str,
    /// The code for a row that is left out.
    pub dropped: &'static str,
}

/// An attribute.
#[derive(Debug)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: ValueKind,
    /// Whether the element needs it.
    pub required: bool,
    /// The field that it is mapped to and read back as.
    pub field: Option<&'static str>,
}

impl Attribute {
    /// An optional attribute that is only checked.
    pub const fn new(name: &'static str, kind: ValueKind) -> Attribute {
        Attribute { name, kind, required: false, field: None }
    }

    /// The same; its element needs it.
    pub const fn required(mut self) -> Attribute {
        self.required = true;
        self
    }

    /// The same, mapped and read back under this name.
    pub const fn field(mut self, name: &'static str) -> Attribute {
        self.field = Some(name);
        self
    }
}

/// One element.
#[derive(Debug)]
pub struct Element {
    /// Local name.
    pub name: &'static str,
    /// The minimum and the maximum number of occurrences; 0 for no maximum.
    pub occurs: (u16, u16),
    /// What it contains.
    pub content: Content,
    /// Its attributes.
    pub attributes: &'static [Attribute],
    /// Its role in reading.
    pub role: Role,
    /// A build can write it: the name under which it is mapped.
    pub mapped: Option<&'static str>,
    /// `read` returns it: the name of its field.
    pub column: Option<&'static str>,
    /// The finding for an invalid value, if its kind has none.
    pub code: Option<&'static Code>,
    /// The limit where it may occur several times, but not any number of times.
    pub limit: Option<Limit>,
    /// The value is the date from which the age of its block counts.
    pub max_age: Option<MaxAge>,
    /// Google retired it in 2022.
    pub retired: bool,
}

/// An optional element with text, mapped and read back under its name.
pub const fn text(name: &'static str, kind: ValueKind, code: Option<&'static Code>) -> Element {
    Element {
        content: Content::Text(kind),
        role: Role::Field,
        mapped: Some(name),
        column: Some(name),
        code,
        ..group(name, (0, 1), &[])
    }
}

/// An element of elements, which is only checked itself.
pub const fn group(
    name: &'static str,
    occurs: (u16, u16),
    children: &'static [Element],
) -> Element {
    Element {
        name,
        occurs,
        content: Content::Elements { children, others: false },
        attributes: &[],
        role: Role::Checked,
        mapped: None,
        column: None,
        code: None,
        limit: None,
        max_age: None,
        retired: false,
    }
}

impl Element {
    /// The same; its parent needs it.
    pub const fn required(mut self) -> Element {
        self.occurs.0 = 1;
        self
    }

    /// The same, any number of times; mapped by one name and read back as a list of another.
    pub const fn repeated(mut self, mapped: &'static str, column: &'static str) -> Element {
        self.occurs.1 = 0;
        self.role = Role::Field;
        self.mapped = Some(mapped);
        self.column = Some(column);
        self
    }

    /// The same, a limited number of times.
    pub const fn limited(mut self, limit: Limit) -> Element {
        self.occurs.1 = limit.count as u16;
        self.limit = Some(limit);
        self
    }

    /// The same with attributes.
    pub const fn with(mut self, attributes: &'static [Attribute]) -> Element {
        self.attributes = attributes;
        self
    }

    /// The same in another role.
    pub const fn role(mut self, role: Role) -> Element {
        self.role = role;
        self.mapped = None;
        self.column = None;
        self
    }

    /// The same, the date of its block.
    pub const fn dates(mut self, max_age: MaxAge) -> Element {
        self.max_age = Some(max_age);
        self
    }

    /// The same, retired: it is read back, but not written.
    pub const fn retired(mut self) -> Element {
        self.retired = true;
        self.mapped = None;
        self
    }

    /// The same, any number of times, and only checked.
    pub const fn any_number(mut self) -> Element {
        self.occurs.1 = 0;
        self.role(Role::Checked)
    }

    /// The same, only checked.
    pub const fn checked(self) -> Element {
        self.role(Role::Checked)
    }

    /// The elements in it.
    pub const fn children(&self) -> &'static [Element] {
        match self.content {
            Content::Elements { children, .. } => children,
            _ => &[],
        }
    }

    /// Whether each occurrence is a separate record: it repeats, and has parts.
    pub const fn is_record(&self) -> bool {
        self.occurs.1 != 1
            && self.column.is_some()
            && (!self.attributes.is_empty() || !self.children().is_empty())
    }
}
