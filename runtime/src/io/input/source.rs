//! What instances are read from, whatever their format.

use std::borrow::Cow;

use cohort_abi::manifest::{Adt, Constructor, Elem};

use super::message::Problem;

/// Values in a format of its own, one after another: a line of JSON, an object of another language.
///
/// [`Builder`](super::Builder) knows the type that comes next and asks for it; there is always one
/// value *at hand*. A source tells what it finds and checks nothing that the types say.
pub trait Source {
    /// Enters the list at hand; whether it is one. Then [`Source::next`] gives its first element.
    fn begin_list(&mut self) -> Result<bool, Problem>;

    /// Goes to the next element of the innermost list; whether there is one. If not, the list is left.
    fn next(&mut self, is_first: bool) -> Result<bool, Problem>;

    /// Leaves the innermost list; how many elements it has from the one at hand on.
    fn skip_rest(&mut self) -> Result<u64, Problem>;

    /// Takes a number or a truth value of the type, as bits; `None` where something else is at hand.
    fn scalar(&mut self, elem: Elem) -> Result<Option<u32>, Problem>;

    /// Takes a text; `None` where something else is at hand.
    fn text(&mut self) -> Result<Option<Cow<'_, str>>, Problem>;

    /// Takes a value of the data type, whose number in the manifest is given too: its constructor, as
    /// a tag. If that has fields, their list is entered, and [`Source::end_fields`] comes behind it.
    fn constructor(&mut self, number: usize, adt: &Adt) -> Result<Tag, Problem>;

    /// Goes to the next field of the innermost constructor whose fields come by name; which one it is.
    /// `None` is their end: the fields are left then.
    fn field(
        &mut self,
        _is_first: bool,
        _constructor: &Constructor,
    ) -> Result<Option<usize>, Problem> {
        Ok(None)
    }

    /// Leaves the fields of the innermost constructor, all of which were taken.
    fn end_fields(&mut self) -> Result<(), Problem>;

    /// Begins with a whole tensor, where one is at hand that need not be read element by element: the length of each
    /// axis. Nothing of it is copied before [`Source::elements`] asks for that.
    fn tensor(&mut self, _elem: Elem) -> Result<Option<&[u64]>, Problem> {
        Ok(None)
    }

    /// The elements of the tensor that was begun with, as compiled code reads them: in row-major order, little endian, a
    /// `bool` a byte of 0 or 1.
    fn elements(&mut self, _elem: Elem) -> Result<&[u8], Problem> {
        Ok(&[])
    }

    /// What is at hand, for a message.
    fn found(&mut self) -> String;
}

/// What a source found where a constructor should be.
pub enum Tag {
    /// The constructor of this tag.
    Of(usize),
    /// Its fields come in any order, and [`Source::field`] tells which.
    ByName(usize),
    /// Nothing that could be one, or one of another type; in words.
    Other(String),
    /// The constructor of this tag, but with fields where it has none, or without where it has some.
    Misused {
        /// The constructor's tag.
        tag: usize,
        /// What is there, in words.
        found: String,
    },
}
