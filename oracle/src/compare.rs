//! Comparing two outputs within a tolerance.

use serde_json::Value as Json;

/// How far two numbers may differ: `absolute + relative · |expected|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Of the number that is expected.
    pub relative: f64,
    /// Besides that, so that numbers near zero may differ too.
    pub absolute: f64,
}

/// Compares two outputs; integers, names and structure must be equal. The message names the path
/// of the first difference and both values there.
pub fn compare_outputs(expected: &Json, actual: &Json, tolerance: Tolerance) -> Result<(), String> {
    // A list of work instead of recursion: outputs may be deep.
    let mut pending = vec![("output".to_string(), expected, actual)];
    while let Some((path, expected, actual)) = pending.pop() {
        match (expected, actual) {
            (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
                let pairs = a.iter().zip(b).enumerate().rev();
                pending.extend(pairs.map(|(i, (a, b))| (format!("{path}[{i}]"), a, b)));
            }
            (Json::Array(a), Json::Array(b)) => {
                return Err(format!(
                    "{path}: {} elements expected, {} found",
                    a.len(),
                    b.len()
                ));
            }
            (Json::Object(a), Json::Object(b)) if a.keys().eq(b.keys()) => {
                let pairs = a.iter().zip(b.values()).rev();
                pending.extend(pairs.map(|((k, a), b)| (format!("{path}.{k}"), a, b)));
            }
            (Json::Number(a), Json::Number(b)) if a.is_f64() || b.is_f64() => {
                let (a, b) = (
                    a.as_f64().unwrap_or(f64::NAN),
                    b.as_f64().unwrap_or(f64::NAN),
                );
                let allowed = tolerance.absolute + tolerance.relative * a.abs();
                let difference = (a - b).abs();
                if difference.is_nan() || difference > allowed {
                    return Err(format!(
                        "{path}: {a} expected, {b} found; {difference:e} > {allowed:e}"
                    ));
                }
            }
            _ if expected == actual => {}
            _ => {
                return Err(format!(
                    "{path}: {} expected, {} found",
                    brief(expected),
                    brief(actual)
                ));
            }
        }
    }
    Ok(())
}

fn brief(json: &Json) -> String {
    match json {
        Json::Array(elements) => format!("an array of {}", elements.len()),
        Json::Object(members) => {
            format!("an object with {:?}", members.keys().collect::<Vec<_>>())
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compare(expected: Json, actual: Json) -> Result<(), String> {
        compare_outputs(
            &expected,
            &actual,
            Tolerance {
                relative: 1e-3,
                absolute: 1e-6,
            },
        )
    }

    #[test]
    fn floats_may_differ_within_the_tolerance() {
        assert_eq!(
            compare(
                json!([1.0, {"N": [2, 1000.0]}]),
                json!([1.0005, {"N": [2, 1000.9]}])
            ),
            Ok(())
        );
        assert_eq!(compare(json!(0.0), json!(1e-7)), Ok(()));
    }

    #[test]
    fn a_difference_is_named_by_its_path() {
        let message = compare(json!([[1.0, 2.0]]), json!([[1.0, 2.1]])).unwrap_err();
        assert!(
            message.starts_with("output[0][1]: 2 expected, 2.1 found"),
            "{message}"
        );
        let message = compare(json!({"N": [1, "E"]}), json!({"N": [1, "F"]})).unwrap_err();
        assert_eq!(message, "output.N[1]: \"E\" expected, \"F\" found");
    }

    #[test]
    fn integers_lengths_and_kinds_must_be_equal() {
        assert!(compare(json!([1000]), json!([1001])).is_err());
        assert!(compare(json!([1.0]), json!([1.0, 1.0])).is_err());
        assert!(compare(json!([1.0]), json!(1.0)).is_err());
        assert!(compare(json!(1.0), json!(null)).is_err());
    }
}
