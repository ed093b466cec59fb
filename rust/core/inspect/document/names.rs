//! Attributes and namespaces of a start tag (XML 1.0, Namespaces in XML 1.0), bounded.

use crate::inspect::document::model::{Ns, namespace};

/// Most attributes of a tag and namespace declarations in force: far above any sitemap, and small
/// enough that comparing all with all costs nothing.
const MOST: usize = 64;

/// So many characters of the name of a namespace are kept.
const MOST_OF_URI: usize = 200;

/// One attribute as written: name and raw value.
pub type Raw<'a> = (&'a str, &'a str);

/// Splits what stands in a start tag after the name. The error says what is wrong.
pub fn attributes<'a>(mut rest: &'a str, out: &mut Vec<Raw<'a>>) -> Result<(), &'static str> {
    out.clear();
    loop {
        let trimmed = rest.trim_start_matches(is_space);
        if trimmed.is_empty() {
            return Ok(());
        }
        if trimmed.len() == rest.len() {
            return Err("no white space before an attribute");
        }
        let Some((name, after)) = trimmed.split_once('=') else {
            return Err("an attribute without a value");
        };
        let name = name.trim_end_matches(is_space);
        if !is_name(name) {
            return Err("a bad attribute name");
        }
        let after = after.trim_start_matches(is_space);
        let Some(quote) = after.chars().next().filter(|&c| c == '"' || c == '\'') else {
            return Err("an attribute value without quotes");
        };
        let Some((value, tail)) = after[1..].split_once(quote) else {
            return Err("an attribute value without its closing quote");
        };
        if value.contains('<') {
            return Err("a < in an attribute value");
        }
        if out.iter().any(|(other, _)| *other == name) {
            return Err("an attribute that stands twice");
        }
        if out.len() == MOST {
            return Err("more than 64 attributes");
        }
        out.push((name, value));
        rest = tail;
    }
}

/// White space as XML knows it.
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Whether `name` is a Name of XML 1.0 with at most one colon inside.
pub fn is_name(name: &str) -> bool {
    let mut parts = name.split(':');
    let ok = |part: &str| {
        let mut chars = part.chars();
        chars.next().is_some_and(is_name_start) && chars.all(is_name_char)
    };
    parts.next().is_some_and(ok) && parts.next().is_none_or(ok) && parts.next().is_none()
}

fn is_name_start(c: char) -> bool {
    matches!(c, 'A'..='Z' | 'a'..='z' | '_' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}'
        | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}'
        | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}')
}

fn is_name_char(c: char) -> bool {
    is_name_start(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

/// Whether XML 1.0 allows the character.
pub fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// One namespace declaration in force.
struct Binding {
    prefix: String,
    uri: String,
    ns: Ns,
    depth: usize,
}

/// The namespace declarations in force.
#[derive(Default)]
pub struct Namespaces {
    bindings: Vec<Binding>,
    /// A wrong namespace of the root that is read as the right one once it was reported.
    alias: Option<String>,
}

impl Namespaces {
    /// Takes up the declarations among the attributes of an element at `depth`.
    pub fn open(&mut self, attributes: &[Raw<'_>], depth: usize) -> Result<(), &'static str> {
        for (name, value) in attributes {
            let prefix = match name.strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) if rest.starts_with(':') => &rest[1..],
                _ => continue,
            };
            let bound = namespace(value);
            if prefix == "xmlns" || (prefix == "xml") != (bound == Ns::Xml) {
                return Err("a reserved prefix or namespace");
            }
            if !prefix.is_empty() && value.is_empty() {
                return Err("a prefix bound to no namespace");
            }
            if self.bindings.len() == MOST {
                return Err("more than 64 namespace declarations");
            }
            // the names of known namespaces are shorter; others only need to be told apart
            let uri: String = value.chars().take(MOST_OF_URI).collect();
            let binding = Binding { prefix: prefix.to_owned(), uri, ns: bound, depth };
            self.bindings.push(binding);
        }
        Ok(())
    }

    /// Ends the declarations of elements deeper than `depth`.
    pub fn close(&mut self, depth: usize) {
        while self.bindings.last().is_some_and(|binding| binding.depth > depth) {
            self.bindings.pop();
        }
    }

    /// Reads the namespace `uri` as that of sitemaps from here on.
    pub fn forgive(&mut self, uri: String) {
        self.alias = Some(uri);
    }

    /// Namespace, its URI and local name of an element; `None` where the prefix is not declared.
    pub fn element<'n>(&self, name: &'n str) -> Option<(Ns, &str, &'n str)> {
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        let (ns, uri) = self.resolve(prefix)?;
        if self.alias.as_deref() == Some(uri) {
            return Some((Ns::Sitemap, uri, local));
        }
        Some((ns, uri, local))
    }

    /// Namespace and local name of an attribute.
    pub fn attribute<'n>(&self, name: &'n str) -> Option<(Ns, &'n str)> {
        match name.split_once(':') {
            None => Some((Ns::None, name)),
            Some((prefix, local)) => Some((self.resolve(prefix)?.0, local)),
        }
    }

    fn resolve(&self, prefix: &str) -> Option<(Ns, &str)> {
        if prefix == "xml" {
            return Some((Ns::Xml, ""));
        }
        match self.bindings.iter().rev().find(|binding| binding.prefix == prefix) {
            Some(binding) => Some((binding.ns, &binding.uri)),
            None if prefix.is_empty() => Some((Ns::None, "")),
            None => None,
        }
    }
}
