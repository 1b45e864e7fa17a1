//! Ragged tensors of several dims, with and without padding, compiled and compared with plain Rust.

use crate::ragged::{Compiled, LOWER, ROWS, lengths, offsets, round_up};

/// A function of lengths and of another table, which computes what it writes to two more.
fn function(body: &str) -> String {
    format!(
        "func.func @f(%m: memref<?xindex>, %t: memref<?xindex>, %out0: memref<?xindex>,
                      %out1: memref<?xindex>) attributes {{llvm.emit_c_interface}} {{
           %c0 = arith.constant 0 : index
           %c1 = arith.constant 1 : index
           %c100 = arith.constant 100 : index
           %rows = memref.dim %m, %c0 : memref<?xindex>
           %n = bufferization.to_tensor %m restrict : memref<?xindex> to tensor<?xindex>
           %table = bufferization.to_tensor %t restrict : memref<?xindex> to tensor<?xindex>
           %first = bufferization.to_tensor %out0 restrict writable : memref<?xindex> to tensor<?xindex>
           %second = bufferization.to_tensor %out1 restrict writable : memref<?xindex> to tensor<?xindex>
           {body}
           bufferization.materialize_in_destination %x in restrict writable %out0
             : (tensor<?xindex>, memref<?xindex>) -> ()
           bufferization.materialize_in_destination %y in restrict writable %out1
             : (tensor<?xindex>, memref<?xindex>) -> ()
           return
         }}"
    )
}

/// What is in storage where nothing has been written.
const NOTHING: i64 = -77;

/// Checks what a function writes, of lengths and of a table that follows from them.
fn check(
    body: &str,
    table: impl Fn(&[i64]) -> Vec<i64>,
    expected: impl Fn(&[i64], &[i64]) -> [Vec<i64>; 2],
) {
    let compiled = Compiled::new(&function(body), LOWER);
    for rows in ROWS {
        let mut lengths = lengths(rows);
        let mut table = table(&lengths);
        let expected = expected(&lengths, &table);
        let mut results = expected.clone().map(|list| vec![NOTHING; list.len()]);
        let [a, b] = &mut results;
        compiled.call([&mut lengths, &mut table, a, b]);
        assert_eq!(results, expected, "{rows} rows");
    }
}

/// Words of sentences of documents: lengths are a table of two dims, which is ragged itself.
#[test]
fn rows_of_rows_of_every_length() {
    for pad in [1, 4] {
        let body = "
          %os = ragged.offsets @seq(%n) : tensor<?xindex> -> tensor<?xindex>
          %words = ragged.from_storage %table lengths(%n) offsets(%os)
            : tensor<?xindex>, (tensor<?xindex>), tensor<?xindex> -> !WORDS
          %ow = ragged.offsets @word(%words) pad PAD : !WORDS -> tensor<?xindex>
          %text = ragged.from_storage %first lengths(%n, %words) offsets(%ow)
            : tensor<?xindex>, (tensor<?xindex>, !WORDS), tensor<?xindex> -> !TEXT
          %filled = ragged.for %d in @batch to %rows : index iter_args(%t0 = %text) -> (!TEXT) {
            %doc = ragged.for %s in @seq(%d) to %n : tensor<?xindex> iter_args(%t1 = %t0) -> (!TEXT) {
              %sentence = ragged.for %w in @word(%d, %s) to %words : !WORDS iter_args(%t2 = %t1)
                  -> (!TEXT) {
                %p = arith.muli %d, %c100 : index
                %q = arith.addi %p, %s : index
                %r = arith.muli %q, %c100 : index
                %v = arith.addi %r, %w : index
                %next = tensor.insert %v into %t2[%d, %s, %w] : !TEXT
                ragged.yield %next : !TEXT
              }
              ragged.yield %sentence : !TEXT
            }
            ragged.yield %doc : !TEXT
          }
          %x = ragged.to_storage %filled : !TEXT -> tensor<?xindex>
          %y = ragged.for %d in @batch to %rows : index iter_args(%s0 = %second) -> (tensor<?xindex>) {
            %sum = ragged.for %s in @seq(%d) to %n : tensor<?xindex> iter_args(%a0 = %c0) -> (index) {
              %u = ragged.for %w in @word(%d, %s) to %words : !WORDS iter_args(%a1 = %a0) -> (index) {
                %e = tensor.extract %filled[%d, %s, %w] : !TEXT
                %g = arith.addi %a1, %e : index
                ragged.yield %g : index
              }
              ragged.yield %u : index
            }
            %s1 = tensor.insert %sum into %s0[%d] : tensor<?xindex>
            ragged.yield %s1 : tensor<?xindex>
          }"
        .replace("!WORDS", "tensor<?x?xindex, #ragged.shape<@batch, @seq(@batch)>>")
        .replace(
            "!TEXT",
            "tensor<?x?x?xindex, #ragged.shape<@batch, @seq(@batch), @word(@batch, @seq) pad PAD>>",
        )
        .replace("PAD", &pad.to_string());
        let words = |sentences: &[i64]| (0..sentences.iter().sum()).map(|at| at * 5 % 7).collect();
        check(&body, words, |sentences, words| {
            let (mut text, mut sums, mut next) = (vec![], vec![], words.iter());
            for (document, sentences) in (0..).zip(sentences) {
                let mut sum = 0;
                for sentence in 0..*sentences {
                    let words = *next.next().expect("as many as sentences");
                    let word = |word| (document * 100 + sentence) * 100 + word;
                    sum += (0..words).map(word).sum::<i64>();
                    text.extend((0..words).map(word));
                    text.extend((words..round_up(words, pad)).map(|_| NOTHING));
                }
                sums.push(sum);
            }
            [text, sums]
        });
    }
}

