//! Opens regular files only: a name in a folder or in an index may be that of a FIFO or a device.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::inspect::codes;
use crate::inspect::finding::{Location, Log};

/// Opens a regular file for reading; a link to one is followed. No path makes this function wait,
/// change the terminal of the process, or return bytes without end.
///
/// # Errors
/// `InvalidInput` for anything but a regular file; the message names the kind of file.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        // a socket, or a device without a driver
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Err(refused("socket")),
        opened => opened?,
    };
    let about = file.metadata()?;
    let kind = about.file_type();
    if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "Is a directory"));
    }
    if !kind.is_file() {
        return Err(refused(if kind.is_fifo() { "named pipe" } else { "device" }));
    }
    Ok((file, about))
}

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("not a regular file but a {what}"))
}

/// Detects that a file was written or replaced: device, inode, size, time of the last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp([i128; 5]);

impl Stamp {
    /// The stamp of an open file.
    pub fn of(about: &Metadata) -> Stamp {
        Stamp([
            i128::from(about.dev()),
            i128::from(about.ino()),
            i128::from(about.len()),
            i128::from(about.mtime()),
            i128::from(about.mtime_nsec()),
        ])
    }

    /// Adds a finding if the file at `path` was changed or replaced since it was opened.
    pub fn check(self, path: &Path, log: &mut Log) {
        let what = match std::fs::metadata(path) {
            Ok(about) if Stamp::of(&about) == self => return,
            Ok(_) => "the file changed while it was read",
            Err(_) => "the file was removed while it was read",
        };
        log.add(&codes::FILE_CHANGED, Location::default(), None, || what.to_owned());
    }
}
