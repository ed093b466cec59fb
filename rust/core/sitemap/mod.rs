//! The sitemap format: the rules for URLs, dates, language codes and other values, how they
//! are written in XML, and the limits. Used by everything else; uses no stage.

pub mod age;
pub mod changefreq;
pub mod characters;
pub mod code;
pub mod date;
pub mod element;
pub mod escape;
pub mod extension;
pub mod host;
pub mod hosts;
pub mod hreflang;
pub mod iso;
pub mod limits;
pub mod loc_fault;
pub mod namespaces;
pub mod placeholder;
pub mod priority;
pub mod site;
pub mod url;
pub mod value;
