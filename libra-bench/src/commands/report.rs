//! `report`: one page from documents of other commands.

use std::path::Path;

use serde_json::json;

use super::plan::line;
use super::{Context, Outcome};
use crate::cli::ReportArgs;
use crate::failure::Failure;
use crate::page::{self, Document};
use crate::report::{Column, Report, Table};
use crate::{exit, store};

pub(super) fn run(_: &Context, pages: &ReportArgs) -> Outcome {
    let documents: Result<Vec<_>, _> = pages
        .files
        .iter()
        .map(|path| Document::read(path))
        .collect();
    let documents = documents?;
    let sections = page::sections(&documents);
    write(&pages.output, &page::page(&sections))?;

    let mut words = vec!["report".to_owned()];
    words.extend(documents.iter().map(|document| document.name.clone()));
    words.extend(["-o".to_owned(), super::typed(&pages.output)]);
    let mut report = Report::new("report", line(&words));
    report.header();
    let there = |section: &page::Section| match &section.content {
        Ok(_) => "there".to_owned(),
        Err(needs) => format!("not in these documents: {needs}"),
    };
    report.table(Table {
        columns: vec![Column::text("section"), Column::text("")],
        rows: (sections.iter())
            .map(|section| vec![section.title.to_owned(), there(section)])
            .collect(),
    });
    report.note(format!("written to {}", super::typed(&pages.output)));
    report.reproduce(report.reproduce.clone());
    let case = |section: &page::Section| json!({ "section": section.id, "is_there": section.content.is_ok() });
    report.cases = sections.iter().map(case).collect();
    report
        .more
        .insert("file".to_owned(), json!(super::typed(&pages.output)));
    Ok((report, exit::DONE))
}

/// Writes a page to `path`, whose folder is made if need be.
pub(super) fn write(path: &Path, page: &str) -> Result<(), Failure> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let Some(name) = path.file_name() else {
        return Err(Failure::Write {
            path: path.to_owned(),
            source: std::io::ErrorKind::IsADirectory.into(),
        });
    };
    store::make_directory(directory)?;
    store::write(directory, &name.to_string_lossy(), page.as_bytes())
}