/// Triangles in a ragged batch: the length is a function of two outer dims, one of them ragged. The
/// offsets are those of the real rows; the second tensor has them computed, for no table is over both.
#[test]
fn triangles_of_every_size() {
    let body = "
      %o = ragged.offsets @seq(%n) : tensor<?xindex> -> tensor<?xindex>
      %row, %index = ragged.fuse @seq(%o) : tensor<?xindex> -> tensor<?xindex>
      %list = ragged.lengths @triangle at(%row, %index)
        : (tensor<?xindex>, tensor<?xindex>) -> tensor<?xindex>
      %until = ragged.from_storage %list lengths(%n) offsets(%o)
        : tensor<?xindex>, (tensor<?xindex>), tensor<?xindex> -> !UNTIL
      %ot = ragged.offsets @triangle(%until) : !UNTIL -> tensor<?xindex>
      %half = ragged.from_storage %first lengths(%n, %until) offsets(%ot)
        : tensor<?xindex>, (tensor<?xindex>, !UNTIL), tensor<?xindex> -> !HALF
      %full0 = ragged.lengths @scores at(%n) of(%n) : (tensor<?xindex>, tensor<?xindex>) -> tensor<?xindex>
      %of = ragged.offsets @scores(%full0) : tensor<?xindex> -> tensor<?xindex>
      %full = ragged.from_storage %second lengths(%n) offsets(%of)
        : tensor<?xindex>, (tensor<?xindex>), tensor<?xindex> -> !FULL
      %r:2 = ragged.for %b in @batch to %rows : index iter_args(%h0 = %half, %f0 = %full) -> (!HALF, !FULL) {
        %r1:2 = ragged.for %i in @seq(%b) to %n : tensor<?xindex> iter_args(%h1 = %h0, %f1 = %f0) -> (!HALF, !FULL) {
          %r2:2 = ragged.for %j in @triangle(%b, %i) to %until : !UNTIL iter_args(%h2 = %h1, %f2 = %f1) -> (!HALF, !FULL) {
            %p = arith.muli %i, %c100 : index
            %v = arith.addi %p, %j : index
            %h3 = tensor.insert %v into %h2[%b, %i, %j] : !HALF
            %f3 = tensor.insert %v into %f2[%b, %c1, %j, %i] : !FULL
            ragged.yield %h3, %f3 : !HALF, !FULL
          }
          ragged.yield %r2#0, %r2#1 : !HALF, !FULL
        }
        ragged.yield %r1#0, %r1#1 : !HALF, !FULL
      }
      %x = ragged.to_storage %r#0 : !HALF -> tensor<?xindex>
      %y = ragged.to_storage %r#1 : !FULL -> tensor<?xindex>"
        .replace("!UNTIL", "tensor<?x?xindex, #ragged.shape<@batch, @seq(@batch)>>")
        .replace(
            "!HALF",
            "tensor<?x?x?xindex, #ragged.shape<@batch, @seq(@batch), @triangle(@batch, @seq)>>",
        )
        .replace(
            "!FULL",
            "tensor<?x2x?x?xindex, #ragged.shape<@batch, _, @seq(@batch), @seq(@batch)>>",
        );
    check(
        &body,
        |_| vec![],
        |lengths, _| {
            let (mut half, mut full) = (vec![], vec![]);
            for n in lengths.iter().copied() {
                half.extend((0..n).flat_map(|i| (0..=i).map(move |j| i * 100 + j)));
                full.extend((0..n * n).map(|_| NOTHING));
                let entry = |j, i| if j <= i { i * 100 + j } else { NOTHING };
                full.extend((0..n).flat_map(|j| (0..n).map(move |i| entry(j, i))));
            }
            [half, full]
        },
    );
}

