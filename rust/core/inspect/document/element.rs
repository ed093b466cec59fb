//! Elements checked against the content models: names, order, attributes and values.

use crate::inspect::check::{extension, value};
use crate::inspect::codes;
use crate::inspect::codes::Code;
use crate::inspect::document::entry::Form;
use crate::inspect::document::model;
use crate::inspect::document::model::Ns;
use crate::inspect::document::names::{Raw, short};
use crate::inspect::document::xml::Parser;
use crate::inspect::finding::{Location, quoted};
use crate::sitemap::element::{Content, Element, Limit, Role};
use crate::sitemap::extension as format;
use crate::sitemap::extension::alternate as link;
use crate::sitemap::extension::descriptor::Extension;
use crate::sitemap::value::ValueKind;

/// The unknown namespaces that are reported once each; further ones are reported at each element.
const MAX_FOREIGN: usize = 16;

impl Parser<'_> {
    /// The content model of the root, which determines the form of the document.
    pub(super) fn root(&mut self, name: &str, at: Location) -> Option<&'static Element> {
        let Some((ns, uri, local)) = self.namespaces.element(name) else {
            self.bad(&codes::NS_PREFIX, at, || {
                format!("the prefix of <{}> is not declared", short(name))
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

    /// The content model of a child, checked against the model of its parent.
    pub(super) fn child(&mut self, name: &str, at: Location) -> Option<&'static Element> {
        let depth = self.stack.len();
        let parent = self.stack.last_mut()?;
        let parent_model = parent.model?;
        let shown = || format!("<{}> in <{}>", short(name), parent_model.name);
        let Some((ns, uri, local)) = self.namespaces.element(name) else {
            self.bad(&codes::NS_PREFIX, at, || {
                format!("the prefix of {} is not declared", shown())
            });
            return None;
        };
        let uri = if ns == Ns::Foreign { uri.to_owned() } else { String::new() };
        let own = parent.ns;
        let Content::Elements { children, others } = parent_model.content else {
            self.bad(&codes::ELEMENT_TEXT, at, || {
                format!("{}: elements are not allowed there", shown())
            });
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
            let late = which < parent.next;
            parent.next = parent.next.max(which);
            if late {
                self.bad(&codes::ELEMENT_ORDER, at, || format!("{} is out of order", shown()));
            }
            if child.occurs.1 > 0 && count > child.occurs.1 {
                let code = match child.limit {
                    Some(Limit { finding: Some(code), .. }) => code,
                    _ => &codes::ELEMENT_REPEATED,
                };
                self.bad(code, at, || {
                    format!("{}: {count} of them, {} allowed", shown(), child.occurs.1)
                });
                if child.occurs.1 == 1 {
                    return None; // only the first one is read
                }
            }
            if child.retired {
                self.bad(&codes::ELEMENT_RETIRED, at, || format!("{} is retired", shown()));
            }
            return Some(child);
        }
        if !others {
            self.bad(&codes::ELEMENT_UNKNOWN, at, || {
                format!("{}: elements of other namespaces are not allowed there", shown())
            });
            return None;
        }
        let block = model::block(ns, local).filter(|_| depth > 1);
        if let Some((index, Extension { root, per_url, .. })) = block {
            parent.next = children.len();
            let count = &mut parent.seen[children.len() + index];
            *count = count.saturating_add(1);
            if root.occurs.1 > 0 && *count > root.occurs.1 {
                let finding = per_url.and_then(|limit| limit.finding);
                self.bad(finding.unwrap_or(&codes::ELEMENT_REPEATED), at, shown);
                return None;
            }
            return Some(root);
        }
        if depth == 1 {
            // the schema allows elements of other namespaces before the entries
            if parent.seen[0] > 0 {
                self.bad(&codes::ELEMENT_ORDER, at, || {
                    format!("{} is between or after the entries", shown())
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
                if self.foreign.len() < MAX_FOREIGN {
                    self.foreign.push(uri);
                }
            }
            Ns::Foreign => {}
            Ns::Extension(index) if format::ALL[index].shared_namespace => {
                self.bad(&codes::NS_FOREIGN, at, || {
                    format!("{}: only {} has a meaning here", shown(), format::ALL[index].root.name)
                });
            }
            Ns::Extension(_) | Ns::Sitemap | Ns::None => {
                self.bad(&codes::ELEMENT_UNKNOWN, at, || {
                    format!("{}: this element is unknown", shown())
                });
            }
            Ns::Xml | Ns::Xsi => self.bad(&codes::NS_FOREIGN, at, || {
                format!("{}: this namespace has no elements", shown())
            }),
        }
        None
    }

    /// Checks the attributes of an element, and keeps those that are read.
    pub(super) fn attributes(&mut self, model: &'static Element, raw: &[Raw<'_>], at: Location) {
        let mut seen = 0u64;
        for (name, value) in raw {
            let value = self.attribute_text(name, value, at);
            if *name == "xmlns" || name.starts_with("xmlns:") {
                continue;
            }
            self.log.spend(self.namespaces.steps(name));
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
            if self.extensions.checks
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
        if self.extensions.checks && model.role == Role::Link {
            extension::alternate(&self.entry, at, self.log);
        }
        if model.role == Role::Link {
            self.entry.close_alternate(at);
        }
        for (which, attribute) in model.attributes.iter().enumerate() {
            if attribute.required && seen & (1 << which) == 0 {
                self.bad(&codes::ELEMENT_ATTRIBUTE, at, || {
                    format!("<{}> without the attribute {}", model.name, attribute.name)
                });
            }
        }
    }

    /// Ends a text element: checks and keeps its value.
    pub(super) fn value(&mut self, model: &'static Element, kind: ValueKind, at: Location) {
        let value = std::mem::take(&mut self.text);
        let empty = value::trim(&value).is_empty();
        if empty && kind != ValueKind::Any && model.role != Role::Loc {
            self.bad(&codes::ELEMENT_EMPTY, at, || format!("<{}> is empty", model.name));
        } else if self.extensions.checks
            && let Some((code, message)) = value::fault(kind, code_of(model), &value)
        {
            self.bad(code, at, || format!("<{}>: {message}", model.name));
        }
        self.entry.value(model, &value, at);
        self.text = value;
        self.text.clear();
    }
}

/// The code for an invalid value; dates have their own code.
fn code_of(element: &Element) -> &'static Code {
    element.code.unwrap_or(&codes::DATE_INVALID)
}
