//! What the program takes and gives, for clients: types as text, as tensors of KServe, and by an example.

use cohort_runtime::abi::manifest::{Elem, LeadingDim, Manifest, Type};

use crate::formats::numbers::{Numbers, numbers};

fn name(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 => "f32",
        Elem::I32 => "i32",
        Elem::Bool => "bool",
    }
}

/// A type in the program's terms.
pub fn text(manifest: &Manifest, ty: &Type) -> String {
    match ty {
        Type::Str => "str".to_owned(),
        Type::Adt(adt) => manifest.adts[*adt].name.clone(),
        Type::Tuple(types) => {
            let types: Vec<String> = types.iter().map(|ty| text(manifest, ty)).collect();
            format!("({})", types.join(", "))
        }
        Type::Array(element) => format!("[{}]", text(manifest, element)),
        Type::Scalar(elem) => name(*elem).to_owned(),
        Type::Tensor { pool } | Type::Stacked { pool } | Type::Ragged { pool, .. } => {
            let pool = &manifest.row_pools[*pool];
            let leading: Vec<String> = match ty {
                Type::Stacked { .. } => vec!["_".to_owned()],
                Type::Ragged { dims, .. } => (dims.iter())
                    .map(|dim| match dim {
                        LeadingDim::Known(length) => length.to_string(),
                        LeadingDim::Named(dim) => manifest.dims[*dim].clone(),
                        LeadingDim::Any => "_".to_owned(),
                    })
                    .collect(),
                _ => Vec::new(),
            };
            let dims = leading
                .into_iter()
                .chain(pool.shape.iter().map(u64::to_string));
            let dims: Vec<String> = dims.collect();
            match dims.is_empty() {
                true => name(pool.elem).to_owned(),
                false => format!("{}[{}]", name(pool.elem), dims.join(", ")),
            }
        }
    }
}

/// Elements that a tensor of an example has at most; a larger one is not written out.
const MOST_ELEMENTS: u64 = 4096;
/// Length of what has a length of its own.
const LENGTH: u64 = 2;

/// A small instance, as JSON; none where it would be large.
pub fn example(manifest: &Manifest) -> Option<serde_json::Value> {
    let heights = heights(manifest);
    let arguments = manifest.arguments.iter().map(|argument| {
        let value = value(manifest, &heights, &argument.ty)?;
        Some((argument.name.clone(), value))
    });
    let members: Option<serde_json::Map<_, _>> = arguments.collect();
    members.map(serde_json::Value::Object)
}

/// Of each constructor, how deep its smallest value is; none where it has no value that ends.
fn heights(manifest: &Manifest) -> Vec<Vec<Option<u64>>> {
    let constructors =
        |adt: &cohort_runtime::abi::manifest::Adt| vec![None; adt.constructors.len()];
    let mut heights: Vec<Vec<Option<u64>>> = manifest.adts.iter().map(constructors).collect();
    loop {
        let mut has_changed = false;
        for (number, adt) in manifest.adts.iter().enumerate() {
            for (tag, constructor) in adt.constructors.iter().enumerate() {
                let mut fields = constructor.fields.iter().map(|ty| height(&heights, ty));
                let deepest = fields.try_fold(0, |deepest, field| Some(field?.max(deepest)));
                let found = deepest.map(|deepest: u64| deepest + 1);
                if heights[number][tag].is_none() && found.is_some() {
                    heights[number][tag] = found;
                    has_changed = true;
                }
            }
        }
        if !has_changed {
            return heights;
        }
    }
}

fn height(heights: &[Vec<Option<u64>>], ty: &Type) -> Option<u64> {
    match ty {
        Type::Adt(adt) => heights[*adt].iter().copied().flatten().min(),
        Type::Tuple(types) => {
            let mut heights = types.iter().map(|ty| height(heights, ty));
            heights.try_fold(0, |deepest, part| Some(part?.max(deepest)))
        }
        // An array may be empty.
        _ => Some(0),
    }
}

fn value(
    manifest: &Manifest,
    heights: &[Vec<Option<u64>>],
    ty: &Type,
) -> Option<serde_json::Value> {
    if let Some(Numbers { elem, dims }) = numbers(manifest, ty) {
        let dims: Vec<u64> = dims.iter().map(|dim| dim.unwrap_or(LENGTH)).collect();
        let count = dims.iter().copied().fold(1, u64::saturating_mul);
        let zero = match elem {
            Elem::F32 => serde_json::json!(0.0),
            Elem::I32 => serde_json::json!(0),
            Elem::Bool => serde_json::json!(false),
        };
        let nest = |inner, dim: &u64| serde_json::Value::Array(vec![inner; *dim as usize]);
        return (count <= MOST_ELEMENTS).then(|| dims.iter().rev().fold(zero, nest));
    }
    match ty {
        Type::Str => Some("".into()),
        Type::Tuple(types) => {
            let parts = types.iter().map(|ty| value(manifest, heights, ty));
            parts.collect::<Option<Vec<_>>>().map(Into::into)
        }
        // What an array of values has may be large, and it may be empty.
        Type::Array(_) => Some(serde_json::json!([])),
        Type::Adt(adt) => {
            // The smallest value that has something in it, of two levels at most.
            let own = &heights[*adt];
            let least = own.iter().copied().flatten().min()?;
            let tag = own.iter().position(|height| *height == Some(least))?;
            let constructor = &manifest.adts[*adt].constructors[tag];
            if constructor.fields.is_empty() {
                return Some(constructor.name.clone().into());
            }
            let fields = constructor
                .fields
                .iter()
                .map(|ty| value(manifest, heights, ty));
            let fields = fields.collect::<Option<Vec<_>>>()?;
            let mut node = serde_json::Map::new();
            node.insert(constructor.name.clone(), fields.into());
            Some(node.into())
        }
        _ => None,
    }
}
