//! Arrays of NumPy as rows: `.npz` has one or more for each argument, `.npy` is that of the only one.
//!
//! | array | what it has |
//! |---|---|
//! | `x` | of a number or a tensor of known shape: a first axis for the instances |
//! | `x`, `x.offsets` | where only the first dim differs: all rows, and where each instance's begin and the last's end |
//! | `x`, `x.shapes` | where more dims differ: all elements, and a row of lengths for each instance |
//! | `x.tags`, `x.ends`, `x.NAME`, `x.NAME.1` | of a data type: the constructors of all nodes in postorder, where those of each instance end, and for each constructor with fields of other types the values of its nodes, an array a field |
//! | `id` | integers |

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, BooleanArray, FixedSizeListArray, Float16Array, Float32Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, LargeListArray, RecordBatch,
    StructArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field, Fields, Schema};
use cohort_runtime::abi::manifest::{Adt, Manifest, Type};
use npyz::{DType, Endianness, NpyFile, Order, TypeChar};
use zip::ZipArchive;

/// An array as it lies in its file.
struct Array {
    values: ArrayRef,
    shape: Vec<u64>,
}

type Arrays = BTreeMap<String, Array>;

/// As many axes as NumPy's own arrays have; each is a list around another.
const MOST_AXES: u64 = 64;

/// Brackets within brackets of a header. NumPy's own have three; a reader may take twice as long with
/// each more.
const MOST_NESTED: usize = 8;

/// Bytes that reading a file may take, whatever it says.
fn room() -> u64 {
    cohort_runtime::memory::free_bytes().map_or(u64::MAX, |free| free / 4)
}

/// The rows of an `.npy`.
pub fn of_array(manifest: &Manifest, bytes: &[u8]) -> Result<RecordBatch, String> {
    let [argument] = manifest.arguments.as_slice() else {
        return Err(format!(
            "an .npy has one array, and the program {} arguments; use an .npz",
            manifest.arguments.len()
        ));
    };
    let array = array(bytes)?;
    batch(manifest, Arrays::from([(argument.name.clone(), array)]))
}

/// The rows of an `.npz`.
pub fn of_archive(manifest: &Manifest, bytes: &[u8]) -> Result<RecordBatch, String> {
    let text = |error: zip::result::ZipError| error.to_string();
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(text)?;
    let mut arrays = Arrays::new();
    // What is packed may be anything.
    let mut left = room();
    for number in 0..archive.len() {
        let mut file = archive.by_index(number).map_err(text)?;
        let name = file.name().map_err(text)?.into_owned();
        let Some(name) = name.strip_suffix(".npy") else {
            return Err(format!("{name:?} in it is not an array"));
        };
        let located = |problem: String| format!("array {name:?}: {problem}");
        let mut content = Vec::new();
        let mut limited = (&mut file).take(left.saturating_add(1));
        let read = limited.read_to_end(&mut content);
        read.map_err(|error| located(error.to_string()))?;
        left = (left.checked_sub(content.len() as u64))
            .ok_or_else(|| located("there is not enough memory for it".to_owned()))?;
        let array = array(&content).map_err(located)?;
        arrays.insert(name.to_owned(), array);
    }
    batch(manifest, arrays)
}

