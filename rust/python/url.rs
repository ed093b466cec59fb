//! URLs: one set of rules for building, verifying and announcing.

use pyo3::prelude::*;
use urlset_core::inspect::check::url::message;
use urlset_core::sitemap::host;
use urlset_core::sitemap::url::{self, Absolute};

/// The parts of an absolute http or https URL.
#[pyclass(frozen, get_all, module = "urlset._core")]
pub struct Url {
    /// `http` or `https`.
    scheme: String,
    /// The part before `@`.
    userinfo: Option<String>,
    /// In lower case; an IPv6 address with its brackets.
    host: String,
    /// Without the default port of the scheme.
    port: Option<u16>,
    /// As written; may be empty.
    path: String,
    /// As written, without `?`.
    query: Option<String>,
    /// As written, without `#`.
    fragment: Option<String>,
}

#[pymethods]
impl Url {
    /// Host, and port if it is not the default of the scheme: `www.shop.example:8080`.
    #[getter]
    fn authority(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", self.host)
    }

    /// Scheme and authority: `https://www.shop.example`.
    #[getter]
    fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority())
    }
}

/// The parts of an absolute http or https URL with a legal host and port; None for any other text.
/// The characters of path, query and fragment are not checked: see `url_fault`.
#[pyfunction]
pub fn split_url(text: &str) -> Option<Url> {
    let Absolute { scheme, authority, parts, .. } = url::split_absolute(text.as_bytes())?;
    let https = url::is_https(scheme)?;
    let owned = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    host::is_written(authority.host).then_some(())?;
    Some(Url {
        scheme: url::scheme(https).to_owned(),
        userinfo: authority.userinfo.map(owned),
        host: owned(authority.host).to_ascii_lowercase(),
        port: authority.port()?.filter(|&port| port != url::default_port(https)),
        path: owned(parts.path),
        query: parts.query.map(owned),
        fragment: parts.fragment.map(owned),
    })
}

/// The first fault of an absolute http or https URL as `verify` reports it, length aside; None for
/// a legal one.
#[pyfunction]
pub fn url_fault(text: &str) -> Option<String> {
    let text = text.as_bytes();
    url::written_fault(text, b"").map(|fault| message(fault, text))
}
