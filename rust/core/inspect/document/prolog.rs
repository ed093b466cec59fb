//! The XML declaration, the document type and processing instructions.

use crate::inspect::codes;
use crate::inspect::document::entry::Form;
use crate::inspect::document::names::{attributes, is_name, is_space};
use crate::inspect::document::xml::{Next, Parser};
use crate::inspect::finding::{Location, quoted};

impl Parser<'_> {
    /// Checks the XML declaration.
    pub(super) fn declaration(&mut self, declaration: &str, at: Location) -> Next {
        // after a byte order mark the declaration starts at byte 3
        let after_mark = at.offset == 3 && !self.entry.leading_space;
        if (at.offset != 0 && !after_mark) || !self.stack.is_empty() || self.root_done {
            self.bad(&codes::XML_DECLARATION, at, || {
                "the XML declaration is not at the start".to_owned()
            });
        }
        let mut raw = Vec::new();
        let rest = declaration.strip_prefix("xml").unwrap_or_default();
        let parsed = attributes(rest, &mut raw);
        let names: Vec<_> = raw.iter().map(|(name, _)| *name).collect();
        let known = matches!(
            names.as_slice(),
            ["version"]
                | ["version", "encoding" | "standalone"]
                | ["version", "encoding", "standalone"]
        );
        let get =
            |wanted: &str| raw.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        let valid = get("version").is_some_and(|v| v == "1.0")
            && get("standalone").is_none_or(|s| s == "yes" || s == "no");
        if parsed.is_err() || !known || !valid {
            self.bad(&codes::XML_DECLARATION, at, || {
                format!("the XML declaration is {}", quoted(declaration.as_bytes()))
            });
        }
        if let Some(encoding) = get("encoding")
            && !encoding.eq_ignore_ascii_case("utf-8")
            && !encoding.eq_ignore_ascii_case("us-ascii")
        {
            let message = || format!("the encoding is {}", quoted(encoding.as_bytes()));
            match self.decoded {
                true => self.log.add_harmless(&codes::XML_ENCODING, at, message),
                false => self.bad(&codes::XML_ENCODING, at, message),
            }
        }
        Next::Continue
    }

    /// Reports a document type. A name alone is unusual but harmless. The declarations of an internal
    /// or external subset can change the meaning of the document, and this parser does not read them.
    pub(super) fn doctype(&mut self, doctype: &str, at: Location) {
        let misplaced = self.doctype || self.document.form != Form::Unknown;
        let misplaced = misplaced || !self.stack.is_empty() || self.root_done;
        self.doctype = true;
        if !misplaced && is_name(doctype.trim_matches(is_space)) {
            self.bad(&codes::XML_PLAIN_DOCTYPE, at, || "a DOCTYPE without a subset".to_owned());
        } else {
            self.bad(&codes::XML_DOCTYPE, at, || "a DOCTYPE, which is not read".to_owned());
        }
    }

    /// Checks a processing instruction.
    pub(super) fn instruction(&mut self, pi: &str, at: Location) -> Next {
        self.check_characters(pi, at);
        let target = pi.split(is_space).next().unwrap_or_default();
        if target == "xml-stylesheet" {
            self.bad(&codes::XML_STYLESHEET, at, || "a reference to a style sheet".to_owned());
        } else if !is_name(target) || target.eq_ignore_ascii_case("xml") || target.contains(':') {
            self.bad(&codes::XML_MALFORMED, at, || {
                format!(
                    "{} is not a valid target of a processing instruction",
                    quoted(target.as_bytes())
                )
            });
        }
        Next::Continue
    }
}
