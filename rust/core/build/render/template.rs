//! URLs from templates with columns: `https://www.shop.example/{slug}-{id}`.

use crate::error::{ErrorCode, Result};
use crate::sitemap::characters::{CONTROL, UNRESERVED, trim};
use crate::sitemap::url::push_percent;

/// A template for loc: text and `{column}` or `{column:raw}`.
#[derive(Debug, Clone)]
pub struct Template {
    pieces: Vec<TemplatePart>,
    columns: Vec<String>,
}

#[derive(Debug, Clone)]
enum TemplatePart {
    Text(String),
    Value { column: usize, raw: bool },
}

impl Template {
    /// Reads a template. `{{` and `}}` are literal braces.
    ///
    /// # Errors
    /// `config.template` for unbalanced braces, an empty name, a modifier
    /// other than `raw`, and a template without any column.
    pub fn parse(text: &str) -> Result<Template> {
        let wrong = |what: &str| {
            let help = "write {column} or {column:raw}, and {{ and }} for literal braces";
            Err(ErrorCode::ConfigTemplate.error(format!("template {text:?}: {what}; {help}")))
        };
        let mut template = Template { pieces: Vec::new(), columns: Vec::new() };
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            if brace == "}" {
                return wrong("a } without its {");
            }
            let Some((inside, after)) = rest.split_once('}') else {
                return wrong("a { without its }");
            };
            if inside.contains('{') {
                return wrong("a { inside braces");
            }
            let (name, raw) = match inside.rsplit_once(':') {
                None => (inside, false),
                Some((name, "raw")) => (name, true),
                Some((_, modifier)) => return wrong(&format!("unknown modifier {modifier:?}")),
            };
            if name.is_empty() {
                return wrong("no column is named");
            }
            if !literal.is_empty() {
                template.pieces.push(TemplatePart::Text(std::mem::take(&mut literal)));
            }
            let known = template.columns.iter().position(|column| column == name);
            let column = known.unwrap_or_else(|| {
                template.columns.push(name.to_owned());
                template.columns.len() - 1
            });
            template.pieces.push(TemplatePart::Value { column, raw });
            rest = after;
        }
        if template.columns.is_empty() {
            return wrong("every row would get the same URL");
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            template.pieces.push(TemplatePart::Text(literal));
        }
        Ok(template)
    }

    /// Its columns, each once, in the order of their first use.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }

    /// Appends the URL of a row; `value_of` returns the value of a column by its number in
    /// [`Template::columns`]. Returns false and appends nothing if a value is missing or blank.
    ///
    /// Blanks at the ends of a value are ignored. A value is percent-encoded as one path segment (RFC
    /// 3986, section 3.3): only unreserved characters stay. A `:raw` value is not encoded here; the
    /// rules of loc apply to it. Neither are control characters and bytes that are not UTF-8: the rules
    /// of loc reject them, but would accept their percent-encoding.
    pub fn write<'a>(
        &self,
        value_of: impl Fn(usize) -> Option<&'a [u8]>,
        out: &mut Vec<u8>,
    ) -> bool {
        let before = out.len();
        for piece in &self.pieces {
            match piece {
                TemplatePart::Text(text) => out.extend_from_slice(text.as_bytes()),
                TemplatePart::Value { column, raw } => {
                    let value = value_of(*column).map_or(&b""[..], trim);
                    if value.is_empty() {
                        out.truncate(before);
                        return false;
                    }
                    if *raw { out.extend_from_slice(value) } else { segment_into(value, out) }
                }
            }
        }
        true
    }
}

fn segment_into(value: &[u8], out: &mut Vec<u8>) {
    let legal = |bytes: &[u8]| {
        CONTROL.first_in(bytes).is_none() && simdutf8::basic::from_utf8(bytes).is_ok()
    };
    let mut rest = value;
    while let Some(at) = UNRESERVED.first_not_in(rest) {
        if rest.len() == value.len() && !legal(value) {
            break;
        }
        out.extend_from_slice(&rest[..at]);
        push_percent(rest[at], out);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(template: &str, values: &[Option<&[u8]>]) -> Option<Vec<u8>> {
        let mut out = b"^".to_vec();
        let good = Template::parse(template).unwrap().write(|column| values[column], &mut out);
        assert!(good || out == b"^");
        good.then(|| out[1..].to_vec())
    }

    #[test]
    fn values_become_segments() {
        let url = |template, values: &[Option<&[u8]>]| {
            write(template, values).map(|url| String::from_utf8(url).unwrap())
        };
        let some = |value: &'static str| Some(value.as_bytes());
        assert_eq!(
            url("https://s.example/{slug}-{id}", &[some("a b/ü?#%41&"), some("7")]).as_deref(),
            Some("https://s.example/a%20b%2F%C3%BC%3F%23%2541%26-7")
        );
        assert_eq!(
            url("/{p:raw}?q={p}", &[some(" a/%41 b ")]).as_deref(),
            Some("/a/%41 b?q=a%2F%2541%20b")
        );
        assert_eq!(url("{{{a}}}", &[some("~._-x9")]).as_deref(), Some("{~._-x9}"));
        assert_eq!(url("/{a}/{b}", &[some("1"), None]), None);
        assert_eq!(url("/{a}/{b}", &[some("1"), some("")]), None);
        assert_eq!(url("/{a:raw}", &[some(" \t")]), None);
    }

    #[test]
    fn what_loc_rejects_stays_visible() {
        assert_eq!(write("/{a}", &[Some(b"a b\0c")]).unwrap(), b"/a b\0c");
        assert_eq!(write("/{a}", &[Some(b"aaaaaaaa\xff")]).unwrap(), b"/aaaaaaaa\xff");
    }

    #[test]
    fn columns_are_distinct_and_in_order() {
        let template = Template::parse("{b}{a}{b:raw}{a b:c:raw}").unwrap();
        assert_eq!(template.columns().collect::<Vec<_>>(), ["b", "a", "a b:c"]);
    }

    #[test]
    fn wrong_templates() {
        for text in [
            "{",
            "}",
            "a}b{c}",
            "{a",
            "{}",
            "{:raw}",
            "{a:upper}",
            "{a:}",
            "{a{b}}",
            "no columns",
            "",
            "{{a}}",
            "{a}}",
        ] {
            assert_eq!(
                Template::parse(text).map_err(|error| error.code.name()).err(),
                Some("config.template"),
                "{text}"
            );
        }
    }
}
