//! Errors of the core: a kind, which decides the exit status, a stable code, the position, and what
//! to do.

use std::fmt;
use std::io;

use crate::file::is_too_many;

/// The class of an error. The command line turns it into the exit status,
/// the Python binding into the class of the exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Wrong options, a missing or ambiguous column: exit status 2.
    Config,
    /// The input is missing, unreadable or damaged: exit status 3.
    Input,
    /// A data check failed, such as duplicates under `fail`: exit status 1.
    Data,
    /// More rows were rejected than allowed: exit status 1.
    Rejects,
    /// The output cannot be written: exit status 3.
    Output,
    /// The caller asked the run to stop.
    Cancelled,
}

macro_rules! error_codes {
    ($($code:ident $kind:ident $name:literal)*) => {
        /// What went wrong. The names are stable, and each code has one kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorCode {
            $(#[doc = concat!("`", $name, "`")] $code,)*
            /// The code of a rejected row that ends the run.
            Reject(&'static str),
            /// The code of a finding that makes a sitemap unreadable.
            Finding(&'static str),
        }

        impl ErrorCode {
            /// The stable name, such as `csv.unclosed_quote`.
            pub fn name(self) -> &'static str {
                match self {
                    $(ErrorCode::$code => $name,)*
                    ErrorCode::Reject(name) | ErrorCode::Finding(name) => name,
                }
            }

            /// The kind.
            pub fn kind(self) -> Kind {
                match self {
                    $(ErrorCode::$code => Kind::$kind,)*
                    ErrorCode::Reject(_) => Kind::Data,
                    ErrorCode::Finding(_) => Kind::Input,
                }
            }
        }
    };
}

error_codes! {
    AlternateApart Data "alternate.apart"
    AlternateGroup Data "alternate.group"
    Cancelled Cancelled "cancelled"
    ColumnAmbiguous Config "column.ambiguous"
    ColumnMissing Config "column.missing"
    ColumnType Config "column.type"
    ConfigAlternate Config "config.alternate"
    ConfigConstant Config "config.constant"
    ConfigDelimiter Config "config.delimiter"
    ConfigEncoding Config "config.encoding"
    ConfigHosts Config "config.hosts"
    ConfigInvalid Config "config.invalid"
    ConfigLanguage Config "config.language"
    ConfigLevel Config "config.level"
    ConfigLimit Config "config.limit"
    ConfigLoc Config "config.loc"
    ConfigSite Config "config.site"
    ConfigSitemapUrl Config "config.sitemap_url"
    ConfigTag Config "config.tag"
    ConfigTemplate Config "config.template"
    ConfigTimezone Config "config.timezone"
    ConfigUrl Config "config.url"
    CsvAfterQuote Input "csv.after_quote"
    CsvCellTooLong Input "csv.cell_too_long"
    CsvEncoding Input "csv.encoding"
    CsvHeader Input "csv.header"
    CsvRowTooLong Input "csv.row_too_long"
    CsvUnclosedQuote Input "csv.unclosed_quote"
    DuplicatesFound Data "duplicates.found"
    FileUnreadable Input "file.unreadable"
    InputDamaged Input "input.damaged"
    InputEmpty Input "input.empty"
    InputFormat Input "input.format"
    InputMissing Input "input.missing"
    InputTruncated Input "input.truncated"
    InputUnreadable Input "input.unreadable"
    InternalBytes Output "internal.bytes"
    InternalFates Output "internal.fates"
    InternalGzip Output "internal.gzip"
    InternalPanic Output "internal.panic"
    InternalRejects Output "internal.rejects"
    InternalThread Output "internal.thread"
    LastmodDamaged Output "lastmod.damaged"
    LinesTooLong Input "lines.too_long"
    OutputDamaged Output "output.damaged"
    OutputDiskFull Output "output.disk_full"
    OutputRejects Output "output.rejects"
    OutputSameName Output "output.same_name"
    OutputSpill Output "output.spill"
    OutputUnwritable Output "output.unwritable"
    ReadClosed Input "read.closed"
    ReadInternal Output "read.internal"
    RejectsLimit Rejects "rejects.limit"
    RowsOrder Data "rows.order"
    SpillFailed Output "spill.failed"
    SplitTooMany Data "split.too_many"
    SystemThreads Output "system.threads"
}

impl ErrorCode {
    /// An error of this code, without a position.
    pub fn error(self, message: impl Into<String>) -> Error {
        let position = Position::default();
        Error { kind: self.kind(), code: self, message: message.into(), position, source: None }
    }
}

impl PartialEq<&str> for ErrorCode {
    fn eq(&self, name: &&str) -> bool {
        self.name() == *name
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The position of an error in an input. Rows count from 1; the header is not a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// The file as the user named it; `-` for standard input.
    pub input: Option<String>,
    /// The row, from 1.
    pub row: Option<u64>,
    /// The name of the column.
    pub column: Option<String>,
}

/// An error of the core.
#[derive(Debug)]
pub struct Error {
    /// The class.
    pub kind: Kind,
    /// The code.
    pub code: ErrorCode,
    /// What happened and what to do, in one line, without the position.
    pub message: String,
    /// Where it happened.
    pub position: Position,
    /// The error of the operating system or of a library that caused it.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result of all fallible functions of the core.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The same error for another thread, without its source.
    pub fn repeated(&self) -> Error {
        Error { position: self.position.clone(), ..self.code.error(self.message.clone()) }
    }

    /// A file that cannot be written.
    pub fn output(code: ErrorCode, path: &std::path::Path, source: io::Error) -> Error {
        let message = format!("{}: {}", path.display(), plain(&source));
        Error { source: Some(Box::new(source)), ..code.error(message) }
    }

    /// A file of the output that cannot be written; a full disk has its own code.
    pub fn unwritable(path: &std::path::Path, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::StorageFull {
            let mut full = Error::output(ErrorCode::OutputDiskFull, path, source);
            full.message
                .push_str("; the previous set is still live: free some space and run again");
            return full;
        }
        Error::output(ErrorCode::OutputUnwritable, path, source)
    }

    /// A thread of the core ended although its work was not complete.
    pub fn thread() -> Error {
        ErrorCode::InternalThread.error("a thread ended early")
    }

    /// The run was cancelled.
    pub fn cancelled() -> Error {
        ErrorCode::Cancelled.error("stopped before it was done; nothing was published")
    }

    /// Sets the input, unless it is set.
    pub fn in_input(mut self, input: impl Into<String>) -> Error {
        self.position.input.get_or_insert(input.into());
        self
    }

    /// Sets the row (from 1), unless it is set.
    pub fn at_row(mut self, row: u64) -> Error {
        self.position.row.get_or_insert(row);
        self
    }

    /// Sets the column, unless it is set.
    pub fn at_column(mut self, column: impl Into<String>) -> Error {
        self.position.column.get_or_insert(column.into());
        self
    }

    /// Sets the error that caused it.
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        self.source = Some(Box::new(source));
        self
    }
}

/// The text of an I/O error without its number, such as "No such file or directory"; for a limit
/// on open files also how to raise it.
pub fn plain(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error") {
        text.truncate(end);
    }
    if is_too_many(error) {
        text.push_str("; allow more open files (ulimit -n)");
    }
    text
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { input, row, column } = &self.position;
        if let Some(input) = input {
            write!(f, "{input}: ")?;
        }
        if let Some(row) = row {
            write!(f, "row {row}: ")?;
        }
        if let Some(column) = column {
            write!(f, "column {column:?}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}