/// Reads an array.
fn array(bytes: &[u8]) -> Result<Array, String> {
    if is_nested(header(bytes)) {
        return Err("its header nests too deeply".to_owned());
    }
    let mut data = bytes;
    let file = NpyFile::new(&mut data).map_err(|error| error.to_string())?;
    let (shape, order, dtype) = (file.shape().to_vec(), file.order(), file.dtype());
    drop(file);
    if shape.len() as u64 > MOST_AXES {
        return Err(too_many_axes(shape.len() as u64));
    }
    let DType::Plain(ty) = dtype else {
        return Err("an array of records; expected numbers".to_owned());
    };
    if order == Order::Fortran && shape.len() > 1 {
        return Err("it is in Fortran's order; save numpy.ascontiguousarray of it".to_owned());
    }
    let refused = || format!("elements of {ty}; expected numbers or truth values");
    let (kind, size) = (ty.type_char(), ty.size_field());
    // The size of others, such as texts, is not in bytes.
    if !matches!(
        kind,
        TypeChar::Float | TypeChar::Int | TypeChar::Uint | TypeChar::Bool
    ) {
        return Err(refused());
    }
    // Also where there are none, as of each leading part of the shape somebody asks how many there are.
    let longer = shape.iter().filter(|dim| **dim > 0);
    let count = longer.copied().try_fold(1_u64, u64::checked_mul);
    let count = count.map(|count| if shape.contains(&0) { 0 } else { count });
    let expected = count.and_then(|count| count.checked_mul(size));
    if expected != Some(data.len() as u64) {
        return Err(format!(
            "its shape {shape:?} does not fit the {} bytes that it has",
            data.len()
        ));
    }
    let is_big = ty.endianness() == Endianness::Big;
    macro_rules! numbers {
        ($array:ident, $number:ty) => {{
            let (elements, _) = data.as_chunks::<{ size_of::<$number>() }>();
            let number = |bytes: &[u8; _]| match is_big {
                true => <$number>::from_be_bytes(*bytes),
                false => <$number>::from_le_bytes(*bytes),
            };
            Arc::new($array::from_iter_values(elements.iter().map(number))) as ArrayRef
        }};
    }
    let values = match (kind, size) {
        (TypeChar::Float, 2) => numbers!(Float16Array, half::f16),
        (TypeChar::Float, 4) => numbers!(Float32Array, f32),
        (TypeChar::Float, 8) => numbers!(Float64Array, f64),
        (TypeChar::Int, 1) => numbers!(Int8Array, i8),
        (TypeChar::Int, 2) => numbers!(Int16Array, i16),
        (TypeChar::Int, 4) => numbers!(Int32Array, i32),
        (TypeChar::Int, 8) => numbers!(Int64Array, i64),
        (TypeChar::Uint, 1) => numbers!(UInt8Array, u8),
        (TypeChar::Uint, 2) => numbers!(UInt16Array, u16),
        (TypeChar::Uint, 4) => numbers!(UInt32Array, u32),
        (TypeChar::Uint, 8) => numbers!(UInt64Array, u64),
        (TypeChar::Bool, 1) => {
            let truths: Vec<bool> = data.iter().map(|byte| *byte != 0).collect();
            Arc::new(BooleanArray::from(truths))
        }
        _ => return Err(refused()),
    };
    Ok(Array { values, shape })
}

/// The header of an array, behind a mark, two bytes of version, and its length in two bytes or four; all
/// of a file that is none.
fn header(bytes: &[u8]) -> &[u8] {
    let (begin, length) = match bytes {
        [_, _, _, _, _, _, 1, _, a, b, ..] => (10, u32::from_le_bytes([*a, *b, 0, 0])),
        [_, _, _, _, _, _, _, _, a, b, c, d, ..] => (12, u32::from_le_bytes([*a, *b, *c, *d])),
        _ => (0, u32::MAX),
    };
    let rest = &bytes[begin..];
    &rest[..rest.len().min(length as usize)]
}

fn is_nested(header: &[u8]) -> bool {
    let mut depth = 0_usize;
    header.iter().any(|byte| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > MOST_NESTED
    })
}

fn too_many_axes(count: u64) -> String {
    format!("it has {count} axes; an array of NumPy has {MOST_AXES} at the most")
}

impl Array {
    /// Its rows below the first axis, as lists of fixed sizes.
    fn rows(&self) -> Result<ArrayRef, String> {
        let Some(dims) = self.shape.get(1..) else {
            return Err("expected a first axis for the instances".to_owned());
        };
        let mut rows = self.values.clone();
        for level in (0..dims.len()).rev() {
            let count: u64 = self.shape[..=level].iter().product();
            let size = i32::try_from(dims[level]).map_err(|_| "an axis is too long".to_owned())?;
            let field = Arc::new(Field::new_list_field(rows.data_type().clone(), false));
            let lists =
                FixedSizeListArray::try_new_with_length(field, size, rows, None, count as usize);
            rows = Arc::new(lists.map_err(|error| error.to_string())?);
        }
        Ok(rows)
    }

    /// Its integers, none of which is negative.
    fn integers(&self) -> Result<Vec<u64>, String> {
        let wrong = || "expected integers from 0".to_owned();
        if !self.values.data_type().is_integer() {
            return Err(wrong());
        }
        let wide = arrow_cast_to_u64(&self.values);
        wide.ok_or_else(wrong)
    }
}

