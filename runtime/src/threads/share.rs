//! Products that threads share: a launch of few rows is one thread's, but each of its weights may be read by all.
//!
//! The rows of a launch are divided between threads where there are enough. A single instance has one row in each launch of
//! a chain, and a product of one row reads its weight once and does little with it: what limits it is how fast one core
//! can read. So the kernel offers such a product ([`cohort_abi::symbols::SHARE_PRODUCT`]), and threads of the pool that come
//! in time compute some of its panels. A thread begins with the panels of its number, which are the same in each launch of
//! a kernel: as far as its second cache holds them, they are there already, and two cores hold together what one cannot.
//!
//! Only threads that are awake help: to wake one takes longer than many a product. They look for work for some time before they
//! sleep, and are woken for what is going to take long ([`Workers::expect`](crate::execute::workers::Workers::expect)).
//!
//! Each element is computed by one thread, in the order of its terms, so no bit depends on who did.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use cohort_abi::{PANEL_COLUMNS, ProductFn, VECTOR_COLUMNS};

use crate::threads::thread_pool::ThreadPool;

/// Multiply-adds that are worth a thread: about a microsecond of one row, and less of many.
const LEAST_WORK: i64 = 1 << 15;
/// The most parts of a product.
const MOST_PARTS: usize = u64::BITS as usize;
/// Vectors of a panel, and bytes of a vector.
const PANEL_VECTORS: i64 = PANEL_COLUMNS / VECTOR_COLUMNS;
const VECTOR_BYTES: i64 = VECTOR_COLUMNS * size_of::<f32>() as i64;

thread_local! {
    /// Whose threads help this one.
    static HELPERS: Cell<*const ThreadPool> = const { Cell::new(ptr::null()) };
}

/// Runs a part of a launch, of which no other one runs meanwhile, with the pool's threads to help with its products.
pub fn with_helpers(pool: &ThreadPool, run: impl FnOnce()) {
    /// Nobody helps any more.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            HELPERS.set(ptr::null());
        }
    }
    HELPERS.set(pool);
    let _end = End;
    run();
}

/// What a product is called with; see [`ProductFn`].
struct Product {
    function: ProductFn,
    a: *const *const c_void,
    a_row: i64,
    b: *const c_void,
    panel: i64,
    k: i64,
    c: *mut c_void,
    c_row: i64,
    s: *const c_void,
    s_row: i64,
    s_vector: i64,
    rows: i64,
    vectors: i64,
}

// SAFETY: threads compute different columns, of which each writes its own and reads what these begin with; everything else is
// only read.
unsafe impl Sync for Product {}

impl Product {
    /// Computes some of the panels, the last of which may be half a one.
    ///
    /// # Safety
    ///
    /// The product may be computed, and it has these panels.
    unsafe fn compute(&self, first: i64, end: i64) {
        let vector = first * PANEL_VECTORS;
        // SAFETY: the caller's promise; what is skipped is of the panels before.
        unsafe {
            (self.function)(
                self.a,
                self.a_row,
                self.b.byte_offset((first * self.panel) as isize),
                self.panel,
                self.k,
                self.c.byte_offset((vector * VECTOR_BYTES) as isize),
                self.c_row,
                self.s.byte_offset((vector * self.s_vector) as isize),
                self.s_row,
                self.s_vector,
                self.rows,
                self.vectors.min(end * PANEL_VECTORS) - vector,
            );
        }
    }
}

