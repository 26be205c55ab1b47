//! The methods by name.

use std::fmt;
use std::str::FromStr;

use libra_sched::{Error, LayoutKind, PackedLengths};

use super::grouping::{folding, folding_swap_converged, folding_swap_weak, karmarkar_karp};
use super::pools::Groups;
use super::ring::Sharding;
use super::{
    Group, Schedule, all_gather, cad, dynamic_cp, libra, magi, ring, ulysses, wlb, wlb_published,
};
use crate::failure::Failure;
use crate::preset::Shapes;

/// What can be done with a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Method {
    /// Head shards over the CP workers of every sequence.
    Ulysses,
    /// Algorithm 2 in pools of arrival order, nothing overlapped.
    Tap,
    /// Likewise, in pools by Algorithm 1.
    TapVrsp,
    /// Likewise, in pools by balanced differencing.
    TapKarmarkarKarp,
    /// Likewise, in folded pools.
    TapZigzag,
    /// Likewise, and one pass of swaps.
    TapZigzagSwapWeak,
    /// Likewise, and swaps until none helps.
    TapZigzagSwap,
    /// Algorithms 1 and 2, and chunks of heads overlap: all of the paper.
    Paper,
    /// Certified pools, divisible runs, ranges of keys, each once a node.
    Libra,
    /// Algorithm 2 over all replicas at once.
    DistCa,
    /// DistCA's own greedy.
    Cad,
    /// Ring attention over contiguous shards.
    Ring,
    /// Ring attention over shards in zigzag.
    ZigzagRing,
    /// Ring attention, every sample in zigzag.
    DocZigzag,
    /// Keys of whole samples at every worker that meets them.
    AllGather,
    /// Documents repacked into micro-batches of like work.
    Wlb,
    /// Likewise, outliers delayed to later steps.
    WlbPublished,
    /// Chunks dispatched within a sequence, keys cast in stages.
    Magi,
    /// Every sample on as many workers as it needs.
    DynamicCp,
}

/// What methods keep from window to window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    wlb: wlb_published::Waiting,
}

const CONTIGUOUS: Sharding = Sharding::Sequence(LayoutKind::Contiguous);
const ZIGZAG: Sharding = Sharding::Sequence(LayoutKind::Zigzag);

/// What `--method` takes.
const LEGAL: &str = "all, ulysses, tap, tap+vrsp, tap+kk, tap+zigzag, tap+zigzag-swap-1, tap+zigzag-swap, paper, libra, distca, cad, ring, zigzag-ring, doc-zigzag, \
                     all-gather, wlb, wlb-published, magi, dynamic-cp";

impl Method {
    /// Every method, in the order of tables.
    pub(crate) const ALL: [Self; 19] = [
        Self::Ulysses,
        Self::Tap,
        Self::TapVrsp,
        Self::TapKarmarkarKarp,
        Self::TapZigzag,
        Self::TapZigzagSwapWeak,
        Self::TapZigzagSwap,
        Self::Paper,
        Self::Libra,
        Self::DistCa,
        Self::Cad,
        Self::Ring,
        Self::ZigzagRing,
        Self::DocZigzag,
        Self::AllGather,
        Self::Wlb,
        Self::WlbPublished,
        Self::Magi,
        Self::DynamicCp,
    ];

