//! Copies of values.

use super::{ValueForm, Visit};

/// A value with all that belongs to it, in slots behind each other.
#[derive(Debug, Default)]
pub struct Image {
    /// The value's own slots first. Where another slot's address would be there is its place.
    pub slots: Vec<u64>,
    /// The slots with places of others, in order.
    pub addresses: Vec<usize>,
    /// The slots with numbers that choose rows, in order.
    pub rows: Vec<usize>,
    /// The slots with handles, in order.
    pub handles: Vec<usize>,
}

impl Image {
    /// Copies values; `None` if that takes more than `most` slots.
    ///
    /// # Safety
    ///
    /// The slots are those of values of the plan's types.
    pub unsafe fn of(plan: &ValueForm, slots: *const u64, most: usize) -> Option<Image> {
        let mut image = Image::default();
        image.slots.resize(plan.slots(), 0);
        // SAFETY: the caller's promise.
        let is_whole = unsafe { plan.walk(slots, most, &mut image) };
        is_whole.then_some(image)
    }

    /// Makes places the addresses that they have in this image, which must not be changed from then on but for
    /// numbers.
    pub fn make_addresses(&mut self) {
        let base = self.slots.as_ptr();
        for place in &self.addresses {
            let target = self.slots[*place] as usize;
            self.slots[*place] = base.wrapping_add(target) as u64;
        }
    }

    fn put(&mut self, place: usize, value: u64) {
        if self.slots.len() <= place {
            self.slots.resize(place + 1, 0);
        }
        self.slots[place] = value;
    }
}

impl Visit for Image {
    fn word(&mut self, place: usize, bits: u64) {
        self.put(place, bits);
    }

    fn row(&mut self, place: usize, number: u64) {
        self.put(place, number);
        self.rows.push(place);
    }

    fn tensor(&mut self, place: usize, _: usize, handle: u64) {
        self.put(place, handle);
        self.handles.push(place);
    }

    /// Texts are not copied: they stay where they are.
    fn text(&mut self, place: usize, address: u64) {
        self.put(place, address);
    }

    fn block(&mut self, place: usize, block: usize, number: u64) {
        self.put(place, block as u64);
        self.addresses.push(place);
        self.put(block, number);
    }
}
