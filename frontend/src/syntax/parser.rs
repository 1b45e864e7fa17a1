//! Drives the grammar over the chunks of a file and words its errors.

use lalrpop_util::{ParseError, lalrpop_mod};

use super::ast::Module;
use super::build::Builder;
use super::chunks;
use super::hints;
use super::lexer::{self, Token};
use crate::diagnostic::Diagnostic;
use crate::program::Span;

lalrpop_mod!(
    #[allow(
        clippy::all,
        clippy::pedantic,
        missing_debug_implementations,
        unused_imports,
        unused_qualifications
    )]
    grammar,
    "/grammar.rs"
);

/// Parses one file. The module holds every item that parsed, however many others did not.
pub fn parse(file: usize, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Module {
    let tokens = lexer::lex(file, text, diagnostics);
    let parser = grammar::ItemParser::new();
    let mut builder = Builder::new(file);
    let mut module = Module::default();
    for chunk in chunks::split(file, &tokens, diagnostics) {
        if chunk.broken {
            continue;
        }
        if let Some(first) = chunk.tokens.first()
            && !begins_item(first.token)
        {
            diagnostics.push(not_an_item(file, first));
            continue;
        }
        builder.begin(chunk.tokens);
        let stream = chunk
            .tokens
            .iter()
            .map(|spanned| Ok::<_, &'static str>((spanned.start, spanned.token, spanned.end)));
        match parser.parse(&builder, stream) {
            Ok(item) => module.items.push(item),
            Err(error) => diagnostics.push(syntax_error(file, chunk.tokens, error)),
        }
    }
    diagnostics.append(&mut builder.diagnostics.borrow_mut());
    module
}

/// The paths that a file imports, as they are written.
pub fn imports(text: &str) -> Vec<String> {
    let tokens = lexer::lex(0, text, &mut Vec::new());
    let mut paths = Vec::new();
    for pair in tokens.windows(2) {
        if let (Token::Import, Token::Text(path)) = (pair[0].token, pair[1].token) {
            paths.push(path.trim_matches('"').to_owned());
        }
    }
    paths
}

fn begins_item(token: Token<'_>) -> bool {
    matches!(
        token,
        Token::Import | Token::Dim | Token::Param | Token::Type | Token::Fn | Token::Let
    )
}

fn not_an_item(file: usize, first: &lexer::Spanned<'_>) -> Diagnostic {
    let span = Span {
        file,
        range: first.start..first.end,
    };
    Diagnostic::error("E0109", format!("expected an item, found {}", first.token))
        .at(&span, "not the beginning of an item")
        .note(hints::item_hint(first.token))
}

/// Words an error of the LALRPOP parser in an item of these tokens.
pub fn syntax_error(
    file: usize,
    tokens: &[lexer::Spanned<'_>],
    error: ParseError<usize, Token<'_>, &'static str>,
) -> Diagnostic {
    let (start, end, found, expected) = match error {
        ParseError::InvalidToken { location } => (location, location, String::new(), vec![]),
        ParseError::UnrecognizedEof { location, expected } => (
            location,
            location,
            "the end of the item".to_owned(),
            expected,
        ),
        ParseError::UnrecognizedToken {
            token: (start, token, end),
            expected,
        } => (start, end, token.to_string(), expected),
        ParseError::ExtraToken {
            token: (start, token, end),
        } => (start, end, token.to_string(), vec![]),
        ParseError::User { error } => (0, 0, error.to_owned(), vec![]),
    };
    let span = Span {
        file,
        range: start..end,
    };
    let names: Vec<&str> = expected.iter().map(|name| name.trim_matches('"')).collect();
    let hint = hints::hint(tokens, start, &names);
    let phrase = expected_phrase(names);
    let message = if phrase.is_empty() {
        format!("unexpected {found}")
    } else {
        format!("expected {phrase}, found {found}")
    };
    let diagnostic = Diagnostic::error("E0110", message).at(&span, "not expected here");
    match hint {
        Some(hint) => diagnostic.note(hint),
        None => diagnostic,
    }
}

/// Turns the parser's list of terminals into a phrase, gathering those that begin an expression.
fn expected_phrase(mut names: Vec<&str>) -> String {
    let mut phrases: Vec<String> = Vec::new();
    let has = |names: &[&str], name: &str| names.contains(&name);
    if has(&names, "float") {
        let begins = [
            "float", "integer", "text", "name", "(", "[", "-", "!", "true", "false", "{", "if",
            "match", "while", "for",
        ];
        names.retain(|name| !begins.contains(name));
        phrases.push("an expression".to_owned());
    } else if has(&names, "integer") && has(&names, "_") && has(&names, "true") {
        names.retain(|n| !["integer", "_", "true", "false", "name", "(", "-"].contains(n));
        phrases.push("a pattern".to_owned());
    }
    let operators = [
        "+", "-", "*", "/", "%", "@", "==", "!=", "<", "<=", ">", ">=", "&&", "||",
    ];
    if operators
        .iter()
        .filter(|operator| has(&names, operator))
        .count()
        >= 4
    {
        names.retain(|name| !operators.contains(name));
        phrases.push("an operator".to_owned());
    }
    phrases.extend(names.iter().map(|name| match *name {
        "name" => "a name".to_owned(),
        "integer" => "a number".to_owned(),
        "text" => "a file's name in quotes".to_owned(),
        other => format!("`{other}`"),
    }));
    match phrases.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
