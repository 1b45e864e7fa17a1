//! What keys the random numbers of an instance: the 64-bit FNV-1a hash of its id's text.

/// The key of an id that is given as JSON text; `7` and `"7"` have the same.
pub(super) fn of(id: &str) -> u64 {
    match id.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(text) if !text.contains('\\') => fnv_1a(text),
        Some(_) => serde_json::from_str(id).map_or(0, |text: String| fnv_1a(&text)),
        None => fnv_1a(id),
    }
}

fn fnv_1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_of_the_text_however_it_is_written() {
        assert_eq!(of("\"7\""), of("7"));
        assert_eq!(of(r#""\u0061b""#), of("\"ab\""));
        assert_ne!(of("\"7\""), of("\"8\""));
        // The reference's hash of "a".
        assert_eq!(of("\"a\""), 0xaf63_dc4c_8601_ec8c);
    }
}
