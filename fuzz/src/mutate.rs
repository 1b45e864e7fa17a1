//! Changes of an input that know its form: most still parse and go wrong further in.

mod arrays;
mod bytes;
mod json;
mod requests;
mod tokens;
mod weights;

use std::rc::Rc;

use cohort_e2e::Rng;
use cohort_runtime::Artifact;

pub use cohort_tools::reduce::tokens::tokens;
pub use requests::{connections, file as file_of};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text of a language with brackets: `.coh` or MLIR.
    Text,
    /// Instances, one a line; the first and the last stay as they are.
    Instances,
    /// The JSON of an artifact's manifest; the file is `model.cohort` with it, its checksums right.
    Manifest,
    /// A safetensors file.
    Weights,
    /// The object file of an artifact, in `model.cohort`, its checksums right.
    Object,
    /// An array of NumPy.
    Array,
    /// An archive of such arrays.
    Archive,
    /// Connections of clients with what they send.
    Requests,
    /// Nothing that is known of.
    Bytes,
}

impl Form {
    /// Changes an input a little; `other` is another of its class.
    pub fn mutate(self, input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
        let mut changed = input.to_vec();
        // One change most of the time: what is changed a lot is refused at once.
        for _ in 0..1 + rng.below(8).saturating_sub(4) {
            changed = match self {
                _ if self != Form::Instances && self != Form::Manifest && rng.one_in(12) => {
                    bytes::mutate(&changed, other, rng)
                }
                Form::Text => tokens::mutate(&changed, other, rng),
                Form::Instances => json::mutate_lines(&changed, rng),
                Form::Manifest => json::mutate_text(&changed, other, rng),
                Form::Weights => weights::mutate(&changed, other, rng),
                Form::Object => bytes::mutate_tables(&changed, rng),
                Form::Array => arrays::mutate_npy(&changed, other, rng),
                Form::Archive => arrays::mutate_npz(&changed, other, rng),
                Form::Requests => requests::mutate(&changed, other, rng),
                Form::Bytes => bytes::mutate(&changed, other, rng),
            };
        }
        changed
    }

    /// Whether the file that the bytes stand for can be made.
    pub fn is_possible(self, bytes: &[u8]) -> bool {
        self != Form::Manifest
            || serde_json::from_slice::<cohort_runtime::abi::manifest::Manifest>(bytes).is_ok()
    }

    /// The bytes of the file.
    pub fn file(self, bytes: &[u8], files: &[(String, Rc<[u8]>)]) -> Vec<u8> {
        let artifact = || {
            let whole = files.iter().find(|(name, _)| name == "whole.cohort");
            whole.and_then(|(_, whole)| Artifact::from_bytes(whole).ok())
        };
        let changed = match self {
            Form::Manifest => artifact().and_then(|mut artifact| {
                artifact.manifest = serde_json::from_slice(bytes).ok()?;
                artifact.to_bytes().ok()
            }),
            Form::Object => artifact().and_then(|mut artifact| {
                artifact.objects[0] = bytes.to_vec();
                artifact.to_bytes().ok()
            }),
            _ => None,
        };
        changed.unwrap_or_else(|| bytes.to_vec())
    }

    /// The parts that may be left out one by one.
    pub fn units(self, bytes: &[u8]) -> Vec<Vec<u8>> {
        match (self, std::str::from_utf8(bytes)) {
            (Form::Instances, _) => bytes
                .split_inclusive(|b| *b == b'\n')
                .map(<[u8]>::to_vec)
                .collect(),
            (Form::Requests, _) => connections(bytes)
                .into_iter()
                .map(|connection| file_of(&[connection]))
                .collect(),
            (Form::Text, Ok(text)) => tokens(text).iter().map(|t| t.as_bytes().to_vec()).collect(),
            _ => bytes.iter().map(|byte| vec![*byte]).collect(),
        }
    }
}

/// Numbers at which something happens.
const NUMBERS: [&str; 32] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "16",
    "17",
    "63",
    "64",
    "100",
    "127",
    "128",
    "255",
    "256",
    "1000",
    "65535",
    "65536",
    "1000000",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999",
    "0.5",
    "1e38",
    "1e400",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_change_inputs_and_end() {
        let mut rng = Rng::new(1);
        let text = b"fn main(x: f32[n, 3]) -> f32 { sum(x) + 1.0 } // done\n";
        let lines =
            b"{\"id\":\"a\",\"x\":[1,2]}\n{\"x\":[{\"Leaf\":[3]}]}\n{\"id\":\"a\",\"x\":[1,2]}\n";
        let mut weights = (r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#.len()
            as u64)
            .to_le_bytes()
            .to_vec();
        weights.extend(br#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#);
        weights.extend([0; 8]);
        for (form, input) in [
            (Form::Text, &text[..]),
            (Form::Instances, lines),
            (Form::Weights, &weights),
            (Form::Object, &[7; 300]),
            (Form::Bytes, text),
            (Form::Text, b""),
            (Form::Weights, b""),
            (Form::Bytes, b""),
        ] {
            let changed = (0..500)
                .filter(|_| form.mutate(input, text, &mut rng) != input)
                .count();
            assert!(changed > 300 || input.is_empty(), "{form:?}: {changed}");
        }
    }

    #[test]
    fn the_first_and_the_last_instance_stay() {
        let mut rng = Rng::new(2);
        let lines = "{\"x\":1}\n{\"x\":[2]}\n{\"x\":3}\n";
        for _ in 0..500 {
            let changed = Form::Instances.mutate(lines.as_bytes(), b"", &mut rng);
            assert!(changed.starts_with(b"{\"x\":1}\n"));
            assert!(changed.ends_with(b"\n{\"x\":3}\n"));
        }
    }
}
