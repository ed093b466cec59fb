//! The parser of `urlset` and `sitemapindex` documents.
//!
//! quick-xml gives the tokens; this file holds them against the content models. After a fault
//! that quick-xml cannot pass it goes on at the next entry: all faults of a file are found, and
//! what is sound around them is read. The common shape of a `<url>` does not take this way: see
//! [`super::fast`].

use std::ops::ControlFlow;

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::inspect::build::EntryBuf;
use crate::inspect::check::extension;
use crate::inspect::codes;
use crate::inspect::codes::Code;
use crate::inspect::document::entry::{Entry, Form, Places, Visitor};
use crate::inspect::document::fast;
use crate::inspect::document::model::{MAX_CHILDREN, Ns};
use crate::inspect::document::names::{Namespaces, attributes, is_name, is_space};
use crate::inspect::document::source::Source;
use crate::inspect::finding::{Location, Log, TOKEN_STEPS, quoted, text};
use crate::sitemap::element::{Content, Element, Role};
use crate::sitemap::extension as format;
use crate::sitemap::namespaces::{ALTERNATES, ARTICLES, IMAGES};

/// Deepest nesting that is followed; a legal sitemap has five levels.
pub const MAX_DEPTH: usize = 32;

/// An open element.
pub(crate) struct Frame {
    /// Where its name starts in `Parser::names`.
    pub(crate) name: usize,
    /// `None`: unknown, its inside is skipped.
    pub(crate) model: Option<&'static Element>,
    pub(crate) ns: Ns,
    /// The place in the order of the model that the next child may not fall behind.
    pub(crate) next: usize,
    pub(crate) seen: [u16; MAX_CHILDREN],
    at: Location,
    told_text: bool,
}

/// How reading a document ended.
pub struct Document {
    /// What it is.
    pub form: Form,
    /// How many entries it has, the ones without loc included.
    pub entries: u64,
    /// `news:news` blocks.
    pub news: u64,
    /// The visitor said stop.
    pub stopped: bool,
}

/// Reads one document. `fast`: take the short cut for the common shape where it fits.
pub fn parse<V: Visitor>(
    source: Source,
    visitor: &mut V,
    log: &mut Log,
    fast: bool,
) -> (Document, Source) {
    let mut parser = Parser {
        visitor,
        log,
        stack: Vec::new(),
        names: String::new(),
        namespaces: Namespaces::default(),
        entry: EntryBuf::default(),
        text: Vec::new(),
        document: Document { form: Form::Unknown, entries: 0, news: 0, stopped: false },
        root_done: false,
        recovered: false,
        allow_fast: fast,
        fast: false,
        foreign: Vec::new(),
        extensions: fast::Extensions { checks: V::CHECKS, ..Default::default() },
        decoded: source.is_decoded(),
        doctype: false,
    };
    let source = parser.run(source);
    (parser.document, source)
}

pub(crate) struct Parser<'v, V: Visitor> {
    pub(crate) visitor: &'v mut V,
    pub(crate) log: &'v mut Log,
    pub(crate) stack: Vec<Frame>,
    pub(crate) names: String,
    pub(crate) namespaces: Namespaces,
    pub(crate) entry: EntryBuf,
    pub(crate) text: Vec<u8>,
    pub(crate) document: Document,
    root_done: bool,
    recovered: bool,
    allow_fast: bool,
    fast: bool,
    pub(crate) foreign: Vec<String>,
    extensions: fast::Extensions,
    /// The bytes were in another encoding, which a declaration may name.
    decoded: bool,
    /// A DOCTYPE was met.
    doctype: bool,
}

/// Steps of a resynchronisation, in those of a file's cost.
const RESYNC: u64 = 14;
/// How many `<` a resynchronisation may look at for one step (measured: 16 ns each).
const SKIPPED_PER_STEP: u32 = 4;
/// Steps of an entry beside its tokens, where the short cut does not take it.
const ENTRY: u64 = 8;
/// Tokens after which the visitor is asked whether to go on.
const ASK: u32 = 4096;

