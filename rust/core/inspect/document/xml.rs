//! The parser of `urlset` and `sitemapindex` documents.
//!
//! quick-xml splits the document into tokens; the parser checks them against the content models.
//! After a fault that quick-xml cannot recover from, the parser resynchronises at the next entry. It
//! finds all faults of a file and still reads the valid entries. A `<url>` of the common shape takes
//! the fast path instead: see [`super::fast`].

use std::ops::ControlFlow;

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::inspect::codes;
use crate::inspect::codes::Code;
use crate::inspect::document::entry::{Entry, Form, Locations, Visitor};
use crate::inspect::document::fast;
use crate::inspect::document::model::{MAX_CHILDREN, Ns};
use crate::inspect::document::names::{Namespaces, short};
use crate::inspect::document::window::Window;
use crate::inspect::entry_buf::EntryBuf;
use crate::inspect::finding::{Location, Log, TOKEN_STEPS, text};
use crate::sitemap::element::Element;

/// The deepest nesting that is read; a legal sitemap has five levels.
pub(crate) const MAX_DEPTH: usize = 32;

/// An open element.
pub(crate) struct Frame {
    /// Where its name starts in `Parser::names`.
    pub(crate) name: usize,
    /// `None` for an unknown element, whose content is skipped.
    pub(crate) model: Option<&'static Element>,
    pub(crate) ns: Ns,
    /// The smallest index in the content model that the next child may have.
    pub(crate) next: usize,
    pub(crate) seen: [u16; MAX_CHILDREN],
    pub(crate) at: Location,
    pub(crate) text_reported: bool,
}

/// What the parser read of a document.
pub struct Document {
    /// Its form.
    pub form: Form,
    /// The number of entries, including those without loc.
    pub entries: u64,
    /// Whether the visitor stopped the parser.
    pub stopped: bool,
}

/// Reads one document. `fast` enables the fast path for entries of the common shape.
pub fn parse(
    source: Window,
    visitor: &mut dyn Visitor,
    log: &mut Log,
    fast: bool,
) -> (Document, Window) {
    let checks = visitor.checks();
    let mut parser = Parser {
        visitor,
        log,
        stack: Vec::new(),
        names: String::new(),
        namespaces: Namespaces::default(),
        entry: EntryBuf::default(),
        text: Vec::new(),
        document: Document { form: Form::Unknown, entries: 0, stopped: false },
        root_done: false,
        recovered: false,
        allow_fast: fast,
        fast: false,
        foreign: Vec::new(),
        extensions: fast::Extensions { checks, ..Default::default() },
        decoded: source.is_decoded(),
        doctype: false,
    };
    let source = parser.run(source);
    (parser.document, source)
}

pub(crate) struct Parser<'v> {
    pub(crate) visitor: &'v mut dyn Visitor,
    pub(crate) log: &'v mut Log,
    pub(crate) stack: Vec<Frame>,
    pub(crate) names: String,
    pub(crate) namespaces: Namespaces,
    pub(crate) entry: EntryBuf,
    pub(crate) text: Vec<u8>,
    pub(crate) document: Document,
    pub(crate) root_done: bool,
    pub(crate) recovered: bool,
    pub(crate) allow_fast: bool,
    pub(crate) fast: bool,
    pub(crate) foreign: Vec<String>,
    pub(crate) extensions: fast::Extensions,
    /// The bytes were in another encoding, so a declaration may name it.
    pub(crate) decoded: bool,
    /// A DOCTYPE was read.
    pub(crate) doctype: bool,
}

/// The steps of a resynchronisation (see [`Log::spend`]).
const RESYNC_STEPS: u64 = 14;
/// The number of `<` that a resynchronisation checks for one step (measured: 16 ns each).
const SKIPPED_PER_STEP: u32 = 4;
/// The number of tokens after which the parser checks whether the visitor wants to stop.
const STOP_CHECK_INTERVAL: u32 = 4096;
/// The fast path reads more bytes if the window is smaller than this. A `<url>` of the common shape
/// without extensions is much shorter.
const MIN_WINDOW: usize = 16 << 10;

/// What to do after a token.
pub(super) enum Next {
    Continue,
    /// The structure is lost: resynchronise at the next entry.
    Recover,
    Stop,
}

