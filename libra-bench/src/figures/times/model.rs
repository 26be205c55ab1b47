//! Models that are trained end to end. Widths are Qwen3's, as published with its weights.
//!
//! Beside attention a token takes two operations for each parameter that it meets in a layer, at half of the peak of
//! 989 TFLOP/s, as in the cluster's own profile: projections of Q, K, V and O, and the feed-forward layer or as many
//! experts as a token is sent to.

/// What decides time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    pub(super) layers: u32,
    pub(super) q_heads: u32,
    pub(super) kv_heads: u32,
    /// As in cluster files.
    pub(super) linear_us_per_token: f64,
}

/// 193 million parameters a layer.
pub(super) const DENSE_8B: Model = Model {
    layers: 36,
    q_heads: 32,
    kv_heads: 8,
    linear_us_per_token: 0.78,
};

/// 57 million parameters a token and layer: 8 experts of 2048 × 768.
pub(super) const MOE_30B: Model = Model {
    layers: 48,
    q_heads: 32,
    kv_heads: 4,
    linear_us_per_token: 0.23,
};

/// 223 million parameters a token and layer: 8 experts of 4096 × 1536.
pub(super) const MOE_235B: Model = Model {
    layers: 94,
    q_heads: 64,
    kv_heads: 4,
    linear_us_per_token: 0.90,
};
