//! The source tree the tasks look at.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::Trouble;

/// The workspace's folder; paths below it are written relative to it, with `/`.
pub(crate) struct Tree {
    root: PathBuf,
}

impl Tree {
    pub(crate) fn of_this_workspace() -> Self {
        let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest_dir
            .parent()
            .expect("xtask is a folder of the workspace")
            .to_owned();
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    pub(crate) fn read(&self, path: &str) -> Result<String, Trouble> {
        fs::read_to_string(self.root.join(path))
            .map_err(|error| Trouble::failed(format!("{path}: {error}")))
    }

    /// Every file below `folder`, sorted. Folders that a tool wrote (hidden, or marked as a cache) are left out.
    pub(crate) fn files(&self, folder: &str) -> Result<Vec<String>, Trouble> {
        let mut found = Vec::new();
        self.walk(folder, &mut found)?;
        found.sort();
        Ok(found)
    }

    fn walk(&self, folder: &str, found: &mut Vec<String>) -> Result<(), Trouble> {
        let trouble = |error| Trouble::failed(format!("{folder}: {error}"));
        for entry in fs::read_dir(self.root.join(folder)).map_err(trouble)? {
            let entry = entry.map_err(trouble)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() {
                name.clone()
            } else {
                format!("{folder}/{name}")
            };
            if !entry.file_type().map_err(trouble)?.is_dir() {
                found.push(path);
            } else if !name.starts_with('.') && !entry.path().join("CACHEDIR.TAG").exists() {
                self.walk(&path, found)?;
            }
        }
        Ok(())
    }
}
