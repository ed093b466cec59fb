//! Codes of findings: what `verify` reports about a sitemap.

use serde::Serialize;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For information; crawlers are not affected.
    Note,
    /// The text of the protocol and the schema disagree, or crawlers may ignore it.
    Warning,
    /// Violates the text of the protocol or its official schema.
    Error,
}

impl Severity {
    /// `note`, `warning`, `error`
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A kind of finding.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// The stable name, such as `loc.relative`.
    pub name: &'static str,
    /// How severe it is.
    pub severity: Severity,
    /// What to do about it.
    pub help: &'static str,
}

/// Defines codes and `ALL`, their list in the order of the documentation.
macro_rules! codes {
    ($($id:ident $severity:ident $name:literal $help:literal)*) => {
        $(#[doc = concat!("`", $name, "`: ", $help)]
        pub static $id: $crate::sitemap::code::Code = $crate::sitemap::code::Code {
            name: $name,
            severity: $crate::sitemap::code::Severity::$severity,
            help: $help,
        };)*
        /// All codes defined here, in the order of the documentation.
        pub static ALL: &[&$crate::sitemap::code::Code] = &[$(&$id),*];
    };
}
pub(crate) use codes;
