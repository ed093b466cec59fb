//! Regular files alone: what lies in a folder or is listed may be a FIFO or a device.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::inspect::codes;
use crate::inspect::finding::{Location, Log};

/// Opens a regular file for reading; a link to one is followed. Nothing that the path may name
/// makes this wait, become the terminal of the process, or give bytes without end.
///
/// # Errors
/// `InvalidInput` for anything but a regular file, which the message names.
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

/// What tells whether a file was written or replaced: device, inode, size, time of the last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp([i128; 5]);

impl Stamp {
    /// Of an open file.
    pub fn of(about: &Metadata) -> Stamp {
        Stamp([
            i128::from(about.dev()),
            i128::from(about.ino()),
            i128::from(about.len()),
            i128::from(about.mtime()),
            i128::from(about.mtime_nsec()),
        ])
    }

    /// Notes it where the file at `path` is not the one any more that was read, or not as it was.
    pub fn check(self, path: &Path, log: &mut Log) {
        let what = match std::fs::metadata(path) {
            Ok(about) if Stamp::of(&about) == self => return,
            Ok(_) => "the file changed while it was read",
            Err(_) => "the file went away while it was read",
        };
        log.add(&codes::FILE_CHANGED, Location::default(), None, || what.to_owned());
    }
}
