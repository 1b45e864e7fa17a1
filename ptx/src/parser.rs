//! Statements of a text, as they stand: names are looked up by [`crate::decode`].

use crate::Error;
use crate::lexer::{Token, is_of_word, split};

/// A function that can be launched.
#[derive(Debug)]
pub struct Entry<'a> {
    pub name: &'a str,
    pub line: u32,
    pub parameters: Vec<Variable<'a>>,
    pub body: Vec<Statement<'a>>,
}

/// A parameter or a variable in shared memory.
#[derive(Clone, Debug)]
pub struct Variable<'a> {
    pub name: &'a str,
    pub alignment: u32,
    pub bytes: u32,
}

#[derive(Debug)]
pub struct Statement<'a> {
    pub line: u32,
    pub kind: Kind<'a>,
}

#[derive(Debug)]
pub enum Kind<'a> {
    /// `name:`
    Label(&'a str),
    /// `.reg .type prefix<count>`, or `.reg .type name`.
    Registers {
        of: &'a str,
        prefix: &'a str,
        count: Option<u32>,
    },
    /// `{` and `}`: what is declared between them is known there alone.
    Open,
    Close,
    Shared(Variable<'a>),
    /// `name: .branchtargets labels`
    Targets(&'a str, Vec<&'a str>),
    Instruction {
        /// The predicate, and whether it is negated.
        guard: Option<(&'a str, bool)>,
        opcode: &'a str,
        operands: Vec<Operand<'a>>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operand<'a> {
    /// A register, a variable or a label.
    Name(&'a str),
    /// The bits of a number.
    Number(u64),
    /// `{a, b}`
    Vector(Vec<Operand<'a>>),
    /// `[base + offset]`
    Address(&'a str, i64),
}

/// What a text declares.
#[derive(Debug, Default)]
pub struct Declared<'a> {
    /// The functions.
    pub entries: Vec<Entry<'a>>,
    /// Shared memory that a launch gives: all of these are the same.
    pub dynamic: Vec<Variable<'a>>,
}

/// The functions and variables of a module.
pub fn parse(text: &str) -> Result<Declared<'_>, Error> {
    let tokens = split(text)?;
    let mut parser = Parser { tokens, at: 0 };
    let mut declared = Declared::default();
    while let Some(token) = parser.peek() {
        match token.text {
            ".version" | ".target" | ".address_size" => parser.skip_line(),
            ".visible" | ".weak" => parser.at += 1,
            ".entry" => declared.entries.push(parser.entry()?),
            ".extern" => declared.dynamic.push(parser.dynamic()?),
            other => return Err(parser.unknown(&format!("`{other}` at the level of a module"))),
        }
    }
    Ok(declared)
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn line(&self) -> u32 {
        let last = self.tokens.get(self.at).or(self.tokens.last());
        last.map_or(1, |token| token.line)
    }

    fn unknown(&self, what: &str) -> Error {
        Error::new(self.line(), format!("{what} is not interpreted"))
    }

    fn skip_line(&mut self) {
        let line = self.line();
        while self.peek().is_some_and(|token| token.line == line) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Result<&'a str, Error> {
        let token = self.peek();
        let end = || Error::new(self.line(), "the text ends too early");
        let text = token.ok_or_else(end)?.text;
        self.at += 1;
        Ok(text)
    }

    fn is_next(&mut self, text: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.text == text);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, text: &str) -> Result<(), Error> {
        match self.is_next(text) {
            true => Ok(()),
            false => {
                let found = self.peek().map_or("the end", |token| token.text);
                let message = format!("`{text}` is expected, not `{found}`");
                Err(Error::new(self.line(), message))
            }
        }
    }

    fn count(&mut self) -> Result<u32, Error> {
        let line = self.line();
        let text = self.next()?;
        let parsed = text.parse();
        parsed.map_err(|_| Error::new(line, format!("a count is expected, not `{text}`")))
    }

    /// `.extern .shared .align 16 .b8 name[];`
    fn dynamic(&mut self) -> Result<Variable<'a>, Error> {
        self.expect(".extern")?;
        self.expect(".shared")?;
        let variable = self.variable()?;
        if variable.bytes > 0 {
            return Err(self.unknown("an external variable whose size is known"));
        }
        self.expect(";")?;
        Ok(variable)
    }

    fn entry(&mut self) -> Result<Entry<'a>, Error> {
        let line = self.line();
        self.expect(".entry")?;
        let name = self.next()?;
        let mut parameters = Vec::new();
        if self.is_next("(") {
            while !self.is_next(")") {
                self.expect(".param")?;
                parameters.push(self.variable()?);
                self.is_next(",");
            }
        }
        while !self.is_next("{") {
            // What a function asks of the card, which the launch knows.
            match self.next()? {
                ".maxntid" | ".minnctapersm" | ".reqntid" | ".maxnreg" => {}
                text if text == "," || text.bytes().all(|byte| byte.is_ascii_digit()) => {}
                other => return Err(self.unknown(&format!("`{other}` of a function"))),
            }
        }
        let (mut body, mut depth) = (Vec::new(), 0_usize);
        loop {
            let line = self.line();
            if depth == 0 && self.is_next("}") {
                break;
            }
            let Some(kind) = self.statement()? else {
                continue;
            };
            match kind {
                Kind::Open => depth += 1,
                Kind::Close => depth -= 1,
                Kind::Label(name) | Kind::Targets(name, _) if depth > 0 => {
                    let message = format!("the label `{name}` within `{{ }}` is not interpreted");
                    return Err(Error::new(line, message));
                }
                Kind::Shared(variable) if depth > 0 => {
                    let name = variable.name;
                    let message =
                        format!("the variable `{name}` within `{{ }}` is not interpreted");
                    return Err(Error::new(line, message));
                }
                _ => {}
            }
            body.push(Statement { line, kind });
        }
        Ok(Entry {
            name,
            line,
            parameters,
            body,
        })
    }

    /// `.align 16 .b8 name[7680]`, `.u64 .ptr .global .align 1 name`.
    fn variable(&mut self) -> Result<Variable<'a>, Error> {
        let (mut size, mut alignment) = (None, None);
        loop {
            match self.next()? {
                ".align" if size.is_some() => {
                    // Of what a pointer points to.
                    self.count()?;
                }
                ".align" => alignment = Some(self.count()?),
                ".ptr" | ".global" | ".shared" => {}
                ".b8" | ".u8" | ".s8" => size = Some(1_u32),
                ".b16" | ".u16" | ".s16" => size = Some(2),
                ".b32" | ".u32" | ".s32" | ".f32" => size = Some(4),
                ".b64" | ".u64" | ".s64" | ".f64" => size = Some(8),
                name => {
                    let Some(size) = size else {
                        return Err(self.unknown(&format!("a variable of `{name}`")));
                    };
                    let mut count = 1;
                    if self.is_next("[") {
                        let is_open = self.peek().is_some_and(|token| token.text == "]");
                        count = if is_open { 0 } else { self.count()? };
                        self.expect("]")?;
                    }
                    let bytes = size.checked_mul(count);
                    return Ok(Variable {
                        name,
                        alignment: alignment.unwrap_or(size).max(1),
                        bytes: bytes.ok_or_else(|| self.unknown("a variable of that size"))?,
                    });
                }
            }
        }
    }

    /// The next statement of a body; nothing where it says nothing about what is computed.
    fn statement(&mut self) -> Result<Option<Kind<'a>>, Error> {
        let guard = match self.is_next("@") {
            true => {
                let is_negated = self.is_next("!");
                Some((self.next()?, is_negated))
            }
            false => None,
        };
        let word = self.next()?;
        let kind = match word {
            "{" if guard.is_none() => return Ok(Some(Kind::Open)),
            "}" if guard.is_none() => return Ok(Some(Kind::Close)),
            ".pragma" => {
                self.next()?;
                self.expect(";")?;
                return Ok(None);
            }
            ".reg" => {
                let of = self.next()?;
                let prefix = self.next()?;
                let mut count = None;
                if self.is_next("<") {
                    count = Some(self.count()?);
                    self.expect(">")?;
                }
                Kind::Registers { of, prefix, count }
            }
            ".shared" => Kind::Shared(self.variable()?),
            _ if word.starts_with('.') || word == "{" => {
                self.at -= 1;
                return Err(self.unknown(&format!("`{word}` in a function")));
            }
            name if self.is_next(":") => {
                if !self.is_next(".branchtargets") {
                    return Ok(Some(Kind::Label(name)));
                }
                let mut labels = vec![self.next()?];
                while self.is_next(",") {
                    labels.push(self.next()?);
                }
                Kind::Targets(name, labels)
            }
            opcode => {
                let mut operands = Vec::new();
                while self.peek().is_some_and(|token| token.text != ";") {
                    operands.push(self.operand()?);
                    if !self.is_next(",") {
                        break;
                    }
                }
                Kind::Instruction {
                    guard,
                    opcode,
                    operands,
                }
            }
        };
        self.expect(";")?;
        Ok(Some(kind))
    }

    fn operand(&mut self) -> Result<Operand<'a>, Error> {
        let line = self.line();
        if self.is_next("{") {
            let mut all = vec![self.scalar()?];
            while self.is_next(",") {
                all.push(self.scalar()?);
            }
            self.expect("}")?;
            return Ok(Operand::Vector(all));
        }
        if self.is_next("[") {
            let base = self.next()?;
            let mut offset = 0;
            if self.is_next("+") {
                let is_negative = self.is_next("-");
                offset = number(self.next()?, line)? as i64;
                offset = if is_negative {
                    offset.wrapping_neg()
                } else {
                    offset
                };
            }
            self.expect("]")?;
            return Ok(Operand::Address(base, offset));
        }
        self.scalar()
    }

    /// An operand that is neither a vector nor an address.
    fn scalar(&mut self) -> Result<Operand<'a>, Error> {
        let line = self.line();
        if self.is_next("-") {
            return Ok(Operand::Number(number(self.next()?, line)?.wrapping_neg()));
        }
        let word = self.next()?;
        match word.as_bytes().first() {
            Some(b'0'..=b'9') => Ok(Operand::Number(number(word, line)?)),
            Some(first) if is_of_word(*first) => Ok(Operand::Name(word)),
            _ => {
                let message = format!("an operand is expected, not `{word}`");
                Err(Error::new(line, message))
            }
        }
    }
}

