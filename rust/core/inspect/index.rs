//! The entries of an index, and the kind of a file.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use crate::inspect::codes;
use crate::inspect::document::entry::{Entry, Form, Visitor};
use crate::inspect::document::{inflate, parse};
use crate::inspect::finding::{Finding, Location, Log};
use crate::sitemap::date::Written;
use crate::sitemap::limits::MAX_ENTRIES;

/// An entry of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// The address.
    pub loc: String,
    /// The lastmod as written, if it is a W3C Datetime.
    pub lastmod: Option<String>,
    /// The position of its `loc`.
    pub at: Location,
}

impl Child {
    /// The entry of an index; `None` for one without an address.
    pub(crate) fn of(entry: &Entry<'_>) -> Option<Child> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (!entry.loc.is_empty()).then(|| Child {
            loc: text(entry.loc),
            lastmod: entry.lastmod.filter(|lastmod| Written::w3c(lastmod).is_ok()).map(text),
            at: entry.location(0),
        })
    }
}

/// The kind of a file and, for an index, its entries.
#[derive(Debug)]
pub struct Listing {
    /// The kind of document.
    pub form: Form,
    /// XML with another root element: not a sitemap, and not a damaged one either.
    pub other: bool,
    /// The number of entries that were read, invalid ones included.
    pub entries: u64,
    /// The entries of an index, at most [`MAX_ENTRIES`]; empty for any other file.
    pub children: Vec<Child>,
    /// The first finding of each code, in the order of the file.
    pub findings: Vec<Finding>,
    /// The first finding that makes the file unreliable.
    pub first_break: Option<Finding>,
}

/// Reads the kind of a file and the entries of an index. Of any other file, only the start is read.
///
/// # Errors
/// The file cannot be opened.
pub fn peek(path: &Path) -> io::Result<Listing> {
    // the limit for the smallest file: the start of a sitemap never costs more
    list(path, Log::of_file(1, 0), false)
}

/// Reads a whole file: the entries of an index, the number of entries of a urlset or text sitemap.
///
/// # Errors
/// The file cannot be opened.
pub fn read_index(path: &Path) -> io::Result<Listing> {
    let size = std::fs::metadata(path)?.len();
    list(path, Log::of_file(1, size), true)
}

fn list(path: &Path, mut log: Log, whole: bool) -> io::Result<Listing> {
    let mut lister = Lister { whole, entries: 0, children: Vec::new() };
    let (summary, _) = parse(inflate::open_stream(path)?, &mut lister, &mut log, whole);
    let first_break = log.first_break().cloned();
    let not_sitemap = first_break
        .as_ref()
        .is_some_and(|first| std::ptr::eq(first.code, &codes::FILE_NOT_SITEMAP));
    Ok(Listing {
        form: summary.form,
        // data that is not XML was not read at all, and may be a damaged sitemap
        other: not_sitemap && summary.bytes > 0,
        entries: summary.entries,
        children: lister.children,
        findings: log.into_listed(),
        first_break,
    })
}

struct Lister {
    /// Read a urlset and a text sitemap to the end, too.
    whole: bool,
    entries: u64,
    children: Vec<Child>,
}

impl Visitor for Lister {
    fn root(&mut self, form: Form) -> ControlFlow<()> {
        match self.whole || form == Form::Index {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    fn entry(&mut self, form: Form, entry: &Entry<'_>, _: &mut Log) -> ControlFlow<()> {
        self.entries += 1;
        if form == Form::Index && self.entries <= MAX_ENTRIES {
            self.children.extend(Child::of(entry));
        }
        // one more than the limit shows that the limit is exceeded
        match self.whole || self.entries <= MAX_ENTRIES {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}
