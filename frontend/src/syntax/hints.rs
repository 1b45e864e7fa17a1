//! What a mistake of syntax was probably meant to be. Each hint names what may be written instead.

use super::lexer::{Spanned, Token};

/// A hint for a token that cannot stand where it does, by what is before and after it.
///
/// `expected` are the terminals that could stand there.
pub fn hint(tokens: &[Spanned<'_>], at: usize, expected: &[&str]) -> Option<String> {
    let place = tokens.iter().position(|token| token.start >= at);
    let place = place.unwrap_or(tokens.len());
    let before = place.checked_sub(1).and_then(|place| tokens.get(place));
    let before = before.map(|spanned| spanned.token);
    let found = tokens.get(place).map(|spanned| spanned.token);
    let after = tokens.get(place + 1).map(|spanned| spanned.token);
    let wants = |name: &str| expected.contains(&name);
    let operand = wants("float");
    let operator = wants("*") && wants("==");
    let text = match (before, found?, after) {
        (_, Token::If | Token::Match | Token::While | Token::For | Token::OpenBrace, _)
            if operand && !wants("if") =>
        {
            "within a larger expression these stand in parentheses: \
             `1 + (if c { a } else { b })`"
        }
        (Some(Token::Name("return")), ..) => {
            "a block's last expression is its value: leave `return` out"
        }
        (Some(Token::Name("mut" | "var" | "const")), ..) => {
            "nothing is changed in place: `let x = …;` names a value, and names may be used again"
        }
        (Some(Token::Name("elif" | "elseif" | "elsif")), ..) => "write `else if`",
        (Some(Token::Name("not")), ..) => "write `!x`",
        (_, Token::Name("and"), _) if operator => "write `a && b`",
        (_, Token::Name("or"), _) if operator => "write `a || b`",
        (_, Token::Name("mod"), _) if operator => "write `a % b`",
        (_, Token::Name("then"), _) => "write `if c { a } else { b }`",
        (_, Token::Name("elif" | "elseif" | "elsif"), _) => "write `else if`",
        (Some(Token::Star), Token::Star, _) => "a power is `pow(x, y)`",
        (Some(Token::Plus | Token::Minus | Token::Star | Token::Slash), Token::Assign, _) => {
            "nothing is changed in place: `let x = x + 1;` gives the name a new value"
        }
        (_, Token::Assign, _) if operator => {
            "values are compared with `==`, and named with `let x = …;`"
        }
        (_, Token::Less | Token::LessEqual | Token::Greater | Token::GreaterEqual, _)
        | (_, Token::EqualEqual | Token::NotEqual, _)
            if wants("&&") =>
        {
            "comparisons do not chain: `a < b && b < c`"
        }
        (_, Token::OpenParen, _) if is_method(tokens, place) => {
            "there are no methods: write `len(x)` for `x.len()`"
        }
        (_, Token::DotDot, _) => "numbers are counted with `range(n)` or `range(a, b)`",
        (_, Token::Dot, Some(Token::Int(_))) if operand => "write `0.5`, not `.5`",
        (_, Token::Int(_) | Token::Float(_), _) if before == Some(Token::Dot) => {
            "the parts of a tuple are taken out with `let (a, b) = …;`"
        }
        (_, Token::Bar | Token::OrOr, _) if operand => {
            "closures stand only as arguments of `map`, `fold`, `filter`, `any` and `all`: \
             define a function with `fn`"
        }
        (_, Token::Colon, _) if wants("..") => {
            "a slice is `x[a..b]`, and one along another axis `x[.., a..b]`"
        }
        (Some(Token::Name(_)), Token::Colon, _) if wants("=") || operator => {
            "arguments and fields are given by name with `=`: `Node(left = a, right = b)`"
        }
        (_, Token::OpenBrace, _) if wants("->") => {
            "a function says what its result is: `fn f(x: f32) -> f32 { … }`"
        }
        (_, Token::OpenBrace, _) if wants("with") => {
            "a loop says what it carries from turn to turn: `for x in xs with (a = start) { … }`"
        }
        (_, Token::Arrow, _) if wants("=>") => "an arm is written `pattern => value`",
        (_, Token::FatArrow, _) if wants("->") => "the result's type follows `->`",
        (_, Token::Text(_), _) => {
            "text in quotes stands in `import`, in `einsum(\"ij,jk->ik\", a, b)` and where a `str` is compared, `name == \"a\"`"
        }
        (_, Token::Fn, Some(Token::OpenParen)) => {
            "functions are not values, and have no types: their names stand where closures do, `map(xs, f)`"
        }
        (_, Token::Fn, _) => "functions are defined outside of functions",
        (_, Token::For, _) if operator => {
            "each element of an array is computed by `map(xs, |x| …)`"
        }
        (Some(Token::Dot), ..) if is_number(tokens, place) => "write `1.0`, not `1.`",
        (_, Token::Semicolon, _) if expected == ["}"] => {
            "a block's value is its last expression, without `;`"
        }
        (Some(Token::Name(_)), Token::CloseParen | Token::Comma, _) if expected == [":"] => {
            "an argument has a type: `fn f(x: f32[n]) -> f32 { … }`"
        }
        _ if wants(";") => "a `let` inside a block ends with `;`",
        _ => return None,
    };
    Some(text.to_owned())
}

/// Whether the parenthesis follows `x.name`.
fn is_method(tokens: &[Spanned<'_>], place: usize) -> bool {
    let token = |back: usize| place.checked_sub(back).and_then(|p| tokens.get(p));
    matches!(token(1).map(|t| t.token), Some(Token::Name(_)))
        && matches!(token(2).map(|t| t.token), Some(Token::Dot))
}

/// Whether the place follows `1.`.
fn is_number(tokens: &[Spanned<'_>], place: usize) -> bool {
    let before = place.checked_sub(2).and_then(|place| tokens.get(place));
    matches!(before.map(|t| t.token), Some(Token::Int(_)))
}

/// A hint for text that begins no item.
pub fn item_hint(first: Token<'_>) -> &'static str {
    match first {
        Token::Name("def" | "func" | "function" | "fun") => {
            "a function is written `fn f(x: f32) -> f32 { … }`"
        }
        Token::Name("struct" | "enum" | "class" | "data" | "record" | "union") => {
            "a type is written `type Tree = Leaf(i32) | Node(left: Tree, right: Tree)`"
        }
        Token::Name("const" | "static" | "var" | "val") => "a constant is written `let heads = 4`",
        Token::Name("weight" | "weights" | "parameter") => {
            "a tensor of the weights is written `param w: f32[D, H]`"
        }
        Token::Name("use" | "include" | "from" | "module" | "mod" | "require") => {
            "another file's items are taken in by `import \"file.coh\"`"
        }
        Token::Name("dims") => "dims are written `dim D, H`",
        Token::Name("alias" | "typedef") => "another name of a type is written `type Row = f32[H]`",
        _ => "an item begins with `import`, `dim`, `param`, `type`, `fn` or `let`",
    }
}

/// A hint for a character that begins no token.
pub fn character_hint(text: &str) -> &'static str {
    match text {
        "&" => "write `&&` for `and`",
        "#" => "comments begin with `//`",
        "^" => "a power is `pow(x, y)`",
        "~" => "write `!x` for `not`",
        "?" | "$" | "\\" | "`" => "remove it",
        text if text.starts_with('"') => "text in quotes ends on its line, `import \"file.coh\"`",
        "'" => "the language has no characters",
        "−" | "–" | "—" => "write `-`",
        "×" | "·" | "∗" => "write `*`, or `@` for a product of matrices",
        "÷" => "write `/`",
        "≤" => "write `<=`",
        "≥" => "write `>=`",
        "≠" => "write `!=`",
        "∧" => "write `&&`",
        "∨" => "write `||`",
        "¬" => "write `!x`",
        "→" => "write `->`",
        "⇒" => "write `=>`",
        "…" => "write `..`",
        "“" | "”" | "‘" | "’" => "remove it",
        _ => "remove it; outside comments the language uses ASCII only",
    }
}
