//! URLs: one rule for what a build writes, what is verified and what is announced.

use pyo3::prelude::*;
use urlset_core::inspect::check::url;
use urlset_core::sitemap::host;

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
    let parts = url::split(text.as_bytes())?;
    let owned = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let scheme = owned(parts.scheme).to_ascii_lowercase();
    let default = match scheme.as_str() {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    if !host::is_written(parts.host) {
        return None;
    }
    let port = host::port(std::str::from_utf8(parts.port.unwrap_or_default()).ok()?)?;
    let rest = std::str::from_utf8(parts.rest).ok()?;
    let (rest, fragment) = cut(rest, '#');
    let (path, query) = cut(rest, '?');
    Some(Url {
        scheme,
        userinfo: parts.userinfo.map(owned),
        host: owned(parts.host).to_ascii_lowercase(),
        port: port.filter(|&port| port != default),
        path: path.to_owned(),
        query: query.map(str::to_owned),
        fragment: fragment.map(str::to_owned),
    })
}

fn cut(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// The first fault of an absolute http or https URL as `verify` reports it, length aside; None for
/// a legal one.
#[pyfunction]
pub fn url_fault(text: &str) -> Option<String> {
    url::fault(text.as_bytes(), b"").map(|(_, message)| message)
}
