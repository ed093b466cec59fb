//! Any bytes as an Arrow IPC file or stream: rows or an error, no endless loop, and every cell of
//! the rows can be read.
#![no_main]

#[path = "../shared/drain.rs"]
mod drain;

use libfuzzer_sys::fuzz_target;
use urlset_core::build::read::ipc::Ipc;

fuzz_target!(|data: &[u8]| {
    let path = std::env::temp_dir().join(format!("urlset-fuzz-{}.arrow", std::process::id()));
    std::fs::write(&path, data).expect("a file to read");
    drain::drain(Ipc::new(path.to_string_lossy(), 100));
});
