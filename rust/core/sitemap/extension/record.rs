//! The fields of an extension, derived from its descriptor: a build maps them and `read` returns them.

use std::sync::LazyLock;

use crate::sitemap::element::{Attribute, Content, Element};
use crate::sitemap::extension::ALL;
use crate::sitemap::extension::descriptor::{Extension, ExtensionMapping};
use crate::sitemap::value::ValueKind;

/// Fields of a record: values are on the stack while a record is written or read.
pub const MAX_FIELDS: usize = 32;

/// The records of all extensions, in the order of [`ALL`].
static RECORDS: LazyLock<Vec<Record>> =
    LazyLock::new(|| ALL.iter().map(|extension| Record::of_extension(extension)).collect());

/// The record of an extension, by its place in [`ALL`].
pub fn record(extension: usize) -> &'static Record {
    &RECORDS[extension]
}

/// The warnings of an extension, by its place in [`ALL`]: the code and the text of each.
pub fn warnings(extension: usize) -> Vec<(String, String)> {
    let (about, record) = (ALL[extension], record(extension));
    let listed = about.warnings.iter().map(|(code, text)| ((*code).into(), (*text).into()));
    if about.mapping == ExtensionMapping::Own {
        return listed.collect();
    }
    let mut warnings: Vec<_> = listed.collect();
    record.add_warnings(about, about.name, &mut warnings);
    warnings
}

/// An element with its fields: the block of an extension, or an element in it that repeats and has
/// parts.
#[derive(Debug)]
pub struct Record {
    /// The fields: those that a build can write in the order of the schema, then the others.
    pub fields: Vec<Field>,
    /// `<prefix:name`
    pub open: String,
    /// `</prefix:name>`
    pub close: String,
    /// The attributes of the element itself.
    pub attributes: Vec<FieldAttribute>,
    /// The field of its text, if it has text.
    pub text: Option<usize>,
    /// The elements that a build can write in it.
    pub nodes: Vec<Node>,
    /// Fields of which one is required.
    pub one_of: Vec<usize>,
}

/// A value of a record.
#[derive(Debug)]
pub struct Field {
    /// Its name in a mapping.
    pub name: &'static str,
    /// `extension.name`: under this code a build rejects or counts its values.
    pub code: String,
    /// Its name in the column of `read`.
    pub column: Option<&'static str>,
    /// A build can write it.
    pub mapped: bool,
    /// A record without it is not written.
    pub required: bool,
    /// Where its value is in the document.
    pub source: FieldOrigin,
    /// The form of its value.
    pub shape: Shape,
}

/// Where a value is in the document.
#[derive(Debug, Clone, Copy)]
pub enum FieldOrigin {
    /// The text, or the whole, of an element.
    Element(&'static Element),
    /// An attribute.
    Attribute(&'static Attribute),
}

/// The form of a value.
#[derive(Debug)]
pub enum Shape {
    /// One value.
    Value(ValueKind),
    /// A list of values.
    List(ValueKind),
    /// A list of records.
    Records(Record),
}

/// An attribute and its field.
#[derive(Debug, Clone, Copy)]
pub struct FieldAttribute {
    /// The attribute.
    pub attribute: &'static Attribute,
    /// The place of its value in [`Record::fields`].
    pub field: usize,
}

/// An element that a build can write.
#[derive(Debug)]
pub struct Node {
    /// The element.
    pub element: &'static Element,
    /// `<prefix:name`
    pub open: String,
    /// `</prefix:name>`
    pub close: String,
    /// What is in it.
    pub content: NodeContent,
}

/// What is in an element that a build can write.
#[derive(Debug)]
pub enum NodeContent {
    /// The text of a field, and attributes.
    Text {
        /// The place of its value in [`Record::fields`].
        field: usize,
        /// The kind of the value.
        kind: ValueKind,
        /// The attributes with a field.
        attributes: Vec<FieldAttribute>,
    },
    /// Each record of a field.
    Records(usize),
    /// Elements, whose fields are those of the parent.
    Group(Vec<Node>),
}

impl Shape {
    /// The record; `None` for values.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Shape::Records(record) => Some(record),
            _ => None,
        }
    }

    /// The kind of the values; `None` for records.
    pub fn kind(&self) -> Option<ValueKind> {
        match self {
            Shape::Value(kind) | Shape::List(kind) => Some(*kind),
            Shape::Records(_) => None,
        }
    }
}

impl Record {
    fn of_extension(extension: &'static Extension) -> Record {
        let mut record = Record::of(extension, &extension.root);
        if let Some(one_of) = &extension.one_of {
            let place = |name: &&str| record.fields.iter().position(|field| field.name == *name);
            record.one_of = one_of.names.iter().filter_map(place).collect();
        }
        record
    }

    fn of(extension: &'static Extension, element: &'static Element) -> Record {
        let mut fields = Vec::new();
        attribute_fields(extension, element, &mut fields);
        if let Content::Text(kind) = element.content {
            fields.push(Field::new(extension, "value", element, Shape::Value(kind)));
        }
        child_fields(extension, element, &mut fields);
        fields.sort_by_key(|field| !field.mapped);
        let (open, close) = tags(extension, element);
        let text = matches!(element.content, Content::Text(_));
        Record {
            open,
            close,
            attributes: attributes(element, &fields),
            text: text.then(|| place(element, &fields)).flatten(),
            nodes: nodes(extension, element, &fields),
            one_of: Vec::new(),
            fields,
        }
    }

