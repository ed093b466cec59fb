//! What files need of the operating system beyond the portable part of the standard library, for Unix
//! and for Windows. No other module of the crate contains code for one system.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Reads some bytes at a position, as `read` does. On Windows the cursor of the file moves: a file
/// that is read with this function must have no other use of its cursor.
pub fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    system::read_at(file, buffer, at)
}

/// Fills the buffer with the bytes at a position.
pub fn read_exact_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match read_at(file, buffer, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                buffer = &mut buffer[read..];
                at += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all bytes at a position. The cursor of the file is not used.
pub fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match system::write_at(file, bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                at += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Creates a file for reading and writing that the system removes when it is closed, however the
/// process ends. A file that exists is an error.
pub fn create_temporary(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    system::create_temporary(options.read(true).write(true).create_new(true), path)
}

/// Waits until the names in a folder are on the disk. Windows has no such call: NTFS logs the changes
/// of names itself.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    system::sync_folder(path)
}

/// Opens a file for reading. A pipe or a terminal neither waits nor changes the process. A socket, or
/// a device without a driver, is `None`.
pub fn open_unblocked(path: &Path) -> io::Result<Option<File>> {
    system::open_unblocked(path)
}

/// What a file is that is neither a regular file nor a folder.
pub fn kind(kind: FileType) -> &'static str {
    system::kind(kind)
}

/// Detects that a file was written or replaced: device and inode where the system has them, size, and
/// the time of the last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity([i128; 5]);

impl FileIdentity {
    /// That of an open file.
    pub fn of(about: &Metadata) -> FileIdentity {
        FileIdentity(system::identity(about))
    }
}

/// Whether the process or the system has too many open files.
pub fn is_too_many(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|number| system::TOO_MANY.contains(&number))
}

#[cfg(unix)]
mod system {
    use std::fs::{File, FileType, Metadata, OpenOptions, remove_file};
    use std::io;
    use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    pub const TOO_MANY: [i32; 2] = [libc::EMFILE, libc::ENFILE];

    pub fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        file.read_at(buffer, at)
    }

    pub fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
        file.write_at(bytes, at)
    }

    pub fn create_temporary(options: &OpenOptions, path: &Path) -> io::Result<File> {
        let file = options.open(path)?;
        remove_file(path)?;
        Ok(file)
    }

    pub fn sync_folder(path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    pub fn open_unblocked(path: &Path) -> io::Result<Option<File>> {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            opened => opened.map(Some),
        }
    }

    pub fn kind(kind: FileType) -> &'static str {
        if kind.is_fifo() { "named pipe" } else { "device" }
    }

    pub fn identity(about: &Metadata) -> [i128; 5] {
        [
            i128::from(about.dev()),
            i128::from(about.ino()),
            i128::from(about.len()),
            i128::from(about.mtime()),
            i128::from(about.mtime_nsec()),
        ]
    }
}

#[cfg(windows)]
mod system {
    use std::fs::{File, FileType, Metadata, OpenOptions};
    use std::io;
    use std::os::windows::fs::{FileExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    /// ERROR_TOO_MANY_OPEN_FILES
    pub const TOO_MANY: [i32; 1] = [4];
    const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
    const FILE_ATTRIBUTE_TEMPORARY: u32 = 0x100;

    pub fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        file.seek_read(buffer, at)
    }

    pub fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
        file.seek_write(bytes, at)
    }

    pub fn create_temporary(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
        options
            .attributes(FILE_ATTRIBUTE_TEMPORARY)
            .custom_flags(FILE_FLAG_DELETE_ON_CLOSE)
            .open(path)
    }

    pub fn sync_folder(_: &Path) -> io::Result<()> {
        Ok(())
    }

    pub fn open_unblocked(path: &Path) -> io::Result<Option<File>> {
        File::open(path).map(Some)
    }

    pub fn kind(_: FileType) -> &'static str {
        "device"
    }

    pub fn identity(about: &Metadata) -> [i128; 5] {
        let [size, written, created] =
            [about.file_size(), about.last_write_time(), about.creation_time()].map(i128::from);
        [size, written, created, 0, 0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_and_read_at_their_positions() {
        let path = std::env::temp_dir().join(format!("urlset-temporary-{}", std::process::id()));
        let file = create_temporary(&path).unwrap();
        write_all_at(&file, b"world", 6).unwrap();
        write_all_at(&file, b"hello ", 0).unwrap();
        let mut found = [0; 8];
        read_exact_at(&file, &mut found, 3).unwrap();
        assert_eq!(&found, b"lo world");
        let beyond = read_exact_at(&file, &mut found, 4).unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::UnexpectedEof);
        drop(file);
        assert!(!path.exists());
    }
}
