//! Start and end tags: the stack of open elements.

use crate::inspect::check::extension;
use crate::inspect::codes;
use crate::inspect::document::entry::Form;
use crate::inspect::document::model::{MAX_CHILDREN, Ns};
use crate::inspect::document::names::{attributes, is_name, short};
use crate::inspect::document::xml::{Frame, MAX_DEPTH, Next, Parser};
use crate::inspect::finding::{Location, quoted};
use crate::sitemap::element::{Content, Role};
use crate::sitemap::extension as format;
use crate::sitemap::namespaces::{ALTERNATES, IMAGES};

/// The steps of an entry that the parser reads, in addition to those of its tokens.
const ENTRY_STEPS: u64 = 8;
/// The pairs of attributes, in either order, that are compared in one step.
const PAIRS_PER_STEP: u64 = 32;
/// The bytes of attributes, for each attribute of the tag, that are compared in one step.
const BYTES_PER_STEP: u64 = 2048;

impl Parser<'_> {
    /// Starts an element; `rest` is the text of the tag after its name.
    pub(super) fn start(&mut self, name: &str, rest: &str, at: Location, empty: bool) -> Next {
        let mut raw = Vec::new();
        if !is_name(name) {
            self.bad(&codes::XML_MALFORMED, at, || {
                format!("{} is not an element name", quoted(name.as_bytes()))
            });
            return Next::Recover;
        }
        if let Err(what) = attributes(rest, &mut raw) {
            self.bad(&codes::XML_MALFORMED, at, || format!("{what} in <{}>", short(name)));
        }
        // each name is compared with those before it
        let (count, bytes) = (raw.len() as u64, rest.len() as u64);
        self.log.spend(count * count / PAIRS_PER_STEP + count * bytes / BYTES_PER_STEP);
        if self.stack.len() == MAX_DEPTH {
            self.bad(&codes::XML_DEPTH, at, || {
                format!("elements nested deeper than {MAX_DEPTH} levels")
            });
            return Next::Stop;
        }
        let depth = self.stack.len() + 1;
        if let Err(what) = self.namespaces.open(&raw, depth) {
            self.bad(&codes::NS_PREFIX, at, || format!("{what} in <{}>", short(name)));
        }
        let lookup = self.namespaces.steps(name);
        self.log.spend(lookup);
        let first = self.document.form == Form::Unknown && self.stack.is_empty();
        let model = if self.root_done {
            self.bad(&codes::XML_TRAILING, at, || "an element after the root".to_owned());
            None
        } else if self.stack.is_empty() {
            self.root(name, at)
        } else {
            self.child(name, at)
        };
        // of an unknown element, the content is skipped
        let ns = model.and_then(|_| {
            self.log.spend(lookup);
            self.namespaces.element(name).map(|own| own.0)
        });
        let names = self.names.len();
        self.names.push_str(name);
        let frame = Frame {
            name: names,
            model,
            ns: ns.unwrap_or(Ns::Foreign),
            next: 0,
            seen: [0; MAX_CHILDREN],
            at,
            text_reported: false,
        };
        self.stack.push(frame);
        self.text.clear();
        if let Some(model) = model {
            if self.entry.is_full() {
                self.bad(&codes::XML_TOO_LONG, at, || "more than 8 MiB in one entry".to_owned());
                return Next::Stop;
            }
            self.entry.open(model, at);
            self.attributes(model, &raw, at);
        } else {
            for (name, value) in &raw {
                self.attribute_text(name, value, at);
            }
        }
        if self.stack.len() == 1 {
            // the fast path assumes that names without a prefix are in the sitemap namespace
            self.fast = self.allow_fast
                && self.document.form == Form::Urlset
                && !name.contains(':')
                && !empty;
            let bound = |name, ns| self.namespaces.element(name).is_some_and(|own| own.0 == ns);
            self.extensions.images = bound("image:image", Ns::Extension(IMAGES));
            self.extensions.links = bound("xhtml:link", Ns::Extension(ALTERNATES));
            if first && self.visitor.root(self.document.form).is_break() {
                self.document.stopped = true;
                return Next::Stop;
            }
        }
        if empty { self.close() } else { Next::Continue }
    }

    /// Handles an end tag.
    pub(super) fn end(&mut self, tag: &str, at: Location) -> Next {
        let open =
            self.stack.last().and_then(|frame| self.names.get(frame.name..)).unwrap_or_default();
        if self.stack.is_empty() || open != tag {
            let outside = self.stack.is_empty();
            self.log.add(&codes::XML_MISMATCH, at, Some(self.entry.loc()), || match outside {
                true => format!("</{}> without a start tag", short(tag)),
                false => format!("</{}> instead of </{}>", short(tag), short(open)),
            });
            return if outside { Next::Continue } else { Next::Recover };
        }
        self.close()
    }

    /// Ends an element: checks its value and its required children.
    fn close(&mut self) -> Next {
        let Some(frame) = self.stack.pop() else { return Next::Continue };
        self.names.truncate(frame.name);
        self.namespaces.close(self.stack.len());
        let depth = self.stack.len();
        if let Some(model) = frame.model {
            match model.content {
                Content::Text(kind) => self.value(model, kind, frame.at),
                Content::Elements { children, .. } if self.extensions.checks => {
                    for (which, child) in children.iter().enumerate() {
                        // a missing loc and an empty root have their own codes
                        if child.occurs.0 > 0
                            && frame.seen[which] == 0
                            && depth > 1
                            && child.role != Role::Loc
                        {
                            self.bad(&codes::ELEMENT_MISSING, frame.at, || {
                                format!("<{}> lacks <{}>", model.name, child.name)
                            });
                        }
                    }
                    if let Some(index) = format::of_root(model) {
                        extension::block(format::ALL[index], &self.entry, frame.at, self.log);
                    }
                }
                _ => {}
            }
            if model.role == Role::Entry {
                return self.finish_entry();
            }
        }
        if depth == 0 {
            self.root_done = true;
        }
        self.text.clear();
        Next::Continue
    }

    /// Passes the entry to the visitor.
    fn finish_entry(&mut self) -> Next {
        self.document.entries += 1;
        self.log.spend(ENTRY_STEPS);
        let flow = self.visitor.entry(self.document.form, &self.entry.entry(), self.log);
        self.entry.clear();
        self.text.clear();
        self.document.stopped |= flow.is_break();
        if flow.is_break() { Next::Stop } else { Next::Continue }
    }
}
