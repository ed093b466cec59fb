//! JSON in a cell of text: lists and maps for inputs that have no such types.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value; objects keep the order of their keys.
#[derive(Debug, Clone, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer beyond those.
    UInt(u64),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Json<'a>>),
    /// An object.
    Fields(Vec<(Json<'a>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Reads one value, with blanks around it and nothing else. A cell is bounded by
    /// [`crate::config::Config::max_cell`] and nesting by serde_json, at 128 levels.
    pub fn parse(text: &'a [u8]) -> Option<Json<'a>> {
        let text = std::str::from_utf8(text).ok()?;
        serde_json::from_str(text).ok()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Json<'a>, D::Error> {
        from.deserialize_any(Any(std::marker::PhantomData))
    }
}

struct Any<'a>(std::marker::PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for Any<'a> {
    type Value = Json<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json<'a>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'a>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'a>, E> {
        Ok(Json::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'a>, E> {
        Ok(i64::try_from(value).map_or(Json::UInt(value), Json::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json<'a>, E> {
        Ok(Json::Float(value))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Json<'a>, E> {
        Ok(Json::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json<'a>, E> {
        Ok(Json::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Json<'a>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = from.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Json<'a>, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = from.next_entry()? {
            fields.push(field);
        }
        Ok(Json::Fields(fields))
    }
}

/// Calls `each` with the ranges of the strings of a JSON array such as `["a","b"]`, without building a
/// tree. Nearly all lists in catalogs have this form. Returns `None` for any other text, possibly after
/// some calls: the caller then discards them and uses [`Json::parse`].
pub fn plain_strings(text: &[u8], mut each: impl FnMut(Range<usize>)) -> Option<()> {
    fn blanks(rest: &[u8]) -> &[u8] {
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        &rest[rest.iter().take_while(blank).count()..]
    }
    let mut rest = blanks(blanks(text).strip_prefix(b"[")?);
    if !rest.starts_with(b"]") {
        loop {
            let inner = rest.strip_prefix(b"\"")?;
            let end = memchr::memchr(b'"', inner)?;
            let (value, after) = inner.split_at(end);
            // an escape, or a control character, which JSON does not allow
            if value.iter().any(|byte| *byte == b'\\' || *byte < b' ') {
                return None;
            }
            let start = text.len() - inner.len();
            each(start..start + end);
            rest = blanks(&after[1..]);
            match rest.strip_prefix(b",") {
                Some(after) => rest = blanks(after),
                None => break,
            }
        }
    }
    blanks(rest.strip_prefix(b"]")?).is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Option<Vec<String>> {
        let mut list = Vec::new();
        let push = |at: Range<usize>| list.push(text[at].to_owned());
        plain_strings(text.as_bytes(), push).map(|()| list)
    }

    #[test]
    fn plain_strings_agree_with_serde() {
        for text in [
            "[]",
            " [ ] ",
            r#"["a"]"#,
            r#" [ "a" , "b" ] "#,
            r#"["a""b"]"#,
            r#"["a",]"#,
            "[,]",
            r#"["a\"b"]"#,
            r#"["a"] x"#,
            r#"["a","#,
            r#"["a"#,
            "",
            "[",
            "x",
            "[1]",
            "[null]",
            r#"["ü","[","]"]"#,
            "[\"\n\"]",
            r#"[["a"]]"#,
            r#"{"a":"b"}"#,
            r#"[""]"#,
        ] {
            let exact: Option<Vec<String>> = serde_json::from_str(text).ok();
            match plain(text) {
                Some(list) => assert_eq!(Some(list), exact, "{text}"),
                None => assert!(exact.is_none() || text.contains('\\'), "{text}"),
            }
        }
    }

    #[test]
    fn values_and_their_order() {
        let text = br#"{"z": [1, -2.5, null, true, "a\u00fc"], "a": 18446744073709551615, "z": 0}"#;
        let Some(Json::Fields(fields)) = Json::parse(text) else { panic!("no object") };
        let keys: Vec<_> = fields.iter().map(|(key, _)| key.clone()).collect();
        assert_eq!(keys, ["z", "a", "z"].map(|key| Json::Text(key.into())));
        assert_eq!(
            fields[0].1,
            Json::List(vec![
                Json::Int(1),
                Json::Float(-2.5),
                Json::Null,
                Json::Bool(true),
                Json::Text("aü".into())
            ])
        );
        assert_eq!(fields[1].1, Json::UInt(u64::MAX));
        for wrong in [&b"{"[..], b"[1,]", b"", b"\xff", b"nul", b"[1] 2"] {
            assert_eq!(Json::parse(wrong), None);
        }
        assert_eq!(Json::parse(&[b'['; 100_000]), None);
    }
}
