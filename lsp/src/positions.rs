//! Places in texts: bytes here, lines and UTF-16 units in the protocol.

use std::ops::Range as Bytes;

use lsp_types::{Position, Range};

/// The byte of a position; one behind a line's end is the end, one behind the last line that of the text.
pub fn offset(text: &str, position: Position) -> usize {
    let mut start = 0;
    for _ in 0..position.line {
        match text[start..].find('\n') {
            Some(length) => start += length + 1,
            None => return text.len(),
        }
    }
    let line = text[start..].split('\n').next().unwrap_or_default();
    let mut units = 0;
    for (place, character) in line.char_indices() {
        if units >= position.character as usize {
            return start + place;
        }
        units += character.len_utf16();
    }
    start + line.trim_end_matches('\r').len()
}

/// The position of a byte.
pub fn position(text: &str, offset: usize) -> Position {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line = before.rsplit('\n').next().unwrap_or_default();
    Position {
        line: before.bytes().filter(|byte| *byte == b'\n').count() as u32,
        character: line.encode_utf16().count() as u32,
    }
}

pub fn range(text: &str, bytes: &Bytes<usize>) -> Range {
    Range {
        start: position(text, bytes.start),
        end: position(text, bytes.end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_utf_16() {
        let text = "// é😀x\r\nfn f";
        for (byte, character) in [(3, 3), (5, 4), (9, 6)] {
            let found = position(text, byte);
            assert_eq!((found.line, found.character), (0, character));
            assert_eq!(offset(text, found), byte);
        }
        assert_eq!(position(text, text.len()), Position::new(1, 4));
        assert_eq!(offset(text, Position::new(1, 99)), text.len());
        assert_eq!(offset(text, Position::new(7, 0)), text.len());
        assert_eq!(position(text, 4), Position::new(0, 3), "within a character");
    }
}
