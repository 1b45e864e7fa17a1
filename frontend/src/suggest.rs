//! "Did you mean …": the known name nearest to an unknown one, and what other languages' names are
//! called here. What a hint says to write is right as it stands.

/// The candidate within a third of the name's length in edits, the nearest and then the first.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = name.chars().count();
    let allowed = (letters / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .map(|candidate| (distance(name, candidate, allowed), candidate))
        .filter(|(edits, candidate)| *edits <= allowed && *edits < candidate.chars().count())
        // Another letter makes a short word another word: `sort` is not `sqrt` mistyped.
        .filter(|(_, candidate)| letters > 4 || !is_another_word(name, candidate))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Whether two words of one length differ in a letter, not in its case and not in two letters' order.
fn is_another_word(left: &str, right: &str) -> bool {
    let mut pairs = left.chars().zip(right.chars()).filter(|(l, r)| l != r);
    let same_length = left.chars().count() == right.chars().count();
    match (pairs.next(), pairs.next()) {
        (Some((l, r)), None) => same_length && !l.eq_ignore_ascii_case(&r),
        _ => false,
    }
}

/// What a function is called here that is known by this name elsewhere.
pub fn known_elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "append" | "push_back" | "add" => "an array with one more element is `push(xs, x)`",
        "ceil" | "floor" | "round" | "trunc" => "`i32(x)` drops the fraction",
        "cat" | "concatenate" | "extend" | "hstack" | "vstack" => "it is `concat(a, b, axis = 0)`",
        "clamp" | "clip" => "it is `min(max(x, low), high)`",
        "contains" | "exists" | "some" => "it is `any(xs, |x| x == value)`",
        "copy" | "clone" | "detach" => "values are never changed, so leave it out",
        "count" | "length" | "shape" | "size" => {
            "a length is `len(x)`, that of an axis `dim(x, axis)`"
        }
        "dot" | "matmul" | "mm" | "bmm" | "mv" => "products are written `x @ w`",
        "double" | "float" | "float32" | "to_f32" => "it is `f32(x)`",
        "enumerate" => "it is `map(range(len(xs)), xs, |i, x| …)`",
        "every" => "it is `all(xs, |x| …)`",
        "expand" | "broadcast" | "repeat" | "tile" => {
            "operators repeat an axis of length 1 by themselves: `x + zeros([n, D])`"
        }
        "flatten" | "view" | "squeeze" | "unsqueeze" | "expand_dims" => {
            "it is `reshape(x, [n, 2*D])`"
        }
        "foldl" | "foldr" | "reduce" | "scan" | "accumulate" => {
            "it is `fold(xs, start, |acc, x| …)`"
        }
        "full" | "constant" => "it is `fill([n, D], value)`",
        "int" | "integer" | "to_i32" => "it is `i32(x)`",
        "arange" | "linspace" => "an array is `range(a, b)`, a tensor `iota([n], 0)`",
        "ln" => "the natural logarithm is `log(x)`",
        "log_softmax" => "it is `log(softmax(x))`",
        "logistic" => "it is `sigmoid(x)`",
        "maximum" => "it is `max(a, b)`",
        "minimum" => "it is `min(a, b)`",
        "mod" | "rem" => "it is `a % b`",
        "neg" | "negative" => "it is `-x`",
        "not" | "logical_not" => "it is `!x`",
        "and" | "logical_and" => "it is `a && b`",
        "or" | "logical_or" => "it is `a || b`",
        "norm" => "it is `sqrt(sum(x * x))`",
        "ones_like" => "it is `x * 0 + 1`",
        "zeros_like" => "it is `x * 0`",
        "T" | "t" | "mT" => "it is `transpose(x)`",
        "permute" | "swapaxes" => "it is `transpose(x, [1, 0, 2])`",
        "pow2" | "square" => "it is `x * x`",
        "rand" | "randn" | "uniform" => "numbers in [0, 1) are `random(counter, [D])`",
        "rsqrt" => "it is `1 / sqrt(x)`",
        "slice" | "narrow" => "it is `x[a..b]`, along another axis `x[.., a..b]`",
        "item" | "get" | "index" | "index_select" | "lookup" | "embedding" => {
            "an element is `xs[i]`, a row `table[i]`, rows `gather(table, indices)`"
        }
        "chunk" => "it is `split(x, 2)`",
        "std" | "var" | "variance" => "it is `mean(c * c)` of `c = x - mean(x)`",
        "unstack" | "unbind" => "it is `map(range(len(x)), |i| x[i])`",
        "where" | "cond" | "ifelse" => {
            "it is `select(condition, a, b)`, or `if c { a } else { b }`"
        }
        "zip" => "`map(xs, ys, |x, y| …)` goes over several arrays",
        _ => return None,
    })
}

/// What a type is called here that is known by this name elsewhere.
pub fn type_elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "f16" | "f64" | "bf16" | "float" | "float16" | "float32" | "float64" | "double"
        | "half" | "Float" | "Double" => "numbers with a fraction are `f32`",
        "i8" | "i16" | "i64" | "u8" | "u16" | "u32" | "u64" | "int" | "int32" | "int64"
        | "uint" | "isize" | "usize" | "long" | "Int" | "Integer" => "integers are `i32`",
        "boolean" | "Bool" | "Boolean" => "it is `bool`",
        "Array" | "Vec" | "list" | "array" | "vec" | "vector" => "an array is written `[i32]`",
        "Tensor" | "tensor" | "Matrix" | "Vector" | "ndarray" => {
            "a tensor is written with its dims, `f32[n, D]`"
        }
        "Tuple" | "tuple" => "a tuple is written `(i32, f32)`",
        _ => return None,
    })
}

/// What a value is called here that is known by this name elsewhere.
pub fn value_elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "True" | "TRUE" => "it is `true`",
        "False" | "FALSE" => "it is `false`",
        "pi" | "PI" => "write it: `let pi = 3.14159265` outside functions",
        "inf" | "Infinity" | "INFINITY" => "it is `1.0 / 0.0`",
        "nan" | "NaN" => "it is `0.0 / 0.0`",
        "null" | "None" | "nil" | "undefined" => {
            "declare what may be missing: `type Option<T> = None | Some(T)`"
        }
        _ => return None,
    })
}

/// A name as types and constructors are written; `None` where it has no letter to begin with.
pub fn capitalised(name: &str) -> Option<String> {
    let mut letters = name.trim_start_matches('_').chars();
    let first = letters.next().filter(char::is_ascii_alphabetic)?;
    Some(first.to_ascii_uppercase().to_string() + letters.as_str())
}

/// Edits between two names, swaps of neighbours included; `limit + 1` for anything farther.
fn distance(left: &str, right: &str, limit: usize) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    // Long names would make the table large, and nobody mistypes fifty letters.
    if left.len().abs_diff(right.len()) > limit || left.len() > 50 {
        return limit + 1;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let substitution = last[j] + usize::from(a != b);
            let mut best = substitution.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && left[i - 1] == *b && right[j - 1] == *a {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(limit + 1)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_suggested_and_a_far_one_is_not() {
        let names = ["sigmoid", "softmax", "split", "sqrt", "tanh"];
        assert_eq!(nearest("sigmod", names), Some("sigmoid"));
        assert_eq!(nearest("slpit", names), Some("split"));
        assert_eq!(nearest("cell", names), None);
        assert_eq!(nearest("sort", names), None);
        assert_eq!(nearest("tahn", names), Some("tanh"));
        assert_eq!(nearest("Tanh", names), Some("tanh"));
    }
}
