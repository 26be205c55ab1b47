//! Panels of points: lines over settings, bars of statistics, grids and shares, the paper's numbers among ours.

use super::{Point, Published, published};
use crate::plot::{Axes, Axis, Heat, Mark, Panel, Series, ecdf, value_text};

/// Who made it so, as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Method {
    /// In files.
    pub(super) name: &'static str,
    /// For people.
    pub(super) label: &'static str,
    /// Colour and shape.
    pub(super) colour: usize,
    /// A line, dashed where it is reckoned or shares its colour.
    pub(super) mark: Mark,
}

impl Method {
    /// One that is measured.
    pub(super) const fn new(name: &'static str, label: &'static str, colour: usize) -> Self {
        Self {
            name,
            label,
            colour,
            mark: Mark::Line,
        }
    }
}

/// Which points a panel is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    /// Number of the figure.
    figure: &'a str,
    /// Which lengths.
    corpus: &'a str,
    /// What was measured.
    quantity: &'a str,
    /// Heading of the panel.
    title: &'a str,
    /// Settings or statistics, in order.
    ats: &'a [String],
    /// Who made it so, in order.
    methods: &'a [Method],
    /// Ours.
    points: &'a [Point],
}

impl<'a> Subject<'a> {
    /// `quantity` of a figure's `points`, at `ats` by `methods`.
    pub(super) fn new(
        figure: &'a str,
        quantity: &'a str,
        points: &'a [Point],
        methods: &'a [Method],
        ats: &'a [String],
    ) -> Self {
        Self {
            figure,
            corpus: "",
            quantity,
            title: "",
            ats,
            methods,
            points,
        }
    }

    /// Those of one corpus, under a heading.
    pub(super) fn of(self, corpus: &'a str, title: &'a str) -> Self {
        Self {
            corpus,
            title,
            ..self
        }
    }

    fn place(&self, at: &str) -> Option<f64> {
        self.ats
            .iter()
            .position(|one| one == at)
            .map(|nth| nth as f64)
    }

    fn ours(&self, method: &Method) -> impl Iterator<Item = &'a Point> {
        let name = method.name;
        self.points.iter().filter(move |point| {
            (point.corpus, point.method, point.quantity) == (self.corpus, name, self.quantity)
        })
    }

    fn papers(&self, method: &Method) -> impl Iterator<Item = Published> {
        let name = method.name;
        published(self.figure).filter(move |paper| {
            (
                paper.corpus.as_str(),
                paper.method.as_str(),
                paper.quantity.as_str(),
            ) == (self.corpus, name, self.quantity)
        })
    }

    /// The paper's numbers as open points.
    fn published(&self, method: &Method) -> Option<Series> {
        let points = self
            .papers(method)
            .filter_map(|paper| Some((self.place(&paper.at)?, paper.value)));
        let points: Vec<(f64, f64)> = points.collect();
        (!points.is_empty()).then(|| Series {
            name: format!("{} (paper)", method.label),
            colour: method.colour,
            mark: Mark::Published,
            points,
        })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.ats.iter().map(|at| match at.split_once('=') {
            Some((_, value)) => value,
            None => at,
        })
    }

    /// A line a method over settings such as `P=8`.
    pub(super) fn lines(&self, x: &str, y: &str, is_log: bool) -> Panel {
        let line = |method: &Method| Series {
            name: method.label.to_owned(),
            colour: method.colour,
            mark: method.mark,
            points: (self.ours(method))
                .filter_map(|point| Some((self.place(&point.at)?, point.value)))
                .collect(),
        };
        let mut series: Vec<Series> = self.methods.iter().map(line).collect();
        series.extend(
            self.methods
                .iter()
                .filter_map(|method| self.published(method)),
        );
        let values = series
            .iter()
            .flat_map(|series| &series.points)
            .map(|&(_, y)| y);
        let y = if is_log {
            Axis::log(y, values)
        } else {
            Axis::linear(y, values)
        };
        Panel::Axes(Axes {
            title: self.title.to_owned(),
            x: Axis::names(x, self.names()),
            y,
            series,
        })
    }

    /// A group of bars a method, one bar a statistic; the paper's numbers as open points above their groups.
    pub(super) fn bars(&self, y: &str) -> Panel {
        let bars = |(nth, at): (usize, &String)| Series {
            name: at.clone(),
            colour: nth,
            mark: Mark::Bars,
            points: (self.methods.iter().enumerate())
                .filter_map(|(place, method)| {
                    let point = self.ours(method).find(|point| point.at == *at)?;
                    Some((place as f64, point.value))
                })
                .collect(),
        };
        let papers = |(nth, at): (usize, &String)| {
            let points: Vec<(f64, f64)> = (self.methods.iter().enumerate())
                .filter_map(|(place, method)| {
                    Some((
                        place as f64,
                        self.papers(method).find(|paper| paper.at == *at)?.value,
                    ))
                })
                .collect();
            (!points.is_empty()).then(|| Series {
                name: format!("{at} (paper)"),
                colour: nth,
                mark: Mark::Published,
                points,
            })
        };
        let mut series: Vec<Series> = self.ats.iter().enumerate().map(bars).collect();
        series.extend(self.ats.iter().enumerate().filter_map(papers));
        let values = series
            .iter()
            .flat_map(|series| &series.points)
            .map(|&(_, y)| y);
        Panel::Axes(Axes {
            title: self.title.to_owned(),
            // Short enough to stand side by side.
            x: Axis::names("", self.methods.iter().map(|method| method.name)),
            y: Axis::linear(y, values),
            series,
        })
    }

    /// Points at `H=4, B=8192` as a grid of one method; rows are H.
    pub(super) fn grid(&self, method: &Method, rows: &[u32], columns: &[u32]) -> Panel {
        let value = |row: u32, column: u32| {
            let at = grid_at(row, column);
            self.ours(method)
                .find(|point| point.at == at)
                .map(|point| point.value)
        };
        Panel::Heat(Heat {
            title: self.title.to_owned(),
            x_label: "B, tokens of a block".to_owned(),
            y_label: "H, head shards".to_owned(),
            columns: columns.iter().map(u32::to_string).collect(),
            rows: rows.iter().map(u32::to_string).collect(),
            values: (rows.iter())
                .map(|&row| columns.iter().map(|&column| value(row, column)).collect())
                .collect(),
            text: value_text,
        })
    }
}

/// A setting of figure 16, as in files.
pub(super) fn grid_at(shards: u32, block_tokens: u32) -> String {
    format!("H={shards}, B={block_tokens}")
}

/// Which share of values is at most so large, a curve a name.
pub(super) fn shares(title: &str, x: &str, curves: &[(Method, Vec<f64>)]) -> Panel {
    let series = |(method, values): &(Method, Vec<f64>)| Series {
        name: method.label.to_owned(),
        colour: method.colour,
        mark: Mark::Steps,
        points: ecdf(values),
    };
    Panel::Axes(Axes {
        title: title.to_owned(),
        x: Axis::linear(
            x,
            curves.iter().flat_map(|(_, values)| values.iter().copied()),
        ),
        y: Axis::linear("share", [1.0].into_iter()),
        series: curves.iter().map(series).collect(),
    })
}
