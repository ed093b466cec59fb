//! Character data: text, references and the values of attributes.

use crate::inspect::codes;
use crate::inspect::document::fast;
use crate::inspect::document::names::{first_illegal, is_char, is_space, short};
use crate::inspect::document::window::MAX_TOKEN;
use crate::inspect::document::xml::{Next, Parser};
use crate::inspect::finding::{Location, quoted};
use crate::sitemap::element::{Content, Element, Role};

impl Parser<'_> {
    /// Adds text to the value of the open element.
    pub(super) fn characters(&mut self, part: &str, at: Location) -> Next {
        self.check_characters(part, at);
        let Some(frame) = self.stack.last_mut() else {
            if !part.chars().all(is_space) {
                let (code, what) = match self.root_done {
                    true => (&codes::XML_TRAILING, "text after the root"),
                    false => (&codes::XML_DECLARATION, "text before the root"),
                };
                self.bad(code, at, || format!("{what}: {}", quoted(part.trim().as_bytes())));
            } else if at.offset == 0 && !part.is_empty() && !self.recovered {
                self.entry.leading_space = true; // a declaration after white space is an error
            }
            return Next::Continue;
        };
        let Some(model) = frame.model else { return Next::Continue };
        match model.content {
            Content::Text(_) => {
                if model.role == Role::Loc && part.contains('\'') {
                    self.entry.bare_apostrophe = true;
                }
                if part.contains('\r') {
                    // XML 1.0, 2.11: CR and CRLF become LF
                    self.text.extend_from_slice(
                        part.replace("\r\n", "\n").replace('\r', "\n").as_bytes(),
                    );
                } else {
                    self.text.extend_from_slice(part.as_bytes());
                }
                if self.text.len() > MAX_TOKEN {
                    self.bad(&codes::XML_TOO_LONG, at, || "a text of more than 1 MiB".to_owned());
                    return Next::Stop;
                }
            }
            _ => self.stray(part, model, at),
        }
        Next::Continue
    }

    /// Reports text where only elements are allowed, once for each element.
    fn stray(&mut self, part: &str, model: &'static Element, at: Location) {
        if part.chars().all(is_space) && !matches!(model.content, Content::Empty) {
            return;
        }
        if let Some(frame) = self.stack.last_mut().filter(|frame| !frame.text_reported) {
            frame.text_reported = true;
            self.bad(&codes::ELEMENT_TEXT, at, || {
                format!("text in <{}>: {}", model.name, quoted(part.trim().as_bytes()))
            });
        }
    }

    /// Resolves a reference in text.
    pub(super) fn reference(&mut self, name: &str, at: Location) -> Next {
        let mut out = Vec::new();
        self.resolve(name, at, &mut out);
        match self.stack.last().and_then(|frame| frame.model) {
            Some(Element { content: Content::Text(_), .. }) => {
                self.text.extend_from_slice(&out);
                if self.text.len() > MAX_TOKEN {
                    self.bad(&codes::XML_TOO_LONG, at, || "a text of more than 1 MiB".to_owned());
                    return Next::Stop;
                }
            }
            Some(model) => self.stray("&", model, at),
            None if self.stack.is_empty() => {
                self.bad(&codes::XML_MALFORMED, at, || "a reference outside the root".to_owned());
            }
            None => {}
        }
        Next::Continue
    }

    /// Appends one of the five entities, or a character by number. An unknown entity is a finding and
    /// is kept as written.
    fn resolve(&mut self, name: &str, at: Location, out: &mut Vec<u8>) {
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
                    format!("the entity &{}; is not defined", short(name))
                });
                out.extend_from_slice(format!("&{name};").as_bytes());
                return;
            }
        };
        match number.and_then(char::from_u32).filter(|&c| is_char(c)) {
            Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => self.bad(&codes::XML_CHARACTER, at, || {
                format!("&{}; is not a character of XML", short(name))
            }),
        }
    }

    /// Unescapes an attribute value and reports its faults.
    pub(super) fn attribute_text(&mut self, name: &str, value: &str, at: Location) -> Vec<u8> {
        self.check_characters(value, at);
        if !value.contains(['&', '\t', '\n', '\r']) {
            return value.as_bytes().to_vec();
        }
        let mut out = Vec::with_capacity(value.len());
        let mut rest = value;
        while let Some(ampersand) = rest.find('&') {
            out.extend_from_slice(&rest.as_bytes()[..ampersand]);
            let after = &rest[ampersand + 1..];
            // a character that no reference contains ends the search for the semicolon
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
        // XML 1.0, 3.3.3: unescaped white space in a value becomes a space
        if !value.contains('&') {
            out.iter_mut().filter(|b| matches!(b, b'\t' | b'\n' | b'\r')).for_each(|b| *b = b' ');
        }
        out
    }

    /// Reports the first character that XML does not allow.
    pub(super) fn check_characters(&mut self, part: &str, at: Location) {
        if let Some((offset, c)) = first_illegal(part) {
            let at = Location { offset: at.offset + offset as u64, ..at };
            self.bad(&codes::XML_CHARACTER, at, || format!("the character U+{:04X}", c as u32));
        }
    }
}

/// A number in the given radix, without the sign that the standard library accepts.
fn radix(digits: &str, radix: u32) -> Option<u32> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    plain.then(|| u32::from_str_radix(digits, radix).ok())?
}