/// See [`cohort_abi::symbols::SHARE_PRODUCT`].
///
/// # Safety
///
/// `function` may be called with all that follows it.
pub unsafe extern "C" fn cohort_share_product(
    function: ProductFn,
    a: *const *const c_void,
    a_row: i64,
    b: *const c_void,
    panel: i64,
    k: i64,
    c: *mut c_void,
    c_row: i64,
    s: *const c_void,
    s_row: i64,
    s_vector: i64,
    rows: i64,
    vectors: i64,
) {
    let product = Product {
        function,
        a,
        a_row,
        b,
        panel,
        k,
        c,
        c_row,
        s,
        s_row,
        s_vector,
        rows,
        vectors,
    };
    let panels = (vectors + PANEL_VECTORS - 1) / PANEL_VECTORS;
    // SAFETY: a pool stays as long as it is set.
    let Some(pool) = (unsafe { HELPERS.get().as_ref() }) else {
        // SAFETY: the caller's promise.
        return unsafe { product.compute(0, panels) };
    };
    let worth = rows * k * vectors * VECTOR_COLUMNS / LEAST_WORK;
    let threads = pool.threads().min(MOST_PARTS) as i64;
    let parts = worth.min(panels).min(threads);
    if parts < 2 {
        // SAFETY: the caller's promise.
        return unsafe { product.compute(0, panels) };
    }
    let taken = AtomicU64::new(0);
    let product = &product;
    pool.share_with_awake(parts as usize - 1, &|thread| {
        for next in 0..parts {
            let part = (thread as i64 + next) % parts;
            if taken.fetch_or(1 << part, Ordering::Relaxed) & (1 << part) == 0 {
                // SAFETY: the caller's promise, and the parts cover all panels.
                unsafe { product.compute(panels * part / parts, panels * (part + 1) / parts) };
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product in plain loops, in the order of its terms.
    unsafe extern "C" fn multiply(
        a: *const *const c_void,
        a_row: i64,
        b: *const c_void,
        panel: i64,
        k: i64,
        c: *mut c_void,
        c_row: i64,
        s: *const c_void,
        s_row: i64,
        s_vector: i64,
        rows: i64,
        vectors: i64,
    ) {
        let at = |base: *const c_void, bytes: i64, element: i64| {
            // SAFETY: the test gives as much memory as it says.
            unsafe {
                *base
                    .byte_offset(bytes as isize)
                    .cast::<f32>()
                    .offset(element as isize)
            }
        };
        for row in 0..rows {
            // SAFETY: as above.
            let terms = unsafe { *a.byte_offset((row * a_row) as isize) };
            for column in 0..vectors * VECTOR_COLUMNS {
                let (vector, lane) = (column / VECTOR_COLUMNS, column % VECTOR_COLUMNS);
                let (of_panel, in_panel) = (column / PANEL_COLUMNS, column % PANEL_COLUMNS);
                let start = at(s, row * s_row + vector * s_vector, lane);
                let sum = (0..k).fold(start, |sum, term| {
                    let weight = at(b, of_panel * panel, term * PANEL_COLUMNS + in_panel);
                    at(terms, 0, term).mul_add(weight, sum)
                });
                // SAFETY: as above.
                unsafe {
                    let to = c.byte_offset((row * c_row) as isize).cast::<f32>();
                    *to.offset(column as isize) = sum;
                }
            }
        }
    }

    /// A product that goes on in its own memory, so that a panel that is computed twice shows.
    fn product(threads: usize, rows: i64, k: i64, vectors: i64) -> Vec<f32> {
        let numbers = |count: i64, seed: u64| -> Vec<f32> {
            let mut rng = fastrand::Rng::with_seed(seed);
            (0..count).map(|_| rng.f32() - 0.5).collect()
        };
        let columns = vectors * VECTOR_COLUMNS;
        let left = numbers(rows * k, 1);
        let panels = (vectors + PANEL_VECTORS - 1) / PANEL_VECTORS;
        let right = numbers(panels * k * PANEL_COLUMNS, 2);
        let mut result = numbers(rows * columns, 3);
        let table: Vec<*const c_void> = left
            .chunks(k as usize)
            .map(|row| row.as_ptr().cast())
            .collect();
        let bytes = size_of::<f32>() as i64;
        let pool = ThreadPool::new(threads - 1).unwrap();
        let c = result.as_mut_ptr().cast::<c_void>();
        // SAFETY: all of it is as long as it is said to be, and outlives the call.
        with_helpers(&pool, || unsafe {
            cohort_share_product(
                multiply,
                table.as_ptr(),
                8,
                right.as_ptr().cast(),
                k * PANEL_COLUMNS * bytes,
                k,
                c,
                columns * bytes,
                c,
                columns * bytes,
                VECTOR_BYTES,
                rows,
                vectors,
            );
        });
        result
    }

    #[test]
    fn threads_compute_each_panel_once_and_to_the_bit() {
        for (rows, k, vectors) in [
            (1, 1024, 1),
            (1, 1024, 2),
            (1, 1024, 17),
            (3, 257, 7),
            (2, 28, 3),
            (0, 5, 4),
        ] {
            let alone = product(1, rows, k, vectors);
            for threads in [2, 3, 5] {
                let shared = product(threads, rows, k, vectors);
                assert!(
                    alone == shared,
                    "{rows} x {k} x {vectors}, {threads} threads"
                );
            }
        }
    }
}
