//! Indexing maps and reshape groups with one dim more in front, as text.
//!
//! melior offers neither maps nor nested array attributes to take apart, and MLIR's printed form of
//! both is canonical.

/// `[[0, 1], [2]]` with a leading group for the batch dim: `[[0], [1, 2], [3]]`.
pub fn shift_groups(groups: &str) -> String {
    let shifted = shift_numbers(groups, |before| {
        before.is_none_or(|c: char| !c.is_alphanumeric() && c != '_')
    });
    // An element may be printed with its type, `0 : i64`.
    format!("[[0], {}", shifted.strip_prefix('[').unwrap_or(&shifted))
}

/// `affine_map<(d0, d1) -> (d1)>` as `affine_map<(d0, d1, d2) -> (d0, d2)>`; without the leading
/// result when the operand has no batch dim.
pub fn shift_map(map: &str, has_rows: bool) -> Option<String> {
    let inner = map.strip_prefix("affine_map<(")?;
    let (dims, results) = inner.split_once(") -> (")?;
    let after_d = |before: Option<char>| before == Some('d');
    let dims = shift_numbers(dims, after_d);
    let results = shift_numbers(results, after_d);
    let dims = if dims.is_empty() {
        "d0".to_owned()
    } else {
        format!("d0, {dims}")
    };
    let leading = match (has_rows, results.starts_with(')')) {
        (false, _) => "",
        (true, true) => "d0",
        (true, false) => "d0, ",
    };
    Some(format!("affine_map<({dims}) -> ({leading}{results}"))
}

/// Adds one to every number whose preceding character satisfies `counts`.
fn shift_numbers(text: &str, counts: impl Fn(Option<char>) -> bool) -> String {
    let mut out = String::new();
    let mut before = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if !character.is_ascii_digit() {
            out.push(character);
            before = Some(character);
            continue;
        }
        let mut number = String::from(character);
        while let Some(digit) = characters.next_if(char::is_ascii_digit) {
            number.push(digit);
        }
        match number.parse::<u64>() {
            Ok(value) if counts(before) => out.push_str(&(value + 1).to_string()),
            _ => out.push_str(&number),
        }
        before = number.chars().last();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{shift_groups, shift_map};

    #[test]
    fn groups_move_up_by_one() {
        assert_eq!(shift_groups("[[0, 1], [2]]"), "[[0], [1, 2], [3]]");
        assert_eq!(
            shift_groups("[[0 : i64], [1 : i64, 2 : i64]]"),
            "[[0], [1 : i64], [2 : i64, 3 : i64]]"
        );
    }

    #[test]
    fn maps_gain_a_leading_dim() {
        let map = "affine_map<(d0, d1) -> (d1)>";
        assert_eq!(
            shift_map(map, true).as_deref(),
            Some("affine_map<(d0, d1, d2) -> (d0, d2)>")
        );
        assert_eq!(
            shift_map(map, false).as_deref(),
            Some("affine_map<(d0, d1, d2) -> (d2)>")
        );
        let scalar = "affine_map<(d0) -> ()>";
        assert_eq!(
            shift_map(scalar, true).as_deref(),
            Some("affine_map<(d0, d1) -> (d0)>")
        );
    }
}
