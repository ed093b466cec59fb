//! Elements held against the content models: names, order, attributes, values, references.

use crate::inspect::check::{extension, value};
use crate::inspect::codes;
use crate::inspect::codes::Code;
use crate::inspect::document::entry::{Form, Visitor};
use crate::inspect::document::fast;
use crate::inspect::document::model;
use crate::inspect::document::model::Ns;
use crate::inspect::document::names::{Raw, is_char};
use crate::inspect::document::xml::Parser;
use crate::inspect::finding::{Location, quoted, text};
use crate::sitemap::element::{Content, Element, Limit, Role};
use crate::sitemap::extension as format;
use crate::sitemap::extension::alternate as link;
use crate::sitemap::extension::descriptor::Extension;
use crate::sitemap::value::ValueKind;

impl<V: Visitor> Parser<'_, V> {
    /// The root decides what the document is.
    pub(crate) fn root(&mut self, name: &str, at: Location) -> Option<&'static Element> {
        let Some((ns, uri, local)) = self.namespaces.element(name) else {
            self.bad(&codes::NS_PREFIX, at, || {
                format!("the prefix of <{}> is not declared", text(name.as_bytes(), 60))
            });
            return None;
        };
        let (form, model) = match local {
            "urlset" => (Form::Urlset, Some(&model::URLSET)),
            "sitemapindex" => (Form::Index, Some(&model::SITEMAPINDEX)),
            "rss" | "feed" | "RDF" => (Form::Feed, None),
            _ => (Form::Unknown, None),
        };
        self.document.form = form;
        if model.is_some() && ns != Ns::Sitemap {
            let uri = uri.to_owned();
            let code = if uri.is_empty() { &codes::NS_MISSING } else { &codes::NS_WRONG };
            self.bad(code, at, || {
                format!("the root is in the namespace {}", quoted(uri.as_bytes()))
            });
            self.namespaces.set_alias(uri);
        } else if form == Form::Unknown {
            self.bad(&codes::FILE_NOT_SITEMAP, at, || {
                format!("the root element is {}", quoted(name.as_bytes()))
            });
        } else if form == Form::Feed {
            self.bad(&codes::FILE_FEED, at, || {
                format!("the root element is {}", quoted(name.as_bytes()))
            });
        }
        model
    }

    /// Holds a child against the model of its parent.
    pub(crate) fn child(&mut self, name: &str, at: Location) -> Option<&'static Element> {
        let depth = self.stack.len();
        let parent = self.stack.last_mut()?;
        let parent_model = parent.model?;
        let shown = || format!("<{}> in <{}>", text(name.as_bytes(), 60), parent_model.name);
        let Some((ns, uri, local)) = self.namespaces.element(name) else {
            self.bad(&codes::NS_PREFIX, at, || {
                format!("the prefix of {} is not declared", shown())
            });
            return None;
        };
        let uri = if ns == Ns::Foreign { uri.to_owned() } else { String::new() };
        let own = parent.ns;
        let Content::Elements { children, others } = parent_model.content else {
            self.bad(&codes::ELEMENT_TEXT, at, || format!("{}: no element belongs there", shown()));
            return None;
        };
        if own == ns {
            let Some(which) = children.iter().position(|child| child.name == local) else {
                self.bad(&codes::ELEMENT_UNKNOWN, at, || format!("{} is unknown", shown()));
                return None;
            };
            let child = &children[which];
            let count = parent.seen[which].saturating_add(1);
            parent.seen[which] = count;
            let behind = which < parent.next;
            parent.next = parent.next.max(which);
            if behind {
                self.bad(&codes::ELEMENT_ORDER, at, || format!("{} stands too late", shown()));
            }
            if child.occurs.1 > 0 && count > child.occurs.1 {
                let code = match child.limit {
                    Some(Limit { finding: Some(code), .. }) => code,
                    _ => &codes::ELEMENT_REPEATED,
                };
                self.bad(code, at, || {
                    format!("{} for the {count}. time; {} allowed", shown(), child.occurs.1)
                });
                if child.occurs.1 == 1 {
                    return None; // the first one counts
                }
            }
            if child.retired {
                self.bad(&codes::ELEMENT_RETIRED, at, || format!("{} is retired", shown()));
            }
            return Some(child);
        }
        if !others {
            self.bad(&codes::ELEMENT_UNKNOWN, at, || {
                format!("{}: no element of another namespace belongs there", shown())
            });
            return None;
        }
        let block = model::block(ns, local).filter(|_| depth > 1);
        if let Some((place, Extension { root, per_url, .. })) = block {
            parent.next = children.len();
            let count = &mut parent.seen[children.len() + place];
            *count = count.saturating_add(1);
            if root.occurs.1 > 0 && *count > root.occurs.1 {
                let finding = per_url.and_then(|limit| limit.finding);
                self.bad(finding.unwrap_or(&codes::ELEMENT_REPEATED), at, shown);
                return None;
            }
            return Some(root);
        }
        if depth == 1 {
            // before the entries the schema lets elements of other namespaces stand
            if parent.seen[0] > 0 {
                self.bad(&codes::ELEMENT_ORDER, at, || {
                    format!("{} stands between or behind the entries", shown())
                });
            }
        } else {
            parent.next = children.len();
        }
        match ns {
            Ns::Foreign if !self.foreign.contains(&uri) => {
                self.bad(&codes::NS_FOREIGN, at, || {
                    format!("{} is in the namespace {}", shown(), quoted(uri.as_bytes()))
                });
                if self.foreign.len() < 16 {
                    self.foreign.push(uri);
                }
            }
            Ns::Foreign => {}
            Ns::Extension(place) if format::ALL[place].shared_namespace => {
                self.bad(&codes::NS_FOREIGN, at, || {
                    format!("{}: only {} has a meaning here", shown(), format::ALL[place].root.name)
                });
            }
            Ns::Extension(_) | Ns::Sitemap | Ns::None => {
                self.bad(&codes::ELEMENT_UNKNOWN, at, || format!("{} is unknown there", shown()));
            }
            Ns::Xml | Ns::Xsi => self.bad(&codes::NS_FOREIGN, at, || {
                format!("{}: this namespace has no elements", shown())
            }),
        }
        None
    }

    /// Unescapes an attribute value, telling what is wrong with it.
    pub(crate) fn attribute_text(&mut self, name: &str, value: &str, at: Location) -> Vec<u8> {
        self.check_characters(value, at);
        if !value.contains(['&', '\t', '\n', '\r']) {
            return value.as_bytes().to_vec();
        }
        let mut out = Vec::with_capacity(value.len());
        let mut rest = value;
        while let Some(and) = rest.find('&') {
            out.extend_from_slice(&rest.as_bytes()[..and]);
            let after = &rest[and + 1..];
            // what cannot be part of a reference ends the search for its end
            let end =
                after.find([';', '&', '"', '\'', ' ']).filter(|&end| after[end..].starts_with(';'));
            let Some((reference, tail)) = end.map(|end| (&after[..end], &after[end + 1..])) else {
                self.bad(&codes::XML_MALFORMED, at, || {
                    format!("a bare & in the attribute {}", quoted(name.as_bytes()))
                });
                out.push(b'&');
                rest = after;
                continue;
            };
            self.resolve(reference, at, &mut out);
            rest = tail;
        }
        out.extend_from_slice(rest.as_bytes());
        // XML 1.0, 3.3.3: raw white space in a value becomes a space
        if !value.contains('&') {
            out.iter_mut().filter(|b| matches!(b, b'\t' | b'\n' | b'\r')).for_each(|b| *b = b' ');
        }
        out
    }

    pub(crate) fn attributes(&mut self, model: &'static Element, raw: &[Raw<'_>], at: Location) {
        let mut seen = 0u64;
        for (name, value) in raw {
            let value = self.attribute_text(name, value, at);
            if *name == "xmlns" || name.starts_with("xmlns:") {
                continue;
            }
            let Some((ns, local)) = self.namespaces.attribute(name) else {
                self.bad(&codes::NS_PREFIX, at, || {
                    format!(
                        "the prefix of the attribute {} is not declared",
                        quoted(name.as_bytes())
                    )
                });
                continue;
            };
            if ns == Ns::Xsi && (local == "schemaLocation" || local == "noNamespaceSchemaLocation")
            {
                continue;
            }
            if model.role == Role::Link {
                self.entry.alternate_attribute(ns, local, &value);
                if ns != Ns::None || !matches!(local, "rel" | "hreflang" | "href") {
                    self.bad(&link::ATTRIBUTE, at, || {
                        format!("the attribute {} on a link", quoted(name.as_bytes()))
                    });
                }
                continue;
            }
            let known =
                model.attributes.iter().position(|known| ns == Ns::None && known.name == local);
            let Some(which) = known else {
                self.bad(&codes::ELEMENT_ATTRIBUTE, at, || {
                    format!("<{}> has no attribute {}", model.name, quoted(name.as_bytes()))
                });
                continue;
            };
            seen |= 1 << which;
            let attribute = &model.attributes[which];
            if V::CHECKS
                && let Some((code, message)) = value::fault(attribute.kind, code_of(model), &value)
            {
                let is_url = matches!(attribute.kind, ValueKind::Url(_));
                let code = if is_url { code } else { &codes::ELEMENT_ATTRIBUTE };
                self.bad(code, at, || format!("{local}: {message}"));
            }
            if attribute.field.is_some() {
                self.entry.attribute(attribute, &value, at);
            }
        }
        if V::CHECKS && model.role == Role::Link {
            extension::alternate(&self.entry, at, self.log);
        }
        if model.role == Role::Link {
            self.entry.close_alternate(at);
        }
        for (which, attribute) in model.attributes.iter().enumerate() {
            if attribute.required && seen & (1 << which) == 0 {
                self.bad(&codes::ELEMENT_ATTRIBUTE, at, || {
                    format!("<{}> lacks the attribute {}", model.name, attribute.name)
                });
            }
        }
    }

    /// A text element ends.
    pub(crate) fn value(&mut self, model: &'static Element, kind: ValueKind, at: Location) {
        let value = std::mem::take(&mut self.text);
        let empty = value::trim(&value).is_empty();
        if empty && kind != ValueKind::Any && model.role != Role::Loc {
            self.bad(&codes::ELEMENT_EMPTY, at, || format!("<{}> is empty", model.name));
        } else if V::CHECKS
            && let Some((code, message)) = value::fault(kind, code_of(model), &value)
        {
            self.bad(code, at, || format!("<{}>: {message}", model.name));
        }
        self.entry.value(model, &value, at);
        self.text = value;
        self.text.clear();
    }

    /// One of the five entities, or a character by number; anything else is a finding, and kept as
    /// it was written.
    pub(crate) fn resolve(&mut self, name: &str, at: Location, out: &mut Vec<u8>) {
        let named = fast::ENTITIES
            .iter()
            .find(|(known, _)| known.strip_suffix(b";") == Some(name.as_bytes()));
        if let Some((_, character)) = named {
            out.push(*character);
            return;
        }
        let number = match name.strip_prefix('#') {
            Some(hex) if hex.starts_with('x') => radix(&hex[1..], 16),
            Some(decimal) => radix(decimal, 10),
            None => {
                self.bad(&codes::XML_ENTITY, at, || {
                    format!("the entity &{}; is not defined", text(name.as_bytes(), 60))
                });
                out.extend_from_slice(format!("&{name};").as_bytes());
                return;
            }
        };
        match number.and_then(char::from_u32).filter(|&c| is_char(c)) {
            Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => self.bad(&codes::XML_CHARACTER, at, || {
                format!("&{}; is no character of XML", text(name.as_bytes(), 60))
            }),
        }
    }

    pub(crate) fn check_characters(&mut self, part: &str, at: Location) {
        if part.bytes().all(|b| matches!(b, b' '..=0x7f | b'\n' | b'\t' | b'\r')) {
            return;
        }
        if let Some((offset, c)) = part.char_indices().find(|&(_, c)| !is_char(c)) {
            let at = Location { offset: at.offset + offset as u64, ..at };
            self.bad(&codes::XML_CHARACTER, at, || format!("the character U+{:04X}", c as u32));
        }
    }
}

/// The finding for an invalid value; dates have their own.
fn code_of(element: &Element) -> &'static Code {
    element.code.unwrap_or(&codes::DATE_INVALID)
}

fn radix(digits: &str, radix: u32) -> Option<u32> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    plain.then(|| u32::from_str_radix(digits, radix).ok())?
}
