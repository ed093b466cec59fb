//! `simd.rs` as a crate of its own, which compiles within seconds: `scripts/check-targets` runs its
//! tests for other CPUs.

/// As in `lib.rs`.
pub const UNCHECKED: bool = false;

#[path = "../../rust/core/simd.rs"]
pub mod simd;