/// What to do after a token.
enum Next {
    Go,
    /// The structure is lost: go on at the next entry.
    Recover,
    Stop,
}

impl<V: Visitor> Parser<'_, V> {
    fn run(&mut self, mut source: Source) -> Source {
        let mut buffer = Vec::new();
        loop {
            self.log.spend(RESYNC);
            let mut reader = Reader::from_reader(source);
            let config = reader.config_mut();
            config.check_end_names = false; // checked here, against our own stack
            config.allow_unmatched_ends = true;
            config.check_comments = true;
            config.allow_dangling_amp = true; // told below, and read on
            let next = self.tokens(&mut reader, &mut buffer);
            source = reader.into_inner();
            self.end_of_bytes(&mut source);
            match next {
                Next::Recover if self.resume(&mut source) => self.recovered = true,
                _ => return source,
            }
        }
    }

    /// Reads tokens until the end or a fault.
    fn tokens(&mut self, reader: &mut Reader<Source>, buffer: &mut Vec<u8>) -> Next {
        let mut after_tag = false;
        let mut tokens = 0u32;
        loop {
            tokens = tokens.wrapping_add(1);
            if !self.log.spend(TOKEN_STEPS) {
                return self.abandon(reader.get_ref().at());
            }
            if tokens.is_multiple_of(ASK) && self.visitor.stopped() {
                self.document.stopped = true;
                return Next::Stop;
            }
            // behind a text quick-xml has made up its mind that markup follows
            if self.fast && after_tag && self.stack.len() == 1 && !self.root_done {
                match self.short_cut(reader.get_mut()) {
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
                    Next::Go
                }
                Ok(Event::Decl(declaration)) => self.declaration(&declaration, at),
                Ok(Event::PI(pi)) => self.instruction(&pi, at),
                Ok(Event::DocType(doctype)) => {
                    self.doctype(&doctype, at);
                    Next::Go
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
                    self.refused(error, at, damaged)
                }
            };
            match next {
                Next::Go => {}
                other => return other,
            }
        }
    }

    /// Takes entries of the common shape as long as there are some.
    fn short_cut(&mut self, source: &mut Source) -> std::io::Result<ControlFlow<()>> {
        loop {
            let at = source.at();
            let window = source.window();
            let Some(shape) = fast::scan(window, at, &mut self.extensions) else {
                // not the common shape, or not wholly in the window: then look once more
                if window.len() < 16 << 10 && source.more()? {
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
            let mut bare = memchr::memchr(b'\'', loc).is_some();
            if shape.escaped {
                self.text.clear();
                fast::unescape(loc, &mut self.text);
                bare = memchr::memchr(b'\'', loc).is_some();
                loc = &self.text;
            }
            let lead = memchr::memchr_iter(b'\n', &window[..shape.start]).count() as u64;
            let entry = Entry {
                loc,
                lastmod: get(1),
                changefreq: get(2),
                priority: get(3),
                parts: &self.extensions.parts,
                arena: &self.extensions.arena,
                at: Location { offset: at.offset + shape.start as u64, line: at.line + lead },
                places: Places::Within(
                    raw,
                    shape.tags.map(|tag| tag.saturating_sub(shape.start) as u32),
                ),
                padded: 0,
                bare_apostrophe: bare,
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

    pub(crate) fn bad(
        &mut self,
        code: &'static Code,
        at: Location,
        message: impl FnOnce() -> String,
    ) {
        self.log.add(code, at, Some(self.entry.loc()), message);
    }

    fn start(&mut self, name: &str, rest: &str, at: Location, empty: bool) -> Next {
        let mut raw = Vec::new();
        if !is_name(name) {
            self.bad(&codes::XML_MALFORMED, at, || {
                format!("{} is no element name", quoted(name.as_bytes()))
            });
            return Next::Recover;
        }
        if let Err(what) = attributes(rest, &mut raw) {
            self.bad(&codes::XML_MALFORMED, at, || {
                format!("{what} in <{}>", text(name.as_bytes(), 60))
            });
        }
        if self.stack.len() == MAX_DEPTH {
            self.bad(&codes::XML_DEPTH, at, || {
                format!("elements nested {MAX_DEPTH} levels deep and more")
            });
            return Next::Stop;
        }
        let depth = self.stack.len() + 1;
        if let Err(what) = self.namespaces.open(&raw, depth) {
            self.bad(&codes::NS_PREFIX, at, || {
                format!("{what} in <{}>", text(name.as_bytes(), 60))
            });
        }
        let first = self.document.form == Form::Unknown && self.stack.is_empty();
        let model = if self.root_done {
            self.bad(&codes::XML_TRAILING, at, || "an element after the root".to_owned());
            None
        } else if self.stack.is_empty() {
            self.root(name, at)
        } else {
            self.child(name, at)
        };
        let ns = self.namespaces.element(name).map_or(Ns::Foreign, |own| own.0);
        let names = self.names.len();
        self.names.push_str(name);
        let frame = Frame {
            name: names,
            model,
            ns,
            next: 0,
            seen: [0; MAX_CHILDREN],
            at,
            told_text: false,
        };
        self.stack.push(frame);
        self.text.clear();
        if let Some(model) = model {
            if self.entry.is_full() {
                self.bad(&codes::XML_TOO_LONG, at, || "more than 8 MiB in one entry".to_owned());
                return Next::Stop;
            }
            self.entry.open(model, at);
            if format::of_root(model) == Some(ARTICLES) {
                self.document.news += 1;
            }
            self.attributes(model, &raw, at);
        } else {
            for (name, value) in &raw {
                self.attribute_text(name, value, at);
            }
        }
        if self.stack.len() == 1 {
            // the short cut takes names without prefix for those of sitemaps
            self.fast = self.allow_fast
                && self.document.form == Form::Urlset
                && !name.contains(':')
                && !empty;
            let bound = |name, ns| self.namespaces.element(name).is_some_and(|own| own.0 == ns);
            self.extensions.images = bound("image:image", Ns::Extension(IMAGES));
            self.extensions.links = bound("xhtml:link", Ns::Extension(ALTERNATES));
            if first && self.visitor.root(self.document.form).is_break() {
                self.document.stopped = true;
                return Next::Stop;
            }
        }
        if empty { self.close(at) } else { Next::Go }
    }

    fn end(&mut self, tag: &str, at: Location) -> Next {
        let open =
            self.stack.last().and_then(|frame| self.names.get(frame.name..)).unwrap_or_default();
        if self.stack.is_empty() || open != tag {
            let outside = self.stack.is_empty();
            self.log.add(&codes::XML_MISMATCH, at, Some(self.entry.loc()), || match outside {
                true => format!("</{}> closes nothing", text(tag.as_bytes(), 60)),
                false => format!(
                    "</{}> where </{}> belongs",
                    text(tag.as_bytes(), 60),
                    text(open.as_bytes(), 60)
                ),
            });
            return if outside { Next::Go } else { Next::Recover };
        }
        self.close(at)
    }

    /// An element ends: its value, its required children.
    fn close(&mut self, _end: Location) -> Next {
        let Some(frame) = self.stack.pop() else { return Next::Go };
        self.names.truncate(frame.name);
        self.namespaces.close(self.stack.len());
        let depth = self.stack.len();
        if let Some(model) = frame.model {
            match model.content {
                Content::Text(kind) => self.value(model, kind, frame.at),
                Content::Elements { children, .. } if V::CHECKS => {
                    for (which, child) in children.iter().enumerate() {
                        // a missing loc and an empty root have codes of their own
                        if child.occurs.0 > 0
                            && frame.seen[which] == 0
                            && depth > 1
                            && child.role != Role::Loc
                        {
                            self.bad(&codes::ELEMENT_MISSING, frame.at, || {
                                format!("<{}> lacks <{}>", model.name, child.name)
                            });
                        }
                    }
                    if let Some(place) = format::of_root(model) {
                        extension::block(format::ALL[place], &self.entry, frame.at, self.log);
                    }
                }
                _ => {}
            }
            if model.role == Role::Entry {
                return self.finish_entry();
            }
        }
        if depth == 0 {
            self.root_done = true;
        }
        self.text.clear();
        Next::Go
    }

    fn finish_entry(&mut self) -> Next {
        self.document.entries += 1;
        self.log.spend(ENTRY);
        let flow = self.visitor.entry(self.document.form, &self.entry.entry(), self.log);
        self.entry.clear();
        self.text.clear();
        self.document.stopped |= flow.is_break();
        if flow.is_break() { Next::Stop } else { Next::Go }
    }

    fn characters(&mut self, part: &str, at: Location) -> Next {
        self.check_characters(part, at);
        let Some(frame) = self.stack.last_mut() else {
            if !part.chars().all(is_space) {
                let (code, what) = match self.root_done {
                    true => (&codes::XML_TRAILING, "text after the root"),
                    false => (&codes::XML_DECLARATION, "text before the root"),
                };
                self.bad(code, at, || format!("{what}: {}", quoted(part.trim().as_bytes())));
            } else if at.offset == 0 && !part.is_empty() && !self.recovered {
                self.entry.lead = true; // white space first: a declaration after it is an error
            }
            return Next::Go;
        };
        let Some(model) = frame.model else { return Next::Go };
        match model.content {
            Content::Text(_) => {
                if model.role == Role::Loc && part.contains('\'') {
                    self.entry.bare_apostrophe = true;
                }
                if part.contains('\r') {
                    // XML 1.0, 2.11: CR and CRLF are read as LF
                    self.text.extend_from_slice(
                        part.replace("\r\n", "\n").replace('\r', "\n").as_bytes(),
                    );
                } else {
                    self.text.extend_from_slice(part.as_bytes());
                }
                if self.text.len() > super::source::MAX_TOKEN {
                    self.bad(&codes::XML_TOO_LONG, at, || "a text of more than 1 MiB".to_owned());
                    return Next::Stop;
                }
            }
            _ => self.stray(part, model, at),
        }
        Next::Go
    }

    /// Text where only elements belong: told once an element.
    fn stray(&mut self, part: &str, model: &'static Element, at: Location) {
        if part.chars().all(is_space) && !matches!(model.content, Content::Empty) {
            return;
        }
        if let Some(frame) = self.stack.last_mut().filter(|frame| !frame.told_text) {
            frame.told_text = true;
            self.bad(&codes::ELEMENT_TEXT, at, || {
                format!("text in <{}>: {}", model.name, quoted(part.trim().as_bytes()))
            });
        }
    }

    fn reference(&mut self, name: &str, at: Location) -> Next {
        let mut out = Vec::new();
        self.resolve(name, at, &mut out);
        match self.stack.last().and_then(|frame| frame.model) {
            Some(Element { content: Content::Text(_), .. }) => {
                self.text.extend_from_slice(&out);
                if self.text.len() > super::source::MAX_TOKEN {
                    self.bad(&codes::XML_TOO_LONG, at, || "a text of more than 1 MiB".to_owned());
                    return Next::Stop;
                }
            }
            Some(model) => self.stray("&", model, at),
            None if self.stack.is_empty() => {
                self.bad(&codes::XML_MALFORMED, at, || "a reference outside the root".to_owned());
            }
            None => {}
        }
        Next::Go
    }

    fn declaration(&mut self, declaration: &str, at: Location) -> Next {
        // after a byte order mark it stands at byte 3
        let behind_mark = at.offset == 3 && !self.entry.lead;
        if (at.offset != 0 && !behind_mark) || !self.stack.is_empty() || self.root_done {
            self.bad(&codes::XML_DECLARATION, at, || {
                "the XML declaration is not at the start".to_owned()
            });
        }
        let mut raw = Vec::new();
        let rest = declaration.strip_prefix("xml").unwrap_or_default();
        let parsed = attributes(rest, &mut raw);
        let names: Vec<_> = raw.iter().map(|(name, _)| *name).collect();
        let known = matches!(
            names.as_slice(),
            ["version"]
                | ["version", "encoding" | "standalone"]
                | ["version", "encoding", "standalone"]
        );
        let get =
            |wanted: &str| raw.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        let sound = get("version").is_some_and(|v| v == "1.0")
            && get("standalone").is_none_or(|s| s == "yes" || s == "no");
        if parsed.is_err() || !known || !sound {
            self.bad(&codes::XML_DECLARATION, at, || {
                format!("the XML declaration reads {}", quoted(declaration.as_bytes()))
            });
        }
        if let Some(encoding) = get("encoding")
            && !encoding.eq_ignore_ascii_case("utf-8")
            && !encoding.eq_ignore_ascii_case("us-ascii")
        {
            let message = || format!("the encoding is {}", quoted(encoding.as_bytes()));
            match self.decoded {
                true => self.log.add_harmless(&codes::XML_ENCODING, at, message),
                false => self.bad(&codes::XML_ENCODING, at, message),
            }
        }
        Next::Go
    }

    /// A name alone is odd but harmless. With a subset, inside or outside, a document means what
    /// only its declarations tell, and they are not read.
    fn doctype(&mut self, doctype: &str, at: Location) {
        let misplaced = self.doctype || self.document.form != Form::Unknown;
        let misplaced = misplaced || !self.stack.is_empty() || self.root_done;
        self.doctype = true;
        if !misplaced && is_name(doctype.trim_matches(is_space)) {
            self.bad(&codes::XML_PLAIN_DOCTYPE, at, || "a DOCTYPE without a subset".to_owned());
        } else {
            self.bad(&codes::XML_DOCTYPE, at, || "a DOCTYPE; it was not read".to_owned());
        }
    }

    /// The file has cost what it may.
    fn abandon(&mut self, at: Location) -> Next {
        if let Some(message) = self.log.exhausted() {
            self.bad(&codes::FILE_ABANDONED, at, || message);
        }
        self.document.stopped = true;
        Next::Stop
    }

    fn instruction(&mut self, pi: &str, at: Location) -> Next {
        self.check_characters(pi, at);
        let target = pi.split(is_space).next().unwrap_or_default();
        if target == "xml-stylesheet" {
            self.bad(&codes::XML_STYLESHEET, at, || "a style sheet is named".to_owned());
        } else if !is_name(target) || target.eq_ignore_ascii_case("xml") || target.contains(':') {
            self.bad(&codes::XML_MALFORMED, at, || {
                format!("{} is no target of an instruction", quoted(target.as_bytes()))
            });
        }
        Next::Go
    }

    fn eof(&mut self, at: Location, damaged: bool) -> Next {
        if let Some(frame) = self.stack.last().filter(|_| !damaged) {
            let open = self.names.get(frame.name..).unwrap_or_default();
            let message = format!("the file ends inside <{}>", text(open.as_bytes(), 60));
            self.bad(&codes::XML_TRUNCATED, at, || message);
        }
        Next::Stop
    }

    /// quick-xml says no.
    fn refused(&mut self, error: quick_xml::Error, at: Location, damaged: bool) -> Next {
        use quick_xml::Error as E;
        match error {
            E::Io(error) => return self.io(&error, at),
            _ if damaged => {}   // told already: the bytes end here
            E::Encoding(_) => {} // the source tells where
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

    fn io(&mut self, error: &std::io::Error, at: Location) -> Next {
        self.bad(&codes::FILE_UNREADABLE, at, || crate::error::plain(error));
        Next::Stop
    }

    /// What the source has to tell once its bytes ended.
    fn end_of_bytes(&mut self, source: &mut Source) {
        if let Some((damage, at)) = source.take_damage() {
            self.bad(damage.code, at, || damage.message);
        }
    }

    /// Goes to the next entry after a fault, inside the root.
    fn resume(&mut self, source: &mut Source) -> bool {
        if self.stack.is_empty() {
            return false;
        }
        source.start_token();
        let mut skipped = 0u32;
        let wanted = |bytes: &[u8]| {
            skipped = skipped.wrapping_add(1);
            if skipped.is_multiple_of(SKIPPED_PER_STEP) && !self.log.spend(1) {
                return true; // reading stops at the next token
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
            self.end_of_bytes(source);
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
    tag.find(is_space).unwrap_or(tag.len())
}
