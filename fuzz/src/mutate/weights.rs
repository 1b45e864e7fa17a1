//! Changes of safetensors files: eight bytes of length, a JSON header, data.

use cohort_e2e::Rng;
use serde_json::Value as Json;

use super::{bytes, json};

pub fn mutate(input: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let parts = input.split_first_chunk::<8>().and_then(|(length, rest)| {
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (header, data) = (rest.get(..length)?, rest.get(length..)?);
        Some((serde_json::from_slice::<Json>(header).ok()?, data))
    });
    let Some((mut header, data)) = parts else {
        return bytes::mutate(input, other, rng);
    };
    let mut data = data.to_vec();
    match rng.below(8) {
        0 => data = bytes::mutate(&data, &[], rng),
        1 => data.truncate(rng.below(data.len() + 1)),
        // A type of elements, which is one word of a few.
        2 => {
            let types = [
                "F32", "F16", "BF16", "F64", "I64", "I32", "BOOL", "U8", "F8_E4M3", "?",
            ];
            if let Some(tensors) = header.as_object_mut()
                && let Some(tensor) = tensors.values_mut().find_map(Json::as_object_mut)
            {
                tensor.insert("dtype".into(), Json::from(*rng.pick(&types)));
            }
        }
        _ => {
            let donor = header.clone();
            json::mutate(&mut header, &donor, rng);
        }
    }
    let text = header.to_string().into_bytes();
    let length = match rng.below(12) {
        0 => bytes::mutate(&(text.len() as u64).to_le_bytes(), &[], rng),
        _ => (text.len() as u64).to_le_bytes().to_vec(),
    };
    [length, text, data].concat()
}
