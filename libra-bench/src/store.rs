//! Files that are there whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::failure::Failure;

/// Makes `directory` and what lies above it, unless it is there.
pub(crate) fn make_directory(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|source| Failure::Write {
        path: directory.to_owned(),
        source,
    })
}

/// Writes `directory/name` beside its place and renames it into place.
pub(crate) fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let path = directory.join(name);
    let written = NamedTempFile::new_in(directory).and_then(|mut file| {
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        readable_by_umask(file.as_file())?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    });
    written.map_err(|source| Failure::Write { path, source })
}

/// Writes `path` as [`write`] does.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let (directory, name) = parts(path)?;
    write(directory, name, bytes)
}

/// Refuses a file that could not be written, before there is anything to write.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    let (directory, _) = parts(path)?;
    let found = fs::metadata(directory).and_then(|found| match found.is_dir() {
        true => Ok(()),
        false => Err(io::Error::other("it does not lie in a directory")),
    });
    let free = found.and_then(|()| match path.is_dir() {
        true => Err(io::Error::other("it is a directory")),
        false => Ok(()),
    });
    free.map_err(|source| Failure::Write {
        path: path.to_owned(),
        source,
    })
}

/// The directory of a file, and its name in it.
fn parts(path: &Path) -> Result<(&Path, &str), Failure> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Failure::Write {
        path: path.to_owned(),
        source: io::Error::other("its name is no text"),
    })?;
    Ok((directory.unwrap_or(Path::new(".")), name))
}

/// Temporary files are private; a plan is as readable as any file a program writes.
#[cfg(unix)]
fn readable_by_umask(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_by_umask(_file: &fs::File) -> io::Result<()> {
    Ok(())
}
