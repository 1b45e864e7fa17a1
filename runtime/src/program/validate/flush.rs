//! What runs a flush in one launch.

use std::collections::HashSet;

use cohort_abi::gpu::{ARGUMENT_BYTES, GpuFlush};
use cohort_abi::manifest::Manifest;

/// That a block is possible and that no function has two numbers. Functions that it lists and no kernel
/// has, and those that need another block, are never in a schedule.
pub fn validate(manifest: &Manifest) -> Result<(), String> {
    let Some(flush) = &manifest.gpu_flush else {
        return Ok(());
    };
    let GpuFlush {
        symbol,
        threads,
        argument_bytes,
        functions,
        ..
    } = flush;
    if !(1..=1024).contains(threads) || threads % 32 != 0 {
        return Err(format!("`{symbol}` has {threads} threads a block"));
    }
    if *argument_bytes as usize > ARGUMENT_BYTES || argument_bytes % 8 != 0 {
        return Err(format!(
            "`{symbol}` reads {argument_bytes} bytes of arguments: expected a multiple of 8 up to {ARGUMENT_BYTES}"
        ));
    }
    each_once(symbol, functions)?;
    match &flush.clusters {
        Some(clusters) => each_once(&clusters.symbol, &clusters.functions),
        None => Ok(()),
    }
}

/// That a function lists no other one twice.
fn each_once(symbol: &str, functions: &[String]) -> Result<(), String> {
    let mut seen = HashSet::new();
    match functions.iter().find(|function| !seen.insert(*function)) {
        Some(twice) => Err(format!("`{symbol}` lists `{twice}` twice")),
        None => Ok(()),
    }
}
