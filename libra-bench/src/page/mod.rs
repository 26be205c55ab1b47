//! One page for people from documents that the commands wrote: no network, no script, keyboard and screen reader, light,
//! dark and paper.
//!
//! A section is there when some document holds its data; what is missing, and which command would give it, is said at the
//! end. All text goes through the template's escaping.

mod balance;
mod certificates;
mod curves;
mod document;
mod inputs;
mod parts;
mod pool_sizes;
mod pool_times;
mod published;
mod stragglers;
mod style;
mod timeline;
mod workers;

use maud::{DOCTYPE, Markup, html};

pub(crate) use document::{Document, DocumentError};

use crate::plot;
use crate::report::PROGRAM;

/// A part of the page.
pub(crate) struct Section {
    /// Letters and hyphens.
    pub(crate) id: &'static str,
    /// Its heading.
    pub(crate) title: &'static str,
    /// Its content; which command would give it, where there is none.
    pub(crate) content: Result<Markup, &'static str>,
}

/// All sections in order, from what `documents` hold.
pub(crate) fn sections(documents: &[Document]) -> Vec<Section> {
    vec![
        inputs::section(documents),
        balance::section(documents),
        stragglers::section(documents),
        workers::loads(documents),
        workers::traffic(documents),
        pool_sizes::section(documents),
        timeline::section(documents),
        certificates::section(documents),
        published::section(documents),
    ]
}

/// The page.
pub(crate) fn page(sections: &[Section]) -> String {
    let there = || {
        sections
            .iter()
            .filter_map(|section| Some((section, section.content.as_ref().ok()?)))
    };
    let missing = || {
        sections
            .iter()
            .filter_map(|section| Some((section, section.content.as_ref().err()?)))
    };
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { "Libra report" }
                style { (maud::PreEscaped(style::CSS)) (maud::PreEscaped(plot::CSS)) }
            }
            body {
                a class="skip" href="#main" { "Skip to the results" }
                header { h1 { "Libra report" } p { "Written by " (PROGRAM) "." } }
                nav aria-label="Sections" {
                    ul {
                        @for (section, _) in there() { li { a href={ "#" (section.id) } { (section.title) } } }
                        @if missing().next().is_some() { li { a href="#missing" { "Not in these reports" } } }
                    }
                }
                main id="main" tabindex="-1" {
                    @for (section, content) in there() {
                        section aria-labelledby=(section.id) {
                            h2 id=(section.id) { (section.title) }
                            (content)
                        }
                    }
                    @if missing().next().is_some() {
                        section aria-labelledby="missing" {
                            h2 id="missing" { "Not in these reports" }
                            dl {
                                @for (section, needs) in missing() {
                                    dt { (section.title) }
                                    dd { (needs) }
                                }
                            }
                        }
                    }
                }
                footer { p { "Loads are query-key pairs times query heads. R is heaviest over mean." } }
            }
        }
    };
    markup.into_string() + "\n"
}
