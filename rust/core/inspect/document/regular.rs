//! Opens regular files only: a name in a folder or in an index may be that of a FIFO or a device.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

use crate::file::{FileIdentity, kind, open_unblocked};
use crate::inspect::codes;
use crate::inspect::finding::{Location, Log};

/// Opens a regular file for reading; a link to one is followed. No path makes this function wait,
/// change the terminal of the process, or return bytes without end.
///
/// # Errors
/// `InvalidInput` for anything but a regular file; the message names the kind of file.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let file = open_unblocked(path)?.ok_or_else(|| refused("socket"))?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "Is a directory"));
    }
    if !about.is_file() {
        return Err(refused(kind(about.file_type())));
    }
    Ok((file, about))
}

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("not a regular file but a {what}"))
}

/// Adds a finding if the file at `path` was changed or replaced since it was opened.
pub fn check(opened: FileIdentity, path: &Path, log: &mut Log) {
    let what = match std::fs::metadata(path) {
        Ok(about) if FileIdentity::of(&about) == opened => return,
        Ok(_) => "the file changed while it was read",
        Err(_) => "the file was removed while it was read",
    };
    log.add(&codes::FILE_CHANGED, Location::default(), None, || what.to_owned());
}
