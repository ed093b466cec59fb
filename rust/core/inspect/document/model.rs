//! The content models of documents: those of the protocol, and those of the extensions by their
//! descriptors.

use crate::inspect::codes;
use crate::sitemap::element::{Content, Element, Role, group, text};
use crate::sitemap::extension;
use crate::sitemap::extension::descriptor::Extension;
use crate::sitemap::namespaces;
use crate::sitemap::value::ValueKind;

/// The namespaces that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ns {
    /// `http://www.sitemaps.org/schemas/sitemap/0.9`
    Sitemap,
    /// That of an extension, by its place in [`extension::ALL`].
    Extension(usize),
    /// `xml:`
    Xml,
    /// `xsi:`
    Xsi,
    /// No namespace.
    None,
    /// Any other.
    Foreign,
}

/// The namespace of a URI.
pub fn namespace(uri: &str) -> Ns {
    match uri {
        "" => Ns::None,
        namespaces::SITEMAP => Ns::Sitemap,
        "http://www.w3.org/XML/1998/namespace" => Ns::Xml,
        "http://www.w3.org/2001/XMLSchema-instance" => Ns::Xsi,
        _ => match extension::ALL.iter().position(|extension| extension.uri == uri) {
            Some(place) => Ns::Extension(place),
            None => Ns::Foreign,
        },
    }
}

/// Children of an element, and extensions of a `url`, for the counters of an open element.
pub const MAX_CHILDREN: usize = 24;

/// `urlset`
pub static URLSET: Element = open(group("urlset", (1, 1), URLS));
/// `sitemapindex`
pub static SITEMAPINDEX: Element = open(group("sitemapindex", (1, 1), SITEMAPS));

static URLS: &[Element] = &[open(group("url", (1, 0), URL)).role(Role::Entry)];
static SITEMAPS: &[Element] = &[open(group("sitemap", (1, 0), ENTRY_OF_INDEX)).role(Role::Entry)];

static URL: &[Element] = &[
    value("loc", Role::Loc).required(),
    value("lastmod", Role::Lastmod),
    value("changefreq", Role::Changefreq),
    value("priority", Role::Priority),
];

static ENTRY_OF_INDEX: &[Element] =
    &[value("loc", Role::Loc).required(), value("lastmod", Role::Lastmod)];

/// The same; elements of other namespaces may follow.
const fn open(mut element: Element) -> Element {
    element.content = Content::Elements { children: element.children(), others: true };
    element
}

/// A value that is checked with its entry.
const fn value(name: &'static str, role: Role) -> Element {
    text(name, ValueKind::Entry, Some(&codes::ELEMENT_EMPTY)).role(role)
}

/// The extension whose element in a `url` this is, by its place in [`extension::ALL`].
pub fn block(ns: Ns, name: &str) -> Option<(usize, &'static Extension)> {
    let Ns::Extension(place) = ns else { return None };
    let extension = *extension::ALL.get(place)?;
    (extension.root.name == name).then_some((place, extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn max_children(element: &Element) -> usize {
        let children = element.children();
        children.iter().map(max_children).max().unwrap_or(0).max(children.len())
    }

    #[test]
    fn there_is_a_counter_for_each_child() {
        let max = extension::ALL.iter().map(|extension| max_children(&extension.root)).max();
        assert!((20..=MAX_CHILDREN).contains(&max.unwrap()));
        assert!(max_children(&URLSET) + extension::ALL.len() <= MAX_CHILDREN);
    }
}