/// `12`, `0x1f`, `017` of base 8 and `0b101`, any of which may be said to be unsigned (`0x1fU`), and the bits of floats:
/// `0f3F800000`, `0d3FF0000000000000`.
fn number(text: &str, line: u32) -> Result<u64, Error> {
    let of_floats = ["0f", "0F", "0d", "0D"];
    let bits = of_floats
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix));
    let integer = text.strip_suffix('U').unwrap_or(text);
    let of_base = |prefixes: [&str; 2], base| {
        let digits = prefixes
            .iter()
            .find_map(|prefix| integer.strip_prefix(prefix));
        digits.map(|digits| (digits, base))
    };
    let (digits, base) = (bits.map(|digits| (digits, 16)))
        .or_else(|| of_base(["0x", "0X"], 16))
        .or_else(|| of_base(["0b", "0B"], 2))
        .or_else(|| of_base(["0", "0"], 8).filter(|(digits, _)| !digits.is_empty()))
        .unwrap_or((integer, 10));
    u64::from_str_radix(digits, base)
        .map_err(|_| Error::new(line, format!("`{text}` is not a number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    #[test]
    fn numbers_have_bases() {
        let texts = [
            "0",
            "0U",
            "12",
            "12U",
            "0x1f",
            "0X1FU",
            "017",
            "0b101",
            "0f3F800000",
        ];
        let numbers = texts.map(|text| number(text, 1).expect(text));
        assert_eq!(numbers, [0, 0, 12, 12, 31, 31, 15, 5, 0x3F80_0000]);
        for text in ["", "U", "08", "0b2", "0x", "1f", "12UU"] {
            assert!(number(text, 1).is_err(), "{text}");
        }
    }

    #[test]
    fn a_function_is_read() {
        let text = format!(
            "{HEAD}.visible .entry f(\n.param .u64 f_0,\n.param .u64 .ptr .global .align 1 f_1\n)\n\
             .maxntid 128, 1, 1\n{{\n.reg .b32 %r<3>;\n.shared .align 16 .b8 s[96];\n$L:\n\
             @!%p1 ld.shared.v2.b32 {{%r1, %r2}}, [s+-8];\n$T: .branchtargets $L, $L;\nret;\n}}"
        );
        let declared = parse(&text).unwrap();
        let [entry] = &declared.entries[..] else {
            panic!()
        };
        assert_eq!((entry.name, entry.parameters.len()), ("f", 2));
        assert_eq!(entry.parameters[1].alignment, 8);
        let Kind::Instruction {
            guard, operands, ..
        } = &entry.body[3].kind
        else {
            panic!("{:?}", entry.body);
        };
        assert_eq!(*guard, Some(("%p1", true)));
        assert_eq!(operands[1], Operand::Address("s", -8));
        assert_eq!(entry.body[3].line, 13);
    }

    #[test]
    fn numbers_are_read() {
        for (text, bits) in [
            ("12", 12),
            ("12U", 12),
            ("0x7771", 0x7771),
            ("0x7771U", 0x7771),
            ("0f3F800000", 0x3f80_0000),
            ("0d3FF0000000000000", 0x3ff0_0000_0000_0000),
        ] {
            assert_eq!(number(text, 1).ok(), Some(bits), "{text}");
        }
        for text in ["U", "0xU", "1UU", "0x1u", "0f3F800000U"] {
            assert!(number(text, 1).is_err(), "{text}");
        }
    }

    #[test]
    fn shared_memory_that_a_launch_gives_is_read() {
        let declared = parse(".extern .shared .align 16 .b8 s[];").unwrap();
        assert!(declared.entries.is_empty());
        let [variable] = &declared.dynamic[..] else {
            panic!()
        };
        let Variable {
            name,
            alignment,
            bytes,
        } = variable;
        assert_eq!((*name, *alignment, *bytes), ("s", 16, 0));
        let error = parse(".extern .shared .align 16 .b8 s[8];").unwrap_err();
        assert!(error.to_string().contains("whose size is known"), "{error}");
        let error = parse(".extern .func f;").unwrap_err().to_string();
        assert!(error.contains("`.shared` is expected"), "{error}");
    }

    #[test]
    fn what_is_no_ptx_is_told_with_its_line() {
        for (body, message) in [
            ("ret", "line 5 of the PTX: an operand is expected, not `}`"),
            (
                ".local .b8 a[4];",
                "line 4 of the PTX: `.local` in a function",
            ),
            ("@%p1 { ret; }", "line 4 of the PTX: `{` in a function"),
            (
                "{ $L: ret; }",
                "line 4 of the PTX: the label `$L` within `{ }` is not interpreted",
            ),
            (
                "{ .shared .b8 s[4]; }",
                "line 4 of the PTX: the variable `s` within `{ }` is not interpreted",
            ),
            ("{ ret; ", "the text ends too early"),
            (
                "mov.b32 %r1, 0fzz;",
                "line 4 of the PTX: `0fzz` is not a number",
            ),
            ("ret; ", "the text ends too early"),
        ] {
            let end = match message.ends_with("early") && !body.starts_with('{') {
                true => "",
                false => "\n}",
            };
            let error = parse(&format!("{HEAD}.entry f() {{ {body}{end}")).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
        let error = parse(".func f;").unwrap_err().to_string();
        assert!(
            error.contains("`.func` at the level of a module is not interpreted"),
            "{error}"
        );
    }
}