impl Parser<'_> {
    /// Reads the document; each fault that loses the structure starts a new reader.
    fn run(&mut self, mut source: Window) -> Window {
        let mut buffer = Vec::new();
        loop {
            self.log.spend(RESYNC_STEPS);
            let mut reader = Reader::from_reader(source);
            let config = reader.config_mut();
            config.check_end_names = false; // `Parser::end` checks them against the stack
            config.allow_unmatched_ends = true;
            config.check_comments = true;
            config.allow_dangling_amp = true; // `Parser::tokens` reports it and continues
            let next = self.tokens(&mut reader, &mut buffer);
            source = reader.into_inner();
            self.report_damage(&mut source);
            match next {
                Next::Recover if self.resynchronise(&mut source) => self.recovered = true,
                _ => return source,
            }
        }
    }

    /// Reads tokens until the end or a fault.
    fn tokens(&mut self, reader: &mut Reader<Window>, buffer: &mut Vec<u8>) -> Next {
        let mut after_tag = false;
        let mut tokens = 0u32;
        loop {
            tokens = tokens.wrapping_add(1);
            if !self.log.spend(TOKEN_STEPS) {
                return self.abandon(reader.get_ref().at());
            }
            if tokens.is_multiple_of(STOP_CHECK_INTERVAL) && self.visitor.stopped() {
                self.document.stopped = true;
                return Next::Stop;
            }
            // only after a tag: after a text, quick-xml already expects markup
            if self.fast && after_tag && self.stack.len() == 1 && !self.root_done {
                match self.fast_path(reader.get_mut()) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => return Next::Stop,
                    Err(error) => return self.io(&error, reader.get_ref().at()),
                }
            }
            buffer.clear();
            reader.get_mut().start_token();
            let at = reader.get_ref().at();
            let event = reader.read_event_into(buffer);
            after_tag = matches!(event, Ok(Event::Start(_) | Event::Empty(_) | Event::End(_)));
            let next = match event {
                Ok(Event::Eof) => {
                    let damaged = reader.get_ref().is_damaged();
                    return self.eof(at, damaged);
                }
                Ok(Event::Start(tag)) => {
                    let (name, rest) = tag.split_at(name_end(&tag));
                    self.start(name, rest, at, false)
                }
                Ok(Event::Empty(tag)) => {
                    let (name, rest) = tag.split_at(name_end(&tag));
                    self.start(name, rest, at, true)
                }
                Ok(Event::End(tag)) => self.end(&tag, at),
                Ok(Event::Text(part)) => {
                    if part.contains("]]>") {
                        self.bad(&codes::XML_MALFORMED, at, || "\"]]>\" in text".to_owned());
                    }
                    if part.contains('&') {
                        self.bad(&codes::XML_MALFORMED, at, || "a bare &: write &amp;".to_owned());
                    }
                    self.characters(&part, at)
                }
                Ok(Event::CData(part)) => {
                    if self.stack.is_empty() {
                        self.bad(&codes::XML_TRAILING, at, || "CDATA outside the root".to_owned());
                    }
                    self.characters(&part, at)
                }
                Ok(Event::GeneralRef(name)) => self.reference(&name, at),
                Ok(Event::Comment(comment)) => {
                    self.check_characters(&comment, at);
                    Next::Continue
                }
                Ok(Event::Decl(declaration)) => self.declaration(&declaration, at),
                Ok(Event::PI(pi)) => self.instruction(&pi, at),
                Ok(Event::DocType(doctype)) => {
                    self.doctype(&doctype, at);
                    Next::Continue
                }
                Err(error) => {
                    let source = reader.get_ref();
                    if source.is_token_too_long() {
                        self.bad(&codes::XML_TOO_LONG, at, || {
                            "more than 1 MiB in one piece".to_owned()
                        });
                        return Next::Stop;
                    }
                    let damaged = source.is_damaged();
                    self.syntax_error(error, at, damaged)
                }
            };
            match next {
                Next::Continue => {}
                other => return other,
            }
        }
    }

    /// Reads entries of the common shape until another shape follows.
    fn fast_path(&mut self, source: &mut Window) -> std::io::Result<ControlFlow<()>> {
        loop {
            let at = source.at();
            let window = source.window();
            let Some(shape) = fast::scan(window, at, &mut self.extensions) else {
                // another shape, or the entry does not end in the window: read more and try again
                if window.len() < MIN_WINDOW && source.more()? {
                    continue;
                }
                return Ok(ControlFlow::Continue(()));
            };
            let raw = &window[shape.start..shape.end];
            let get = |which: usize| {
                let (start, end) = shape.texts[which];
                (start < end).then(|| &window[start..end])
            };
            let mut loc = get(0).unwrap_or_default();
            let mut bare_apostrophe = memchr::memchr(b'\'', loc).is_some();
            if shape.escaped {
                self.text.clear();
                fast::unescape(loc, &mut self.text);
                bare_apostrophe = memchr::memchr(b'\'', loc).is_some();
                loc = &self.text;
            }
            let lines = memchr::memchr_iter(b'\n', &window[..shape.start]).count() as u64;
            let entry = Entry {
                loc,
                lastmod: get(1),
                changefreq: get(2),
                priority: get(3),
                parts: &self.extensions.parts,
                arena: &self.extensions.arena,
                at: Location { offset: at.offset + shape.start as u64, line: at.line + lines },
                locations: Locations::Within(
                    raw,
                    shape.tags.map(|tag| tag.saturating_sub(shape.start) as u32),
                ),
                padded: 0,
                bare_apostrophe,
            };
            self.document.entries += 1;
            if !self.log.spend(1) {
                self.abandon(at);
                return Ok(ControlFlow::Break(()));
            }
            if let Some(root) = self.stack.first_mut() {
                root.seen[0] = 1;
            }
            if self.visitor.entry(self.document.form, &entry, self.log).is_break() {
                self.document.stopped = true;
                return Ok(ControlFlow::Break(()));
            }
            source.advance(shape.end);
        }
    }

    /// Adds a finding with the URL of the current entry.
    pub(super) fn bad(
        &mut self,
        code: &'static Code,
        at: Location,
        message: impl FnOnce() -> String,
    ) {
        self.log.add(code, at, Some(self.entry.loc()), message);
    }

    /// Stops at the limit of steps or faults of a file.
    fn abandon(&mut self, at: Location) -> Next {
        if let Some(message) = self.log.exhausted() {
            self.bad(&codes::FILE_ABANDONED, at, || message);
        }
        self.document.stopped = true;
        Next::Stop
    }

    /// Reports a document that ends inside an element.
    fn eof(&mut self, at: Location, damaged: bool) -> Next {
        if let Some(frame) = self.stack.last().filter(|_| !damaged) {
            let open = self.names.get(frame.name..).unwrap_or_default();
            let message = format!("the file ends inside <{}>", short(open));
            self.bad(&codes::XML_TRUNCATED, at, || message);
        }
        Next::Stop
    }

    /// Reports an error of quick-xml.
    fn syntax_error(&mut self, error: quick_xml::Error, at: Location, damaged: bool) -> Next {
        use quick_xml::Error as E;
        match error {
            E::Io(error) => return self.io(&error, at),
            _ if damaged => {} // already reported as damage of the compressed data
            E::Encoding(_) => {} // the source reports the location
            E::Syntax(error) => {
                let code = match error {
                    quick_xml::errors::SyntaxError::InvalidBangMarkup => &codes::XML_MALFORMED,
                    _ => &codes::XML_TRUNCATED,
                };
                self.bad(code, at, || error.to_string());
            }
            other => {
                self.bad(&codes::XML_MALFORMED, at, || text(other.to_string().as_bytes(), 200))
            }
        }
        Next::Recover
    }

    /// Reports an error of reading the file.
    fn io(&mut self, error: &std::io::Error, at: Location) -> Next {
        self.bad(&codes::FILE_UNREADABLE, at, || crate::error::plain(error));
        Next::Stop
    }

    /// Reports the damage that the source met at the end of its bytes.
    fn report_damage(&mut self, source: &mut Window) {
        if let Some((damage, at)) = source.take_damage() {
            self.bad(damage.code, at, || damage.message);
        }
    }

    /// Skips to the next entry inside the root after a fault; false if there is none.
    fn resynchronise(&mut self, source: &mut Window) -> bool {
        if self.stack.is_empty() {
            return false;
        }
        source.start_token();
        let mut skipped = 0u32;
        let wanted = |bytes: &[u8]| {
            skipped = skipped.wrapping_add(1);
            if skipped.is_multiple_of(SKIPPED_PER_STEP) && !self.log.spend(1) {
                return true; // no steps are left: `tokens` stops
            }
            let rest =
                bytes.strip_prefix(b"</urlset").or_else(|| bytes.strip_prefix(b"</sitemapindex"));
            if rest.is_some() {
                return true;
            }
            let rest = bytes.strip_prefix(b"<url").or_else(|| bytes.strip_prefix(b"<sitemap"));
            rest.and_then(|rest| rest.first()).is_some_and(|b| b">/ \t\r\n".contains(b))
        };
        if !matches!(source.skip_to(wanted), Ok(true)) {
            self.report_damage(source);
            return false;
        }
        if let Some(frame) = self.stack.get(1) {
            self.names.truncate(frame.name);
        }
        self.stack.truncate(1);
        self.namespaces.close(1);
        self.entry.clear();
        self.text.clear();
        true
    }
}

fn name_end(tag: &str) -> usize {
    let end = memchr::memchr3(b' ', b'\n', b'\t', tag.as_bytes()).unwrap_or(tag.len());
    memchr::memchr(b'\r', &tag.as_bytes()[..end]).unwrap_or(end)
}