/// All integers, if they are from 0.
fn arrow_cast_to_u64(values: &ArrayRef) -> Option<Vec<u64>> {
    macro_rules! of {
        ($($array:ty),*) => {
            $(if let Some(array) = values.as_any().downcast_ref::<$array>() {
                return array.values().iter().map(|value| u64::try_from(*value).ok()).collect();
            })*
        };
    }
    of!(Int8Array, Int16Array, Int32Array, Int64Array);
    of!(UInt8Array, UInt16Array, UInt32Array, UInt64Array);
    None
}

/// Lists that end there in the values, the first of which begins at 0.
fn lists(values: ArrayRef, ends: impl IntoIterator<Item = u64>) -> Result<ArrayRef, String> {
    let mut offsets = vec![0_i64];
    for end in ends {
        let end = i64::try_from(end).unwrap_or(i64::MAX);
        if offsets.last().is_some_and(|before| *before > end) || end > values.len() as i64 {
            return Err(format!(
                "its ends are not in order, or beyond the {} that there are",
                values.len()
            ));
        }
        offsets.push(end);
    }
    if offsets.last() != Some(&(values.len() as i64)) {
        return Err(format!("its last end is not that of all {}", values.len()));
    }
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), false));
    let lists = LargeListArray::try_new(field, OffsetBuffer::new(offsets.into()), values, None);
    lists
        .map(|lists| Arc::new(lists) as ArrayRef)
        .map_err(|error| error.to_string())
}

fn batch(manifest: &Manifest, mut arrays: Arrays) -> Result<RecordBatch, String> {
    let mut columns = Vec::new();
    for argument in &manifest.arguments {
        let name = &argument.name;
        let column = match &argument.ty {
            Type::Adt(adt) => nodes(&mut arrays, name, *adt, &manifest.adts[*adt]),
            _ => tensor(&mut arrays, name),
        };
        let column = column.map_err(|problem| format!("array {name:?}: {problem}"))?;
        columns.push((name.clone(), column));
    }
    if let Some(ids) = arrays.remove("id") {
        columns.push(("id".to_owned(), ids.values));
    }
    if let Some(name) = arrays.keys().next() {
        let names: Vec<&str> = (manifest.arguments.iter())
            .map(|argument| argument.name.as_str())
            .collect();
        return Err(format!(
            "array {name:?} is of no argument of the program ({})",
            names.join(", ")
        ));
    }
    let fields = columns
        .iter()
        .map(|(name, column)| Field::new(name, column.data_type().clone(), false));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let lengths: Vec<String> = (columns.iter())
        .map(|(name, column)| format!("{name}: {}", column.len()))
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(schema, columns).map_err(|_| {
        format!(
            "its arrays are not of the same number of instances ({})",
            lengths.join(", ")
        )
    })
}

fn taken(arrays: &mut Arrays, name: &str) -> Result<Array, String> {
    arrays
        .remove(name)
        .ok_or_else(|| format!("there is no array {name:?}"))
}

/// The column of an argument that is numbers.
fn tensor(arrays: &mut Arrays, name: &str) -> Result<ArrayRef, String> {
    let array = taken(arrays, name)?;
    if let Some(offsets) = arrays.remove(&format!("{name}.offsets")) {
        let offsets = offsets.integers()?;
        let Some((0, ends)) = offsets.split_first().map(|(first, ends)| (*first, ends)) else {
            return Err("its offsets do not begin with 0".to_owned());
        };
        return lists(array.rows()?, ends.iter().copied());
    }
    let Some(shapes) = arrays.remove(&format!("{name}.shapes")) else {
        return array.rows();
    };
    let [count, dims] = shapes.shape[..] else {
        return Err("its shapes are not a row of lengths for each instance".to_owned());
    };
    if dims > MOST_AXES {
        return Err(too_many_axes(dims));
    }
    let lengths = shapes.integers()?;
    let most_lists = room() / size_of::<i64>() as u64 / 4;
    let instances = (0..count as usize).map(|row| &lengths[row * dims as usize..][..dims as usize]);
    let mut column = array.values;
    // From the innermost lists out; of each level, as many lists as the levels around it say.
    for level in (0..dims as usize).rev() {
        let mut ends = Vec::new();
        let mut end = 0_u64;
        for shape in instances.clone() {
            let around = shape[..level].iter().copied().fold(1, u64::saturating_mul);
            if (ends.len() as u64).saturating_add(around) > most_lists {
                return Err("there is not enough memory for the lists of its shapes".to_owned());
            }
            for _ in 0..around {
                end = end.saturating_add(shape[level]);
                ends.push(end);
            }
        }
        column = lists(column, ends)?;
    }
    Ok(column)
}

