//! The checks of values by their kinds.

use crate::inspect::check::{date, url};
use crate::inspect::codes;
use crate::inspect::codes::Code;
use crate::inspect::finding::quoted;
use crate::sitemap::value::ValueKind;

pub use crate::sitemap::characters::trim;

/// What is wrong with a value of the given kind, without white space around it where the schema
/// collapses it: `code`, or that of dates, and the message.
pub fn fault(kind: ValueKind, code: &'static Code, text: &[u8]) -> Option<(&'static Code, String)> {
    match kind {
        ValueKind::Url(_) => url::fault(trim(text), b"").map(|(_, message)| (code, message)),
        ValueKind::Date => match date::parse(trim(text)) {
            Ok((_, precision)) if precision.is_in_schema() => None,
            Ok(_) => {
                Some((&codes::DATE_PRECISION, format!("{} is not in the schema", quoted(text))))
            }
            Err(why) => Some((&codes::DATE_INVALID, format!("{}: {why}", quoted(text)))),
        },
        _ => kind.fault(text).map(|wrong| (code, format!("{} {wrong}", quoted(text)))),
    }
}
