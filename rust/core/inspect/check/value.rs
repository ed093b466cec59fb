//! The checks of values by their kinds.

use crate::inspect::check::url::message;
use crate::inspect::codes;
use crate::inspect::codes::Code;
use crate::inspect::finding::quoted;
use crate::sitemap::date::Written;
use crate::sitemap::url::written_fault;
use crate::sitemap::value::ValueKind;

pub use crate::sitemap::characters::trim;

/// What is wrong with a value of the given kind, without white space around it where the schema
/// collapses it: `code`, or that of dates, and the message.
pub fn fault(kind: ValueKind, code: &'static Code, text: &[u8]) -> Option<(&'static Code, String)> {
    match kind {
        ValueKind::Url(_) => {
            let url = trim(text);
            written_fault(url, b"").map(|fault| (code, message(fault, url)))
        }
        ValueKind::Date => match Written::w3c(trim(text)) {
            Ok(date) if date.precision.is_in_schema() => None,
            Ok(_) => {
                Some((&codes::DATE_PRECISION, format!("{} is not in the schema", quoted(text))))
            }
            Err(fault) => {
                Some((&codes::DATE_INVALID, format!("{}: {}", quoted(text), fault.message())))
            }
        },
        _ => kind.fault(text).map(|wrong| (code, format!("{} {wrong}", quoted(text)))),
    }
}
