//! Numbers of the paper, from `published/points.csv`.

use serde::Deserialize;

/// A number that was published.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Published {
    /// Number of the figure.
    pub(crate) figure: String,
    /// Which lengths.
    pub(crate) corpus: String,
    /// Who made it so.
    pub(crate) method: String,
    /// Setting or statistic.
    pub(crate) at: String,
    /// What was measured.
    pub(crate) quantity: String,
    /// The number.
    pub(crate) value: f64,
    /// How exact it is.
    pub(crate) relation: Relation,
    /// Where it stands.
    pub(crate) source: String,
}

/// How exact a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Relation {
    /// To its last digit.
    #[serde(rename = "=")]
    Equal,
    /// Rounded by the text, or reckoned from others of it.
    #[serde(rename = "about")]
    About,
}

const POINTS: &str = include_str!("../../published/points.csv");

/// What was published of a figure, in order.
pub(crate) fn published(figure: &str) -> impl Iterator<Item = Published> {
    all().filter(move |point| point.figure == figure)
}

fn all() -> impl Iterator<Item = Published> {
    let rows = csv::Reader::from_reader(POINTS.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("the file ships with the program"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_published_number_is_read_and_named_once() {
        let names: Vec<[String; 5]> = all()
            .map(|p| [p.figure, p.corpus, p.method, p.at, p.quantity])
            .collect();
        let once: BTreeSet<_> = names.iter().collect();
        assert_eq!(once.len(), names.len());
        assert_eq!(names.len(), POINTS.lines().count() - 1);
    }

    #[test]
    fn every_published_number_says_where_it_stands() {
        assert!(all().all(|point| point.source.starts_with("section ")
            || point.source.starts_with("first version, ")));
        assert!(all().all(|point| point.value.is_finite() && point.value > 0.0));
    }
}
