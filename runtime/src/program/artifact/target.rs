//! The machine that host code needs, against the one that runs.

use serde::{Deserialize, Serialize};

use super::{Problem, ProblemKind};

/// What host code was compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTarget {
    /// `x86_64-unknown-linux-gnu`
    pub triple: String,
    /// The processor as LLVM calls it; for people, what counts are the features.
    pub cpu: String,
    /// The features that the code may use beyond the architecture's baseline, as LLVM calls them.
    pub features: Vec<String>,
}

macro_rules! features {
    ($name:ident, $arch:literal, $detected:ident: $($llvm:literal = $rust:tt),* $(,)?) => {
        /// The features that can be checked on the machine that runs; code may use no others
        /// beyond the baseline.
        const $name: &[&str] = &[$($llvm),*];

        /// Whether this machine has a feature; nothing if it cannot be told.
        #[cfg(target_arch = $arch)]
        fn has_feature(name: &str) -> Option<bool> {
            match name {
                $($llvm => Some(std::arch::$detected!($rust)),)*
                _ => None,
            }
        }
    };
}

features! { X86_64, "x86_64", is_x86_feature_detected:
    "sse3" = "sse3",
    "ssse3" = "ssse3",
    "sse4.1" = "sse4.1",
    "sse4.2" = "sse4.2",
    "popcnt" = "popcnt",
    "cx16" = "cmpxchg16b",
    "avx" = "avx",
    "avx2" = "avx2",
    "bmi" = "bmi1",
    "bmi2" = "bmi2",
    "f16c" = "f16c",
    "fma" = "fma",
    "lzcnt" = "lzcnt",
    "movbe" = "movbe",
    "adx" = "adx",
    "gfni" = "gfni",
    "vaes" = "vaes",
    "vpclmulqdq" = "vpclmulqdq",
    "avx512f" = "avx512f",
    "avx512bw" = "avx512bw",
    "avx512cd" = "avx512cd",
    "avx512dq" = "avx512dq",
    "avx512vl" = "avx512vl",
    "avx512ifma" = "avx512ifma",
    "avx512vbmi" = "avx512vbmi",
    "avx512vbmi2" = "avx512vbmi2",
    "avx512vnni" = "avx512vnni",
    "avx512bitalg" = "avx512bitalg",
    "avx512vpopcntdq" = "avx512vpopcntdq",
    "avx512bf16" = "avx512bf16",
    "avx512fp16" = "avx512fp16",
}

features! { AARCH64, "aarch64", is_aarch64_feature_detected:
    "neon" = "neon",
    "aes" = "aes",
    "sha2" = "sha2",
    "crc" = "crc",
    "lse" = "lse",
    "rdm" = "rdm",
    "rcpc" = "rcpc",
    "ccpp" = "dpb",
    "fullfp16" = "fp16",
    "dotprod" = "dotprod",
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_feature(_: &str) -> Option<bool> {
    None
}

/// The features that a [`HostTarget`] of an architecture may name.
pub fn known_features(arch: &str) -> &'static [&'static str] {
    match arch {
        "x86_64" => X86_64,
        "aarch64" => AARCH64,
        _ => &[],
    }
}

impl HostTarget {
    /// The architecture, as [`std::env::consts::ARCH`] has it.
    pub fn arch(&self) -> &str {
        self.triple.split('-').next().unwrap_or_default()
    }

    /// Whether this machine can run the code.
    pub fn check(&self) -> Result<(), Problem> {
        let (arch, os) = (self.arch(), self.triple.split('-').nth(2));
        let mismatched = |place: &str, expected: &str, found: &str| -> Result<(), Problem> {
            Err(Problem::new(
                ProblemKind::Mismatched,
                place,
                expected,
                found,
            ))
        };
        if arch != std::env::consts::ARCH {
            return mismatched(
                "the processor it was compiled for",
                std::env::consts::ARCH,
                arch,
            );
        }
        let os = os.unwrap_or_default();
        if !os.starts_with(std::env::consts::OS) {
            return mismatched("the system it was compiled for", std::env::consts::OS, os);
        }
        let missing: Vec<&str> = self
            .features
            .iter()
            .map(String::as_str)
            .filter(|feature| has_feature(feature) != Some(true))
            .collect();
        if !missing.is_empty() {
            return mismatched(
                &format!("the processor it was compiled for, {}", self.cpu),
                "one whose instructions this machine has",
                &format!("that it needs {}", missing.join(", ")),
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(triple: &str, features: &[&str]) -> HostTarget {
        HostTarget {
            triple: triple.to_owned(),
            cpu: "z80".to_owned(),
            features: features.iter().map(|name| name.to_string()).collect(),
        }
    }

    #[test]
    fn other_machines_are_told() {
        let here = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        assert_eq!(target(&here, &[]).check(), Ok(()));
        for (target, words) in [
            (target("mips64-unknown-linux-gnu", &[]), "mips64"),
            (target("", &[]), "processor"),
            (target(&here.replace("linux", "windows"), &[]), "windows"),
            (
                target(&here, &["avx1024"]),
                "z80: expected one whose instructions this machine has, found that it needs avx1024",
            ),
        ] {
            let problem = target.check().unwrap_err();
            assert_eq!(problem.kind, ProblemKind::Mismatched);
            assert!(problem.to_string().contains(words), "{problem}");
        }
    }
}
