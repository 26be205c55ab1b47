//! Events of the engine, and the order in which they happen.

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The first byte of a message is at its next port.
    Passes(u32),
    /// A worker goes on.
    Continues(u32),
}

/// When an event happens, which comes first of simultaneous ones, and whose it is: one comparison orders them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u128);

impl Key {
    /// Of an event at a time.
    pub(super) fn new(at_ns: u64, event: Event) -> Self {
        let (kind, id) = match event {
            Event::Passes(message) => (0, message),
            Event::Continues(worker) => (1, worker),
        };
        Self(u128::from(at_ns) << 64 | kind << 32 | u128::from(id))
    }

    /// The time.
    pub(super) fn at_ns(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The event.
    pub(super) fn event(self) -> Event {
        let id = self.0 as u32;
        match self.0 as u64 >> 32 {
            0 => Event::Passes(id),
            _ => Event::Continues(id),
        }
    }
}