/// The column of an argument of a data type.
fn nodes(arrays: &mut Arrays, name: &str, number: usize, adt: &Adt) -> Result<ArrayRef, String> {
    let tags = taken(arrays, &format!("{name}.tags"))?;
    let ends = taken(arrays, &format!("{name}.ends"))?.integers()?;
    let all = tags.integers()?;
    let mut columns = vec![("tags".to_owned(), lists(tags.values, ends.iter().copied())?)];
    for (tag, constructor) in adt.constructors.iter().enumerate() {
        let is_own = |ty: &&Type| **ty != Type::Adt(number);
        let count = constructor.fields.iter().filter(is_own).count();
        let base = format!("{name}.{}", constructor.name);
        let mut fields = Vec::new();
        for place in 0..count {
            let name = match place {
                0 if count == 1 || !arrays.contains_key(&format!("{base}.0")) => base.clone(),
                _ => format!("{base}.{place}"),
            };
            fields.push((place.to_string(), taken(arrays, &name)?.rows()?));
        }
        if fields.is_empty() {
            continue;
        }
        let values = match fields.len() {
            1 => fields.remove(0).1,
            _ => structs(fields)?,
        };
        // How many nodes of an instance are made by it.
        let mut begin = 0;
        let mut seen = 0;
        let own_ends = ends.iter().map(|end| {
            let nodes = &all[begin..*end as usize];
            begin = *end as usize;
            seen += nodes.iter().filter(|node| **node == tag as u64).count() as u64;
            seen
        });
        let own_ends: Vec<u64> = own_ends.collect();
        let column = lists(values, own_ends)
            .map_err(|problem| format!("{}: {problem}", constructor.name))?;
        columns.push((constructor.name.clone(), column));
    }
    structs(columns)
}

fn structs(columns: Vec<(String, ArrayRef)>) -> Result<ArrayRef, String> {
    let fields: Fields = columns
        .iter()
        .map(|(name, column)| Field::new(name, column.data_type().clone(), false))
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let structs = StructArray::try_new(fields, columns, None);
    structs
        .map(|structs| Arc::new(structs) as ArrayRef)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(shape: &[u64], values: &[i64]) -> Array {
        let shape = shape.to_vec();
        let values = Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
        Array { values, shape }
    }

    fn column(shapes: Array) -> Result<ArrayRef, String> {
        let values = integers(&[0], &[]);
        let arrays = [("x", values), ("x.shapes", shapes)];
        let mut arrays = arrays.map(|(name, array)| (name.to_owned(), array)).into();
        tensor(&mut arrays, "x")
    }

    /// One element of four bytes.
    const PLAIN: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";

    fn file(header: &str) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        [&bytes, header.as_bytes(), &[0; 4]].concat()
    }

    #[test]
    fn texts_are_said_to_be_no_numbers() {
        let refused = array(&file(&PLAIN.replace("f4", "U1"))).err();
        let refused = refused.expect("a text");
        assert!(refused.contains("expected numbers"), "{refused}");
    }

    #[test]
    fn headers_nest_no_deeper_than_ones_of_numpy() {
        assert!(array(&file(PLAIN)).is_ok());
        let deep = PLAIN.replace("1,", &"{".repeat(200));
        let refused = array(&file(&deep)).err().expect("a header of brackets");
        assert!(refused.contains("nests"), "{refused}");
    }

    #[test]
    fn shapes_of_no_rows_nest_no_deeper_than_arrays() {
        assert!(column(integers(&[0, 3], &[])).is_ok());
        let refused = column(integers(&[0, 1 << 60], &[])).expect_err("too deep");
        assert!(refused.contains("axes"), "{refused}");
    }

    #[test]
    fn lists_without_elements_take_no_more_memory_than_there_is() {
        let column = column(integers(&[1, 2], &[i64::MAX, 0])).expect_err("too many");
        assert!(column.contains("memory"), "{column}");
    }
}
