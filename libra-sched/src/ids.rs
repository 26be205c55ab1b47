//! Typed indices: a worker is never a tile.

use bytemuck::{Pod, Zeroable};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $letter:literal) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
        pub struct $name(pub u32);

        impl $name {
            /// The id of the `index`-th item.
            ///
            /// # Panics
            /// If `index` exceeds `u32::MAX`; constructors of shapes keep every count below that.
            #[must_use]
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("counts are checked against u32 in constructors"))
            }

            /// Position in the array this id points into.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A packed sequence of the window: its position in sampler order.
    SequenceId, "s"
);
id!(
    /// A logical pool of one step, `0..K`.
    PoolId, "pool "
);
id!(
    /// A worker of one pool, `0..P·CP`: slot-major, then context rank, then tensor rank.
    WorkerId, "w"
);
id!(
    /// A sample of one pool: samples are numbered slot by slot in token order.
    SampleId, "sample "
);
id!(
    /// An SH-Tile of one pool.
    TileId, "t"
);