/// Lengths that depend on the index in a row alone, whatever the row: the rows before it, of two heads
/// each, are numbered by offsets that are computed.
#[test]
fn triangles_of_heads_in_a_ragged_batch() {
    let body = "
      %o = ragged.offsets @seq(%n) : tensor<?xindex> -> tensor<?xindex>
      %heads = ragged.from_storage %first lengths(%n, %table) offsets(%second)
        : tensor<?xindex>, (tensor<?xindex>, tensor<?xindex>), tensor<?xindex> -> !TRI
      %c2 = arith.constant 2 : index
      %r = ragged.for %b in @batch to %rows : index iter_args(%h0 = %heads) -> (!TRI) {
        %r0 = scf.for %h = %c0 to %c2 step %c1 iter_args(%h1 = %h0) -> (!TRI) {
          %r1 = ragged.for %i in @seq(%b) to %n : tensor<?xindex> iter_args(%h2 = %h1) -> (!TRI) {
            %r2 = ragged.for %j in @until(%i) iter_args(%h3 = %h2) -> (!TRI) {
              %p = arith.muli %h, %c100 : index
              %q = arith.addi %p, %i : index
              %s = arith.muli %q, %c100 : index
              %v = arith.addi %s, %j : index
              %h4 = tensor.insert %v into %h3[%b, %h, %i, %j] : !TRI
              ragged.yield %h4 : !TRI
            }
            ragged.yield %r2 : !TRI
          }
          scf.yield %r1 : !TRI
        }
        ragged.yield %r0 : !TRI
      }
      %x = ragged.to_storage %r : !TRI -> tensor<?xindex>
      %y = tensor.cast %second : tensor<?xindex> to tensor<?xindex>"
        .replace(
            "!TRI",
            "tensor<?x2x?x?xindex, #ragged.shape<@batch, _, @seq(@batch), @until(@seq)>>",
        );
    let compiled = Compiled::new(&function(&body), LOWER);
    let until = |at: i64| at / 2 + at % 3 + 1;
    for rows in ROWS {
        let mut lengths = lengths(rows);
        let mut table: Vec<_> = (0..13).map(until).collect();
        let (mut expected, mut starts) = (vec![], vec![0]);
        for n in lengths.iter().copied() {
            for (head, row) in (0..2).flat_map(|head| (0..n).map(move |row| (head, row))) {
                expected.extend((0..until(row)).map(|at| (head * 100 + row) * 100 + at));
                starts.push(expected.len() as i64);
            }
        }
        let mut storage = vec![NOTHING; expected.len()];
        let before = starts.clone();
        compiled.call([&mut lengths, &mut table, &mut storage, &mut starts]);
        assert_eq!(storage, expected, "{rows} rows");
        assert_eq!(starts, before, "{rows} rows");
    }
}

/// From dense and from anywhere into padded storage (each row, the last dim, and all rows together),
/// and back.
#[test]
fn padded_storage_is_packed_and_unpacked() {
    let body = "
      %o = ragged.offsets @seq(%n) pad 4 bulk 16 : tensor<?xindex> -> tensor<?xindex>
      %flat = tensor.expand_shape %first [[0, 1]] output_shape [%count, 4]
        : tensor<?xindex> into tensor<?x4xindex>
      %into = ragged.from_storage %flat lengths(%n) offsets(%o)
        : tensor<?x4xindex>, (tensor<?xindex>), tensor<?xindex> -> !R
      %dense = tensor.expand_shape %table [[0, 1, 2]] output_shape [%rows, 12, 3]
        : tensor<?xindex> into tensor<?x12x3xindex>
      %r = ragged.pack %dense lengths(%n) into(%into)
        : tensor<?x12x3xindex>, (tensor<?xindex>) -> !R
      %s = ragged.to_storage %r : !R -> tensor<?x4xindex>
      %x = tensor.collapse_shape %s [[0, 1]] : tensor<?x4xindex> into tensor<?xindex>
      %to = tensor.expand_shape %second [[0, 1, 2]] output_shape [%rows, 12, 3]
        : tensor<?xindex> into tensor<?x12x3xindex>
      %u = ragged.unpack %r lengths(%n) into(%to)
        : !R, (tensor<?xindex>) -> tensor<?x12x3xindex>
      %y = tensor.collapse_shape %u [[0, 1, 2]] : tensor<?x12x3xindex> into tensor<?xindex>"
        .replace(
            "!R",
            "tensor<?x?x3xindex, #ragged.shape<@batch, @seq(@batch) pad 4 bulk 16, _ pad 4>>",
        )
        .replace(
            "%o =",
            "%c4 = arith.constant 4 : index
             %elements = memref.dim %out0, %c0 : memref<?xindex>
             %count = arith.divui %elements, %c4 : index
             %o =",
        );
    let dense = |lengths: &[i64]| (0..lengths.len() as i64 * 36).collect();
    check(&body, dense, |lengths, dense| {
        let (mut packed, mut unpacked) = (vec![], vec![NOTHING; dense.len()]);
        for (row, length) in lengths.iter().enumerate() {
            for at in 0..round_up(*length, 4) {
                let start = row * 36 + at as usize * 3;
                if at < *length {
                    packed.extend(&dense[start..start + 3]);
                    unpacked[start..start + 3].copy_from_slice(&dense[start..start + 3]);
                } else {
                    packed.extend([NOTHING; 3]);
                }
                packed.push(NOTHING);
            }
        }
        packed.resize(packed.len().next_multiple_of(64), NOTHING);
        [packed, unpacked]
    });
}

