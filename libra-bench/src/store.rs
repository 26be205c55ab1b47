//! Files that are there whole or not at all.

use std::fs;
use std::io::Write;
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

/// Temporary files are private; a plan is as readable as any file a program writes.
#[cfg(unix)]
fn readable_by_umask(file: &fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_by_umask(_file: &fs::File) -> std::io::Result<()> {
    Ok(())
}