    /// Its name in tables and on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ulysses => "ulysses",
            Self::Tap => "tap",
            Self::TapVrsp => "tap+vrsp",
            Self::TapKarmarkarKarp => "tap+kk",
            Self::TapZigzag => "tap+zigzag",
            Self::TapZigzagSwapWeak => "tap+zigzag-swap-1",
            Self::TapZigzagSwap => "tap+zigzag-swap",
            Self::Paper => "paper",
            Self::Libra => "libra",
            Self::DistCa => "distca",
            Self::Cad => "cad",
            Self::Ring => "ring",
            Self::ZigzagRing => "zigzag-ring",
            Self::DocZigzag => "doc-zigzag",
            Self::AllGather => "all-gather",
            Self::Wlb => "wlb",
            Self::WlbPublished => "wlb-published",
            Self::Magi => "magi",
            Self::DynamicCp => "dynamic-cp",
        }
    }

    /// Names with commas between them, or `all`; each method once, in the order given.
    pub(crate) fn list(text: &str) -> Result<Vec<Self>, Error> {
        let mut methods = Vec::new();
        for name in text.split(',') {
            let named = match name.trim() {
                "all" => Self::ALL.to_vec(),
                name => vec![name.parse()?],
            };
            let new: Vec<Self> = (named.into_iter())
                .filter(|method| !methods.contains(method))
                .collect();
            methods.extend(new);
        }
        Ok(methods)
    }

    /// Whether every step trains on the samples of its own window.
    pub(crate) const fn is_step_equivalent(self) -> bool {
        !matches!(self, Self::WlbPublished)
    }

    /// Why it is not executed, if it is not.
    const fn why_not_executed(self) -> Option<&'static str> {
        match self {
            Self::WlbPublished => {
                Some("it keeps samples for later steps, and one pool is one step")
            }
            _ => None,
        }
    }

    /// As [`Method::list`], of methods that are executed; `all` leaves the others out.
    ///
    /// # Errors
    /// A name of no method, or of one that is not executed.
    pub(crate) fn list_executed(text: &str) -> Result<Vec<Self>, String> {
        let methods = Self::list(text).map_err(|error| error.to_string())?;
        let is_named = |method: &Self| text.split(',').any(|name| name.trim() == method.name());
        let refused = (methods.iter())
            .filter(|method| is_named(method))
            .find_map(|method| Some((method, method.why_not_executed()?)));
        if let Some((method, why)) = refused {
            let legal = Self::ALL.into_iter().filter(|method| method.is_executed());
            let legal: Vec<&str> = legal.map(Self::name).collect();
            return Err(format!(
                "{method} is not executed: {why}; legal is all, {}",
                legal.join(", ")
            ));
        }
        Ok(methods.into_iter().filter(|m| m.is_executed()).collect())
    }

    /// Those that are not executed, and why.
    pub(crate) fn not_executed() -> impl Iterator<Item = (Self, &'static str)> {
        let refused = |method: Self| Some((method, method.why_not_executed()?));
        Self::ALL.into_iter().filter_map(refused)
    }

    const fn is_executed(self) -> bool {
        self.why_not_executed().is_none()
    }

    /// What it does with `window` where no window came before. Libra is what the shapes ask for, in pools of arrival
    /// order: placement, fetch, route and tiling are the shapes' own.
    ///
    /// # Errors
    /// As [`Method::schedule_next`].
    pub(crate) fn schedule_asked(
        self,
        window: &PackedLengths,
        shapes: &Shapes,
    ) -> Result<Schedule, Failure> {
        match self {
            Self::Libra => Ok(Schedule {
                method: self,
                groups: libra::as_asked(window, shapes).each(window, |group| group)?,
            }),
            _ => self.schedule(window, shapes),
        }
    }

    /// What it does with `window`, whose sequences are in arrival order, where no window came before.
    ///
    /// # Errors
    /// As [`Method::schedule_next`].
    pub(crate) fn schedule(
        self,
        window: &PackedLengths,
        shapes: &Shapes,
    ) -> Result<Schedule, Failure> {
        self.schedule_next(&mut Carried::default(), window, shapes)
    }

    /// What it does with the next of several windows. Methods that are not step-equivalent keep samples in `carried`.
    ///
    /// # Errors
    /// Another number of sequences than the shapes', or shapes that the method cannot run.
    pub(crate) fn schedule_next(
        self,
        carried: &mut Carried,
        window: &PackedLengths,
        shapes: &Shapes,
    ) -> Result<Schedule, Failure> {
        let groups = self.each_group(carried, window, shapes, |group| group)?;
        Ok(Schedule {
            method: self,
            groups,
        })
    }

    /// What `of` makes of each group of [`Method::schedule_next`], in their order. It is called in parallel; where groups
    /// run plans of pools, each is made for it and dropped after it.
    ///
    /// # Errors
    /// As [`Method::schedule_next`].
    pub(crate) fn each_group<T: Send>(
        self,
        carried: &mut Carried,
        window: &PackedLengths,
        shapes: &Shapes,
        of: impl Fn(Group) -> T + Sync,
    ) -> Result<Vec<T>, Failure> {
        let (found, expected) = (window.sequences(), shapes.window.gbs() as usize);
        if found != expected {
            let why = "GBS";
            return Err(Error::SequenceCount {
                found,
                expected,
                why,
            }
            .into());
        }
        let groups: Groups = match self {
            Self::Ulysses => ulysses::pools(window, shapes)?.into(),
            Self::Tap => libra::tap(window, shapes)?.into(),
            Self::TapVrsp => libra::tap_vrsp(window, shapes)?.into(),
            Self::TapKarmarkarKarp => libra::tap_in(window, shapes, karmarkar_karp)?.into(),
            Self::TapZigzag => libra::tap_in(window, shapes, folding)?.into(),
            Self::TapZigzagSwapWeak => libra::tap_in(window, shapes, folding_swap_weak)?.into(),
            Self::TapZigzagSwap => libra::tap_in(window, shapes, folding_swap_converged)?.into(),
            Self::Paper => libra::paper(window, shapes)?.into(),
            Self::Libra => libra::libra(window, shapes)?.into(),
            Self::DistCa => libra::distca(window, shapes)?.into(),
            Self::Cad => cad::groups(window, shapes)?.into(),
            Self::Ring => ring::groups(window, shapes, CONTIGUOUS)?.into(),
            Self::ZigzagRing => ring::groups(window, shapes, ZIGZAG)?.into(),
            Self::DocZigzag => ring::groups(window, shapes, Sharding::Document)?.into(),
            Self::AllGather => all_gather::groups(window, shapes)?.into(),
            Self::Wlb => wlb::groups(window, shapes)?.into(),
            Self::WlbPublished => wlb_published::groups(&mut carried.wlb, window, shapes)?.into(),
            Self::Magi => magi::groups(window, shapes)?.into(),
            Self::DynamicCp => dynamic_cp::groups(window, shapes)?.into(),
        };
        groups.each(window, of)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let named = Self::ALL.into_iter().find(|method| method.name() == text);
        named.ok_or_else(|| Error::UnknownName {
            what: "method",
            value: text.to_owned(),
            legal: LEGAL,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_known_by_its_name_and_listed_as_legal() {
        let names: Vec<&str> = Method::ALL.iter().map(|method| method.name()).collect();
        assert_eq!(LEGAL, format!("all, {}", names.join(", ")));
        for method in Method::ALL {
            assert_eq!(method.name().parse(), Ok(method));
        }
    }

    #[test]
    fn what_is_not_executed_is_refused_by_name_and_left_out_of_all() {
        let error = Method::list_executed("libra,wlb-published").expect_err("refused");
        assert!(
            error.starts_with("wlb-published is not executed: "),
            "{error}"
        );
        assert!(error.contains("legal is all, ulysses, "), "{error}");
        let all = Method::list_executed("all").expect("known");
        let left_out: Vec<Method> = Method::not_executed().map(|(method, _)| method).collect();
        assert_eq!(all.len() + left_out.len(), Method::ALL.len());
        assert!(left_out.iter().all(|method| !all.contains(method)));
    }

    #[test]
    fn a_list_has_each_method_once_in_the_order_given() {
        let methods = Method::list("paper, ulysses,paper").expect("known");
        assert_eq!(methods, [Method::Paper, Method::Ulysses]);
        let all = Method::list("libra,all").expect("known");
        assert_eq!((all[0], all.len()), (Method::Libra, Method::ALL.len()));
        let error = Method::list("libra,lyra").expect_err("unknown");
        assert!(
            error
                .to_string()
                .starts_with("method \"lyra\" is unknown; one of all, ")
        );
    }
}