/// Instances whose rows lie anywhere, here from the last to the first.
#[test]
fn rows_that_lie_anywhere_are_packed() {
    let body = "
      %o = ragged.offsets @seq(%n) : tensor<?xindex> -> tensor<?xindex>
      %into = ragged.from_storage %first lengths(%n) offsets(%o)
        : tensor<?xindex>, (tensor<?xindex>), tensor<?xindex> -> !R
      %r = ragged.pack %table starts(%second) lengths(%n) into(%into)
        : tensor<?xindex>, (tensor<?xindex>), tensor<?xindex> -> !R
      %x = ragged.to_storage %r : !R -> tensor<?xindex>
      %y = tensor.cast %second : tensor<?xindex> to tensor<?xindex>"
        .replace(
            "!R",
            "tensor<?x?xindex, #ragged.shape<@batch, @seq(@batch)>>",
        );
    let compiled = Compiled::new(&function(&body), LOWER);
    for rows in ROWS {
        let mut lengths = lengths(rows);
        let all: i64 = lengths.iter().sum();
        let ends = &offsets(&lengths, 1)[1..];
        let mut starts: Vec<_> = ends.iter().map(|end| all - end).collect();
        let mut space: Vec<_> = (0..all).map(|at| at * 3).collect();
        let instances = starts.iter().zip(&lengths);
        let expected: Vec<_> = instances
            .flat_map(|(start, length)| (*start..start + length).map(|at| at * 3))
            .collect();
        let mut packed = vec![NOTHING; expected.len()];
        compiled.call([&mut lengths, &mut space, &mut packed, &mut starts]);
        assert_eq!(packed, expected, "{rows} rows");
    }
}

/// Tables over several dims of one length, over none, and over ragged ones are computed entry by entry.
#[test]
fn tables_of_several_dims_are_computed() {
    let body = "
      %grid = tensor.expand_shape %table [[0, 1]] output_shape [%rows, 3]
        : tensor<?xindex> into tensor<?x3xindex>
      %main, %tail = ragged.split %grid by 4 : tensor<?x3xindex>
      %x = ragged.offsets @cell(%main) pad 8 : tensor<?x3xindex> -> tensor<?xindex>
      %size = tensor.from_elements %rows : tensor<index>
      %both = ragged.lengths @both of(%size) : (tensor<index>) -> tensor<index>
      %twice = tensor.extract %both[] : tensor<index>
      %o = ragged.offsets @seq(%n) : tensor<?xindex> -> tensor<?xindex>
      %row, %index = ragged.fuse @seq(%o) : tensor<?xindex> -> tensor<?xindex>
      %nested = ragged.from_storage %index lengths(%n) offsets(%o)
        : tensor<?xindex>, (tensor<?xindex>), tensor<?xindex> -> !R
      %aligned, %rest = ragged.split %nested by 2 : !R
      %last = ragged.for %b in @batch to %rows : index iter_args(%s0 = %second) -> (tensor<?xindex>) {
        %sum = ragged.for %s in @seq(%b) to %n : tensor<?xindex> iter_args(%a0 = %twice) -> (index) {
          %v = tensor.extract %aligned[%b, %s] : !R
          %a1 = arith.addi %a0, %v : index
          ragged.yield %a1 : index
        }
        %s1 = tensor.insert %sum into %s0[%b] : tensor<?xindex>
        ragged.yield %s1 : tensor<?xindex>
      }
      %y = tensor.cast %last : tensor<?xindex> to tensor<?xindex>"
        .replace("!R", "tensor<?x?xindex, #ragged.shape<@batch, @seq(@batch)>>");
    let grid = |lengths: &[i64]| {
        (0..lengths.len() as i64 * 3)
            .map(|at| at * 7 % 11)
            .collect()
    };
    check(&body, grid, |lengths, grid| {
        let main: Vec<_> = grid.iter().map(|entry| entry / 4 * 4).collect();
        let sums = lengths.iter().map(|length| {
            2 * lengths.len() as i64 + (0..*length).map(|at| at / 2 * 2).sum::<i64>()
        });
        [offsets(&main, 8), sums.collect()]
    });
}
