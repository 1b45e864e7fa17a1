//! Cuts a file's tokens into one chunk an item and matches their brackets.
//!
//! `import`, `dim`, `param`, `type` and `fn` can stand only at the beginning of an item, so they end whatever
//! came before even when one of its brackets was never closed. `let` begins an item only outside
//! all brackets. The depth of brackets is bounded here, before anything recurses.

use super::lexer::{Spanned, Token};
use crate::diagnostic::Diagnostic;
use crate::program::Span;

/// Brackets may nest this deep.
pub const MAX_BRACKETS: usize = 200;

/// The tokens of one item.
pub struct Chunk<'t, 's> {
    pub tokens: &'t [Spanned<'s>],
    /// Brackets do not match; this was reported, and parsing would only repeat it.
    pub broken: bool,
}

/// Cuts tokens into items; mistakes with brackets are reported once each.
pub fn split<'t, 's>(
    file: usize,
    tokens: &'t [Spanned<'s>],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Chunk<'t, 's>> {
    let mut chunks = Vec::new();
    let mut rest = tokens;
    while !rest.is_empty() {
        let length = item_length(rest);
        let (item, after) = rest.split_at(length);
        let broken = !brackets_match(file, item, diagnostics);
        chunks.push(Chunk {
            tokens: item,
            broken,
        });
        rest = after;
    }
    chunks
}

/// How many tokens belong to the item that begins the tokens; at least one.
fn item_length(tokens: &[Spanned<'_>]) -> usize {
    let mut depth = 0usize;
    for (index, spanned) in tokens.iter().enumerate() {
        match spanned.token {
            // The type of a function, `fn(f32) -> f32`, is a mistake within an item.
            Token::Fn if is_opened(tokens, index + 1) => {}
            Token::Import | Token::Dim | Token::Param | Token::Type | Token::Fn if index > 0 => {
                return index;
            }
            Token::Let if index > 0 && depth == 0 => return index,
            Token::OpenParen | Token::OpenBracket | Token::OpenBrace => depth += 1,
            Token::CloseParen | Token::CloseBracket | Token::CloseBrace => {
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
    tokens.len()
}

fn is_opened(tokens: &[Spanned<'_>], at: usize) -> bool {
    tokens
        .get(at)
        .is_some_and(|next| next.token == Token::OpenParen)
}

fn closer(open: Token<'_>) -> Option<Token<'static>> {
    match open {
        Token::OpenParen => Some(Token::CloseParen),
        Token::OpenBracket => Some(Token::CloseBracket),
        Token::OpenBrace => Some(Token::CloseBrace),
        _ => None,
    }
}

fn brackets_match(file: usize, item: &[Spanned<'_>], diagnostics: &mut Vec<Diagnostic>) -> bool {
    let span = |spanned: &Spanned<'_>| Span {
        file,
        range: spanned.start..spanned.end,
    };
    let mut open: Vec<(Spanned<'_>, Token<'static>)> = Vec::new();
    for spanned in item {
        if let Some(close) = closer(spanned.token) {
            if open.len() == MAX_BRACKETS {
                diagnostics.push(
                    Diagnostic::error("E0105", "brackets nest too deeply")
                        .at(&span(spanned), format!("more than {MAX_BRACKETS} levels"))
                        .note("give parts of it a name with `let`, or move them to functions"),
                );
                return false;
            }
            open.push((*spanned, close));
            continue;
        }
        if !matches!(
            spanned.token,
            Token::CloseParen | Token::CloseBracket | Token::CloseBrace
        ) {
            continue;
        }
        match open.pop() {
            Some((_, close)) if close == spanned.token => {}
            Some((opener, close)) => {
                diagnostics.push(
                    Diagnostic::error("E0108", format!("{} is never closed", opener.token))
                        .at(&span(&opener), format!("expected {close} to close this"))
                        .see(&span(spanned), format!("found {} instead", spanned.token)),
                );
                return false;
            }
            None => {
                diagnostics.push(
                    Diagnostic::error("E0108", format!("{} closes nothing", spanned.token))
                        .at(&span(spanned), "no bracket is open here")
                        .note("remove it, or open it earlier"),
                );
                return false;
            }
        }
    }
    let Some((opener, close)) = open.pop() else {
        return true;
    };
    let mut diagnostic = Diagnostic::error("E0108", format!("{} is never closed", opener.token))
        .at(&span(&opener), format!("expected {close} to close this"));
    if let Some(last) = item.last() {
        let end = Span {
            file,
            range: last.end..last.end,
        };
        diagnostic = diagnostic.see(&end, "the item ends here");
    }
    diagnostics.push(diagnostic);
    false
}
