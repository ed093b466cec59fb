//! Attributes and namespaces of a start tag (XML 1.0, Namespaces in XML 1.0), within limits.
//!
//! quick-xml's `NamespaceResolver` resolves namespaces, but not through its `NsReader`: the parser
//! creates a new reader after each fault, and the declarations of the root must stay. This file splits
//! attributes itself: quick-xml's `Attributes` accepts `a="1"b="2"`, names that are not XML names and
//! `<` in values. None of these is well-formed, and it does not report the first one at all.

use quick_xml::name::{
    Namespace, NamespaceError, NamespaceResolver, PrefixDeclaration, QName, ResolveResult,
};

use crate::inspect::document::model::{Ns, namespace};
use crate::inspect::finding::text;
use crate::simd::AsciiSet;

/// The namespace of declarations.
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// The attributes of a tag: far more than in any sitemap, and few enough to compare each pair.
const MAX_ATTRIBUTES: usize = 64;
/// The namespace declarations in scope.
const MAX_DECLARATIONS: usize = 64;
/// The characters that are kept of the URI of a namespace.
const MAX_URI_CHARS: usize = 200;

/// The declarations with which a lookup compares a name in one step.
const DECLARATIONS_PER_STEP: usize = 16;
/// The bytes of prefixes that a lookup compares in one step: prefixes of the same length.
const COMPARED_PER_STEP: usize = 1024;

/// One attribute as written: name and raw value.
pub type Raw<'a> = (&'a str, &'a str);

/// Splits the attributes of a start tag, given the text after its name. The error describes the fault.
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
            return Err("an invalid attribute name");
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
            return Err("a repeated attribute");
        }
        if out.len() == MAX_ATTRIBUTES {
            return Err("more than 64 attributes");
        }
        out.push((name, value));
        rest = tail;
    }
}

/// The characters of a name in a message.
const MAX_NAME_SHOWN: usize = 60;

/// A name for a message, cut if it is long.
pub fn short(name: &str) -> String {
    text(name.as_bytes(), MAX_NAME_SHOWN)
}

/// White space of XML.
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// The ASCII characters of a name after its first one, without the colon.
const NAME: AsciiSet =
    AsciiSet::new(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._");

/// Whether `name` is a Name of XML 1.0 with at most one colon inside.
pub fn is_name(name: &str) -> bool {
    let mut parts = name.split(':');
    let ok = |part: &str| {
        // the usual characters are skipped fast: a name may have 1 MiB
        let rest = NAME.first_not_in(part.as_bytes()).map_or("", |end| &part[end..]);
        part.chars().next().is_some_and(is_name_start) && rest.chars().all(is_name_char)
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

/// The ASCII characters that XML 1.0 allows.
const LEGAL: AsciiSet = AsciiSet::new(
    b"\t\n\r !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`\
      abcdefghijklmnopqrstuvwxyz{|}~\x7f",
);

/// The first character that XML 1.0 does not allow, and its offset.
pub fn first_illegal(text: &str) -> Option<(usize, char)> {
    // ASCII is skipped fast
    let start = LEGAL.first_not_in(text.as_bytes())?;
    let (at, c) = text[start..].char_indices().find(|&(_, c)| !is_char(c))?;
    Some((start + at, c))
}

/// The namespace declarations in scope.
pub struct Namespaces {
    resolver: NamespaceResolver,
    /// The depth and the length of the prefix of each declaration.
    lengths: Vec<(usize, usize)>,
    /// A wrong namespace of the root. It is reported once, then treated as the sitemap namespace.
    alias: Option<String>,
}

impl Default for Namespaces {
    fn default() -> Self {
        let mut resolver = NamespaceResolver::default();
        resolver.set_max_namespace_bindings(MAX_DECLARATIONS);
        Namespaces { resolver, lengths: Vec::new(), alias: None }
    }
}

impl Namespaces {
    /// Adds the declarations among the attributes of an element at `depth`. The error describes the
    /// fault.
    pub fn open(&mut self, attributes: &[Raw<'_>], depth: usize) -> Result<(), &'static str> {
        self.close(depth);
        for (name, value) in attributes {
            let Some(prefix) = QName(name).as_namespace_binding() else { continue };
            match prefix {
                PrefixDeclaration::Default if namespace(value) == Ns::Xml => {
                    return Err("a reserved prefix or namespace");
                }
                PrefixDeclaration::Named(_) if value.is_empty() => {
                    return Err("a prefix bound to no namespace");
                }
                _ => {}
            }
            let length = match prefix {
                PrefixDeclaration::Default => 0,
                PrefixDeclaration::Named(prefix) => prefix.len(),
            };
            // known namespaces are shorter; unknown ones only have to differ
            let end = value.char_indices().nth(MAX_URI_CHARS).map_or(value.len(), |(end, _)| end);
            self.resolver.add(prefix, Namespace(&value[..end])).map_err(|error| match error {
                NamespaceError::TooManyBindings(_) => "more than 64 namespace declarations",
                _ => "a reserved prefix or namespace",
            })?;
            self.lengths.push((depth, length));
        }
        Ok(())
    }

    /// Ends the scope of the declarations of elements deeper than `depth`.
    pub fn close(&mut self, depth: usize) {
        self.resolver.set_level(depth as u16); // at most MAX_DEPTH
        while self.lengths.pop_if(|(of, _)| *of > depth).is_some() {}
    }

    /// The steps of a lookup of `name`: none with the few short prefixes of a sitemap.
    pub fn steps(&self, name: &str) -> u64 {
        let prefix = name.find(':').unwrap_or(0);
        let same = self.lengths.iter().filter(|(_, length)| *length == prefix).count();
        let compared = same.saturating_mul(prefix) / COMPARED_PER_STEP;
        (self.lengths.len() / DECLARATIONS_PER_STEP + compared) as u64
    }

    /// Treats the namespace `uri` as the sitemap namespace from now on.
    pub fn set_alias(&mut self, uri: String) {
        self.alias = Some(uri);
    }

    /// The namespace of an element, its URI and the local name; `None` for an undeclared prefix.
    pub fn element<'n>(&self, name: &'n str) -> Option<(Ns, &str, &'n str)> {
        let (result, local) = self.resolver.resolve_element(QName(name));
        let uri = uri(result)?;
        let is_alias = self.alias.as_deref() == Some(uri);
        Some((if is_alias { Ns::Sitemap } else { namespace(uri) }, uri, local.into_inner()))
    }

    /// The namespace and local name of an attribute; `None` for an undeclared prefix.
    pub fn attribute<'n>(&self, name: &'n str) -> Option<(Ns, &'n str)> {
        let (result, local) = self.resolver.resolve_attribute(QName(name));
        Some((namespace(uri(result)?), local.into_inner()))
    }
}

fn uri(result: ResolveResult<'_>) -> Option<&str> {
    match result {
        // the prefix xmlns is bound, but no name may use it
        ResolveResult::Bound(Namespace(XMLNS)) | ResolveResult::Unknown(_) => None,
        ResolveResult::Bound(Namespace(uri)) => Some(uri),
        ResolveResult::Unbound => Some(""),
    }
}
