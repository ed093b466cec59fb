//! The site, and the folder of its sitemaps.

use crate::error::{ErrorCode, Result};
use crate::sitemap::characters::CONTROL;
use crate::sitemap::loc_fault::LocFault;
use crate::sitemap::url::{self, Authority, UrlParts, is_https};

/// Scheme, host, port and path of a URL without query and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    https: bool,
    host: String,
    port: u16,
    path: String,
}

/// The site (`--site`): the base of relative references, and the host that URLs may have.
#[derive(Debug, Clone)]
pub struct Site {
    address: Address,
    origin: String,
}

impl Site {
    /// Parses an absolute URL; its path is the base of relative references.
    ///
    /// # Errors
    /// `config.site` for anything but an absolute http or https URL, and for one with user
    /// information, query or fragment.
    pub fn parse(url: &str) -> Result<Site> {
        let address = Address::parse(url).map_err(|what| {
            let help = "write for example https://www.shop.example";
            ErrorCode::ConfigSite.error(format!("site {url:?}: {what}; {help}"))
        })?;
        let Address { https, host, port, .. } = &address;
        let mut origin = format!("{}://{host}", url::scheme(*https));
        if *port != url::default_port(*https) {
            origin.push_str(&format!(":{port}"));
        }
        Ok(Site { address, origin })
    }

    /// Scheme, host and port in canonical form: `https://www.shop.example`,
    /// lower-case, punycode, without the scheme's default port.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether the scheme is https.
    pub fn https(&self) -> bool {
        self.address.https
    }

    /// The host, in lower case and punycode.
    pub fn host(&self) -> &str {
        &self.address.host
    }

    /// The port, the default of the scheme if the URL has none.
    pub fn port(&self) -> u16 {
        self.address.port
    }

    /// The path, percent-encoded and without dot segments; may be empty.
    pub fn path(&self) -> &str {
        &self.address.path
    }
}

/// The address of the folder of the sitemaps (`--sitemap-url`).
#[derive(Debug, Clone)]
pub struct Folder {
    address: Address,
    /// The host was `{host}`: each host has such a folder.
    any_host: bool,
}

impl Folder {
    /// Parses an absolute URL, with or without the final `/`. The host `{host}` means any host.
    ///
    /// # Errors
    /// `config.sitemap_url`, as for [`Site::parse`].
    pub fn parse(url: &str) -> Result<Folder> {
        let any_host = url.contains("://{host}");
        let plain = if any_host { url.replacen("://{host}", "://host", 1) } else { url.to_owned() };
        let mut address = Address::parse(&plain).map_err(|what| {
            let help = "write for example https://www.shop.example/sitemaps/";
            ErrorCode::ConfigSitemapUrl.error(format!("sitemap-url {url:?}: {what}; {help}"))
        })?;
        if !address.path.ends_with('/') {
            address.path.push('/');
        }
        Ok(Folder { address, any_host })
    }

    /// Whether a URL of this scheme, host and port can be inside at all.
    pub(crate) fn same_origin(&self, https: bool, host: &str, port: u16) -> bool {
        let address = &self.address;
        address.https == https
            && address.port == port
            && (self.any_host || address.host.eq_ignore_ascii_case(host))
    }

    /// Whether a percent-encoded path, with or without a query, is inside. An empty path is `/`. The
    /// path of the folder has no `?`, so a match never extends into the query.
    #[inline]
    pub(crate) fn contains_path(&self, path: &[u8]) -> bool {
        let folder = self.address.path.as_bytes();
        folder == b"/" || path.starts_with(folder)
    }
}

impl Address {
    fn parse(text: &str) -> std::result::Result<Address, &'static str> {
        let text = text.trim_ascii();
        if CONTROL.first_in(text.as_bytes()).is_some() {
            return Err(LocFault::Control.message());
        }
        if text.contains('\\') {
            return Err("has a backslash");
        }
        let UrlParts { scheme, authority: whole, path: raw, query, fragment } =
            url::split(text.as_bytes()).map_err(LocFault::message)?;
        let https = scheme.and_then(is_https).ok_or("not an absolute http or https URL")?;
        if query.is_some() || fragment.is_some() {
            return Err("has a query or a fragment");
        }
        let whole = whole.ok_or(LocFault::NoHost.message())?;
        let Authority { host, port, .. } = url::authority(whole).map_err(LocFault::message)?;
        let mut path = Vec::new();
        url::percent_into(raw, true, &mut path).map_err(LocFault::message)?;
        url::remove_dots(&mut path, 0);
        Ok(Address {
            https,
            host: host.to_ascii_lowercase(),
            port: port.unwrap_or(url::default_port(https)),
            path: String::from_utf8_lossy(&path).into_owned(),
        })
    }
}
