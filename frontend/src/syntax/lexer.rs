//! Tokens of the language.
//!
//! A byte that begins no token and a number that cannot be one become diagnostics here, and lexing
//! goes on, so that the parser's own findings are reported in the same run.

use std::fmt;

use logos::Logos;

use super::hints;
use crate::diagnostic::Diagnostic;
use crate::program::Span;

#[derive(Logos, Clone, Copy, Debug, PartialEq)]
#[logos(skip r"[ \t\r\n\f\u{feff}]+")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
pub enum Token<'s> {
    #[token("import")]
    Import,
    #[token("dim")]
    Dim,
    #[token("param")]
    Param,
    #[token("type")]
    Type,
    #[token("fn")]
    Fn,
    #[token("let")]
    Let,
    #[token("match")]
    Match,
    #[token("if")]
    If,
    #[token("else")]
    Else,
    #[token("while")]
    While,
    #[token("for")]
    For,
    #[token("in")]
    In,
    #[token("with")]
    With,
    #[token("phase")]
    Phase,
    #[token("true")]
    True,
    #[token("false")]
    False,

    #[regex("[A-Za-z_][A-Za-z0-9_]*")]
    Name(&'s str),
    /// With its quotes.
    #[regex("\"[^\"\n]*\"")]
    Text(&'s str),
    #[token("_", priority = 10)]
    Underscore,
    #[regex("[0-9]+", priority = 5)]
    Int(&'s str),
    #[regex(r"[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?", priority = 6)]
    #[regex(r"[0-9]+[eE][+-]?[0-9]+", priority = 6)]
    Float(&'s str),
    /// Digits that run into letters, `12abc`; never reaches the parser.
    #[regex("[0-9]+[A-Za-z_][A-Za-z0-9_]*", priority = 4)]
    BadNumber(&'s str),

    #[token("(")]
    OpenParen,
    #[token(")")]
    CloseParen,
    #[token("[")]
    OpenBracket,
    #[token("]")]
    CloseBracket,
    #[token("{")]
    OpenBrace,
    #[token("}")]
    CloseBrace,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token("=")]
    Assign,
    #[token("->")]
    Arrow,
    #[token("=>")]
    FatArrow,
    #[token("|")]
    Bar,
    #[token("..")]
    DotDot,
    #[token(".")]
    Dot,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("@")]
    At,
    #[token("!")]
    Bang,
    #[token("==")]
    EqualEqual,
    #[token("!=")]
    NotEqual,
    #[token("<")]
    Less,
    #[token("<=")]
    LessEqual,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterEqual,
    #[token("&&")]
    AndAnd,
    #[token("||")]
    OrOr,
}

/// A token and the bytes it covers.
#[derive(Clone, Copy, Debug)]
pub struct Spanned<'s> {
    pub token: Token<'s>,
    pub start: usize,
    pub end: usize,
}

impl Token<'_> {
    /// The text of a token that always looks the same.
    fn fixed(self) -> &'static str {
        match self {
            Token::Import => "import",
            Token::Dim => "dim",
            Token::Param => "param",
            Token::Type => "type",
            Token::Fn => "fn",
            Token::Let => "let",
            Token::Match => "match",
            Token::If => "if",
            Token::Else => "else",
            Token::While => "while",
            Token::For => "for",
            Token::In => "in",
            Token::With => "with",
            Token::Phase => "phase",
            Token::True => "true",
            Token::False => "false",
            Token::Underscore => "_",
            Token::OpenParen => "(",
            Token::CloseParen => ")",
            Token::OpenBracket => "[",
            Token::CloseBracket => "]",
            Token::OpenBrace => "{",
            Token::CloseBrace => "}",
            Token::Comma => ",",
            Token::Semicolon => ";",
            Token::Colon => ":",
            Token::Assign => "=",
            Token::Arrow => "->",
            Token::FatArrow => "=>",
            Token::Bar => "|",
            Token::DotDot => "..",
            Token::Dot => ".",
            Token::Plus => "+",
            Token::Minus => "-",
            Token::Star => "*",
            Token::Slash => "/",
            Token::Percent => "%",
            Token::At => "@",
            Token::Bang => "!",
            Token::EqualEqual => "==",
            Token::NotEqual => "!=",
            Token::Less => "<",
            Token::LessEqual => "<=",
            Token::Greater => ">",
            Token::GreaterEqual => ">=",
            Token::AndAnd => "&&",
            Token::OrOr => "||",
            Token::Name(_)
            | Token::Text(_)
            | Token::Int(_)
            | Token::Float(_)
            | Token::BadNumber(_) => "",
        }
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(text)
            | Token::Text(text)
            | Token::Int(text)
            | Token::Float(text)
            | Token::BadNumber(text) => write!(f, "`{text}`"),
            other => write!(f, "`{}`", other.fixed()),
        }
    }
}

/// All tokens of a file; what is not a token is reported and left out.
pub fn lex<'s>(file: usize, text: &'s str, diagnostics: &mut Vec<Diagnostic>) -> Vec<Spanned<'s>> {
    let mut tokens = Vec::new();
    for (token, range) in Token::lexer(text).spanned() {
        let span = Span {
            file,
            range: range.clone(),
        };
        let spanned = |token| Spanned {
            token,
            start: range.start,
            end: range.end,
        };
        match token {
            Ok(Token::BadNumber(digits)) => {
                diagnostics.push(
                    Diagnostic::error(
                        "E0102",
                        format!("`{digits}` is neither a number nor a name"),
                    )
                    .at(&span, "a name may not begin with a digit")
                    .note("write a space or an operator between the number and the name"),
                );
                // The parser reads a number here, so that this one mistake is reported once.
                tokens.push(spanned(Token::Int("0")));
            }
            Ok(token) => tokens.push(spanned(token)),
            Err(()) => unknown_character(text, &span, diagnostics),
        }
    }
    // `dim` is the one keyword that is also a built-in's name, `dim(x, 0)`, and an argument's in other
    // languages, `sum(x, dim = 0)`.
    for index in 1..tokens.len() {
        if let [
            Spanned {
                token: dim @ Token::Dim,
                ..
            },
            Spanned {
                token: Token::OpenParen | Token::Assign,
                ..
            },
        ] = &mut tokens[index - 1..=index]
        {
            *dim = Token::Name("dim");
        }
    }
    tokens
}

fn unknown_character(text: &str, span: &Span, diagnostics: &mut Vec<Diagnostic>) {
    let slice = text.get(span.range.clone()).unwrap_or("");
    // A run of foreign characters is one mistake, not one a character.
    if let Some(last) = diagnostics.last_mut()
        && last.code == "E0101"
        && let Some(label) = last.labels.first_mut()
        && label.span.range.end == span.range.start
    {
        label.span.range.end = span.range.end;
        return;
    }
    diagnostics.push(
        Diagnostic::error(
            "E0101",
            format!("`{}` means nothing here", slice.escape_debug()),
        )
        .at(span, "not part of the language")
        .note(hints::character_hint(slice)),
    );
}
