//! Errors of the core: a kind, which decides the exit status, a stable code, the position, and what
//! to do.

use std::fmt;
use std::io;

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
    /// The stable code, such as `csv.unclosed_quote`.
    pub code: &'static str,
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
    /// An error of the given kind and code, without a position.
    pub fn new(kind: Kind, code: &'static str, message: impl Into<String>) -> Error {
        Error { kind, code, message: message.into(), position: Position::default(), source: None }
    }

    /// Wrong configuration.
    pub fn config(code: &'static str, message: impl Into<String>) -> Error {
        Error::new(Kind::Config, code, message)
    }

    /// Missing or damaged input.
    pub fn input(code: &'static str, message: impl Into<String>) -> Error {
        Error::new(Kind::Input, code, message)
    }

    /// A file that cannot be written.
    pub fn output(code: &'static str, path: &std::path::Path, source: io::Error) -> Error {
        let message = format!("{}: {}", path.display(), plain(&source));
        Error { source: Some(Box::new(source)), ..Error::new(Kind::Output, code, message) }
    }

    /// A file of the output that cannot be written; a full disk has a code of its own.
    pub fn unwritable(path: &std::path::Path, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::StorageFull {
            let mut full = Error::output("output.disk_full", path, source);
            full.message.push_str("; what was live still is: free some room and run again");
            return full;
        }
        Error::output("output.unwritable", path, source)
    }

    /// A thread of the core ended although its work was not complete.
    pub fn thread() -> Error {
        Error::new(Kind::Output, "internal.thread", "a thread ended early")
    }

    /// The run was cancelled.
    pub fn cancelled() -> Error {
        Error::new(
            Kind::Cancelled,
            "cancelled",
            "stopped before it was done; nothing was published",
        )
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

/// The message of an I/O error without the number of the operating system: "No such file or directory".
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
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
