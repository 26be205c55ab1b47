//! `report`: one page from documents of other commands.

use serde_json::json;

use super::plan::line;
use super::{Context, Outcome};
use crate::cli::ReportArgs;
use crate::exit;
use crate::failure::Failure;
use crate::page::{self, Document};
use crate::report::{Column, Report, Table};

pub(super) fn run(context: &Context, asked: &ReportArgs) -> Outcome {
    let pages: Vec<String> = context.pages().map(super::typed).collect();
    if pages.is_empty() {
        let text = "a page goes to a file that ends in .html, and none is given";
        return Err(Failure::Output(text.to_owned()));
    }
    let documents: Result<Vec<_>, _> = asked
        .files
        .iter()
        .map(|path| Document::read(path))
        .collect();
    let documents = documents?;
    let sections = page::sections(&documents);

    let mut words = vec!["report".to_owned()];
    words.extend(documents.iter().map(|document| document.name.clone()));
    for page in &pages {
        words.extend(["-o".to_owned(), page.clone()]);
    }
    let mut report = Report::new("report", line(&words));
    report.page = Some(page::page(&sections));
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
    report.note(format!("written to {}", pages.join(", ")));
    report.reproduce(report.reproduce.clone());
    let case = |section: &page::Section| json!({ "section": section.id, "is_there": section.content.is_ok() });
    report.cases = sections.iter().map(case).collect();
    report.more.insert("files".to_owned(), json!(pages));
    Ok((report, exit::DONE))
}