    /// Adds the warnings about missing and invalid values; `whole` is the name of the record.
    fn add_warnings(
        &self,
        extension: &Extension,
        whole: &str,
        warnings: &mut Vec<(String, String)>,
    ) {
        for field in self.mapped() {
            let tag = format!("{}:{}", extension.name, field.name);
            let text = match field.required {
                true => format!("{whole} left out, {tag} is missing or wrong"),
                false => format!("{tag} left out, missing or wrong"),
            };
            warnings.push((field.code.clone(), text));
            if let (Shape::Records(record), FieldOrigin::Element(element)) =
                (&field.shape, field.source)
            {
                record.add_warnings(extension, element.name, warnings);
            }
        }
    }

    /// The fields that a build can write.
    pub fn mapped(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().take_while(|field| field.mapped)
    }

    /// The fields that `read` returns, with their places.
    pub fn columns(&self) -> impl Iterator<Item = (usize, &Field)> {
        self.fields.iter().enumerate().filter(|(_, field)| field.column.is_some())
    }
}

impl Field {
    fn new(
        extension: &'static Extension,
        name: &'static str,
        element: &'static Element,
        shape: Shape,
    ) -> Field {
        Field {
            name,
            code: format!("{}.{name}", extension.name),
            column: element.column.map(|column| if name == "value" { name } else { column }),
            mapped: element.mapped.is_some(),
            required: element.occurs.0 > 0,
            source: FieldOrigin::Element(element),
            shape,
        }
    }
}

fn attribute_fields(
    extension: &'static Extension,
    element: &'static Element,
    fields: &mut Vec<Field>,
) {
    let named =
        element.attributes.iter().filter_map(|attribute| Some((attribute.field?, attribute)));
    fields.extend(named.map(|(name, attribute)| Field {
        name,
        code: format!("{}.{name}", extension.name),
        column: Some(name),
        mapped: true,
        // without a value its element has no use for the attribute
        required: attribute.required && element.is_record(),
        source: FieldOrigin::Attribute(attribute),
        shape: Shape::Value(attribute.kind),
    }));
}

/// The fields of the elements in `parent`.
fn child_fields(extension: &'static Extension, parent: &'static Element, fields: &mut Vec<Field>) {
    for child in parent.children() {
        let name = child.mapped.or(child.column);
        match (child.content, name) {
            (_, Some(name)) if child.is_record() => {
                let records = Shape::Records(Record::of(extension, child));
                fields.push(Field::new(extension, name, child, records));
            }
            (Content::Text(kind), Some(name)) => {
                let one = child.occurs.1 == 1;
                let shape = if one { Shape::Value(kind) } else { Shape::List(kind) };
                fields.push(Field::new(extension, name, child, shape));
                attribute_fields(extension, child, fields);
            }
            (Content::Elements { .. }, _) => child_fields(extension, child, fields),
            _ => {}
        }
    }
}

/// The field of an element.
fn place(element: &Element, fields: &[Field]) -> Option<usize> {
    let of_element = |field: &Field| match field.source {
        FieldOrigin::Element(other) => std::ptr::eq(element, other),
        FieldOrigin::Attribute(_) => false,
    };
    fields.iter().position(of_element)
}

fn attributes(element: &'static Element, fields: &[Field]) -> Vec<FieldAttribute> {
    let place = |attribute: &'static Attribute| {
        let field = fields.iter().position(|field| match field.source {
            FieldOrigin::Attribute(other) => std::ptr::eq(attribute, other),
            FieldOrigin::Element(_) => false,
        })?;
        Some(FieldAttribute { attribute, field })
    };
    element.attributes.iter().filter_map(place).collect()
}

fn nodes(extension: &'static Extension, parent: &'static Element, fields: &[Field]) -> Vec<Node> {
    let node = |element: &'static Element| {
        let content = match element.content {
            _ if element.is_record() && element.mapped.is_some() => {
                NodeContent::Records(place(element, fields)?)
            }
            Content::Text(kind) if element.mapped.is_some() => NodeContent::Text {
                field: place(element, fields)?,
                kind,
                attributes: attributes(element, fields),
            },
            Content::Elements { .. } => NodeContent::Group(
                Some(nodes(extension, element, fields)).filter(|n| !n.is_empty())?,
            ),
            _ => return None,
        };
        let (open, close) = tags(extension, element);
        Some(Node { element, open, close, content })
    };
    parent.children().iter().filter_map(node).collect()
}

fn tags(extension: &Extension, element: &Element) -> (String, String) {
    let Extension { prefix, .. } = extension;
    (format!("<{prefix}:{}", element.name), format!("</{prefix}:{}>", element.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sitemap::extension::named;

    fn fields(name: &str) -> Vec<&'static str> {
        let (place, _) = named(name).unwrap();
        record(place).fields.iter().map(|field| field.name).collect()
    }

    #[test]
    fn fields_are_in_the_order_of_the_schema_and_what_is_only_read_comes_last() {
        let retired = ["access", "genres", "keywords", "stock_tickers"];
        let written = ["name", "language", "publication_date", "title"];
        assert_eq!(fields("news"), [written, retired].concat());
        assert_eq!(record(named("news").unwrap().0).mapped().count(), written.len());
    }

    #[test]
    fn names_are_unique_in_a_record_and_findings_and_options_in_all() {
        let mut names: Vec<_> = ALL
            .iter()
            .flat_map(|extension| {
                let findings = extension.findings.iter().map(|code| code.name);
                findings.chain(extension.options.iter().map(|option| option.name))
            })
            .collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for extension in ALL {
            let mut fields = fields(extension.name);
            fields.sort_unstable();
            assert!(fields.len() <= MAX_FIELDS);
            assert!(fields.windows(2).all(|pair| pair[0] != pair[1]), "{fields:?}");
        }
    }
}
