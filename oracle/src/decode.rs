//! From the JSON of an instance to the entry's arguments.

use std::collections::BTreeMap;

use cohort_frontend::program::{AdtId, Dim, Elem, Program, Type};
use serde_json::{Map, Value as Json};

use crate::error::{ErrorKind, InstanceError};
use crate::scalar::Scalar;
use crate::tensor::{Data, Tensor};
use crate::value::Value;

/// Decodes the members of `instance` (but for its `id`) as the arguments of the entry.
pub(crate) fn arguments(program: &Program, instance: &Json) -> Result<Vec<Value>, InstanceError> {
    let mut decoder = Decoder {
        program,
        lengths: BTreeMap::new(),
        guessed: false,
    };
    let values = decoder.arguments(instance)?;
    if !decoder.guessed {
        return Ok(values);
    }
    // A length inside of an empty tensor was needed before another value told it.
    decoder.arguments(instance)
}

struct Decoder<'p> {
    program: &'p Program,
    /// The instance dims of the entry's signature that are known by now.
    lengths: BTreeMap<&'p str, usize>,
    /// Whether a dim had to be taken for 0 because nothing had told its length.
    guessed: bool,
}

/// An error while it travels outwards and collects the path to where it is.
struct PathError {
    kind: ErrorKind,
    message: String,
    /// Innermost first.
    path: Vec<String>,
}

type PathResult<T> = Result<T, PathError>;

impl<'p> Decoder<'p> {
    fn arguments(&mut self, instance: &Json) -> Result<Vec<Value>, InstanceError> {
        let bad_input = |message| Err(InstanceError::new(ErrorKind::BadInput, message));
        let Json::Object(members) = instance else {
            return bad_input(format!("expected an object, found {}", describe(instance)));
        };
        let entry = &self.program.functions[self.program.entry.0];
        let params: Vec<_> = entry
            .params
            .iter()
            .map(|param| &entry.vars[param.0])
            .collect();
        for name in members.keys() {
            if name != "id" && params.iter().all(|param| param.name != *name) {
                return bad_input(format!("`{}` has no parameter `{name}`", entry.name));
            }
        }
        let mut values = Vec::new();
        for param in params {
            let Some(member) = members.get(&param.name) else {
                return bad_input(format!("the argument `{}` is missing", param.name));
            };
            let value = self
                .value(&param.ty, member)
                .map_err(|error| error.at(&param.name))?;
            values.push(value);
        }
        Ok(values)
    }

    fn value(&mut self, ty: &'p Type, json: &Json) -> PathResult<Value> {
        match ty {
            Type::Scalar(elem) => Ok(Value::Scalar(scalar(*elem, json)?)),
            Type::Tensor { elem, shape } => self.tensor(*elem, shape, json),
            Type::Tuple(types) => {
                let elements = array(json)?;
                expect_count("elements", types.len(), elements.len())?;
                Ok(Value::tuple(self.values(types.iter().zip(elements))?))
            }
            Type::Array(element) => {
                let elements = array(json)?;
                Ok(Value::array(
                    self.values(std::iter::repeat(&**element).zip(elements))?,
                ))
            }
            Type::Adt(adt) => self.adt(*adt, json),
            Type::Str => match json {
                Json::String(text) => Ok(Value::Text(text.as_str().into())),
                _ => Err(expected("a string", json)),
            },
        }
    }

    fn values<'v>(
        &mut self,
        typed: impl Iterator<Item = (&'p Type, &'v Json)>,
    ) -> PathResult<Vec<Value>> {
        typed
            .enumerate()
            .map(|(index, (ty, json))| {
                self.value(ty, json)
                    .map_err(|error| error.at(&format!("[{index}]")))
            })
            .collect()
    }

    /// `{"Node": [field, field]}`, or `"Empty"` for a constructor without fields.
    fn adt(&mut self, adt: AdtId, json: &Json) -> PathResult<Value> {
        let program: &'p Program = self.program;
        let declaration = &program.adts[adt.0];
        let (name, fields) = match json {
            Json::String(name) => (name, None),
            Json::Object(members) => match members.iter().next() {
                Some((name, fields)) if members.len() == 1 => (name, Some(fields)),
                _ => {
                    let message = format!(
                        "expected an object with one constructor of `{}`, found {} members",
                        declaration.name,
                        members.len()
                    );
                    return Err(bad_input(message));
                }
            },
            _ => {
                return Err(expected(
                    &format!("a constructor of `{}`", declaration.name),
                    json,
                ));
            }
        };
        let Some(constructor) = declaration
            .constructors
            .iter()
            .position(|c| c.name == *name)
        else {
            let message = format!("`{name}` is not a constructor of `{}`", declaration.name);
            return Err(bad_input(message));
        };
        let types = &declaration.constructors[constructor].fields;
        let names = &declaration.constructors[constructor].names;
        if let Some(Json::Object(members)) = fields
            && !names.is_empty()
        {
            let fields = self.fields_by_name(names, types, members);
            let fields = fields.map_err(|error| error.at(&format!(".{name}")))?;
            return Ok(Value::adt(adt, constructor, fields));
        }
        let fields = match fields {
            Some(_) if types.is_empty() => {
                return Err(expected(
                    &format!("\"{name}\", a constructor without fields"),
                    json,
                ));
            }
            Some(fields) => array(fields).map_err(|error| error.at(&format!(".{name}")))?,
            None => &[],
        };
        let decoded = expect_count("fields", types.len(), fields.len())
            .and_then(|()| self.values(types.iter().zip(fields)))
            .map_err(|error| error.at(&format!(".{name}")))?;
        Ok(Value::adt(adt, constructor, decoded))
    }

    /// The fields of a constructor that names them, in whatever order they come.
    fn fields_by_name(
        &mut self,
        names: &[String],
        types: &'p [Type],
        members: &Map<String, Json>,
    ) -> PathResult<Vec<Value>> {
        if let Some(other) = members.keys().find(|key| !names.contains(key)) {
            return Err(bad_input(format!("there is no field `{other}`")));
        }
        let fields = names.iter().zip(types).map(|(name, ty)| {
            let field = members.get(name);
            let field = field.ok_or_else(|| bad_input(format!("the field `{name}` is missing")))?;
            self.value(ty, field)
                .map_err(|error| error.at(&format!(".{name}")))
        });
        fields.collect()
    }

    /// Nested arrays, as deep as the shape is long.
    fn tensor(&mut self, elem: Elem, shape: &'p [Dim], json: &Json) -> PathResult<Value> {
        let mut data = match elem {
            Elem::F32 => Data::F32(Vec::new()),
            Elem::I32 => Data::I32(Vec::new()),
            Elem::Bool => Data::Bool(Vec::new()),
        };
        let mut found = vec![None; shape.len()];
        nested(elem, json, &mut found, &mut data)?;
        let mut lengths = Vec::new();
        for (axis, (dim, found)) in shape.iter().zip(found).enumerate() {
            lengths.push(self.length(dim, found).map_err(|error| PathError {
                message: format!("axis {axis}: {}", error.message),
                ..error
            })?);
        }
        Ok(Value::tensor(Tensor {
            shape: lengths,
            data,
            doubtful: Vec::new(),
        }))
    }

    /// The length of an axis; nothing is found of an axis inside of an empty one.
    fn length(&mut self, dim: &'p Dim, found: Option<usize>) -> PathResult<usize> {
        match (dim, found) {
            (Dim::Known(length), None) => Ok(*length as usize),
            (Dim::Known(length), Some(found)) if *length == found as u64 => Ok(found),
            (Dim::Known(length), Some(found)) => Err(bad_input(format!(
                "expected a length of {length}, found {found}"
            ))),
            // The one name that says nothing.
            (Dim::Instance(name), found) if name == "_" => Ok(found.unwrap_or(0)),
            (Dim::Instance(name), Some(found)) => {
                let known = *self.lengths.entry(name).or_insert(found);
                if known == found {
                    return Ok(found);
                }
                let message = format!("`{name}` is {known} elsewhere, but {found} here");
                Err(PathError {
                    kind: ErrorKind::ShapeMismatch,
                    ..bad_input(message)
                })
            }
            (Dim::Instance(name), None) => {
                let known = self.lengths.get(name.as_str()).copied();
                self.guessed |= known.is_none();
                Ok(known.unwrap_or(0))
            }
        }
    }
}

/// Appends the elements of nested arrays to `data` and notes how long each level is; there are
/// as many levels as `lengths`.
fn nested(
    elem: Elem,
    json: &Json,
    lengths: &mut [Option<usize>],
    data: &mut Data,
) -> PathResult<()> {
    let Some((length, inner)) = lengths.split_first_mut() else {
        return data
            .push(scalar(elem, json)?)
            .map_err(|error| bad_input(error.message));
    };
    let elements = array(json)?;
    expect_count("elements", length.unwrap_or(elements.len()), elements.len())?;
    *length = Some(elements.len());
    for (index, element) in elements.iter().enumerate() {
        nested(elem, element, inner, data).map_err(|error| error.at(&format!("[{index}]")))?;
    }
    Ok(())
}

/// A float is rounded to the f32 that the compiled program reads; what JSON has no number for is a
/// string. An i32 is written without point, exponent or negative zero.
fn scalar(elem: Elem, json: &Json) -> PathResult<Scalar> {
    match elem {
        Elem::Bool => json
            .as_bool()
            .map(Scalar::Bool)
            .ok_or_else(|| expected("a bool", json)),
        Elem::I32 => match (json.as_i64(), json.is_i64() || json.is_u64()) {
            (Some(value), _) if i32::try_from(value).is_ok() => Ok(Scalar::I32(value as i32)),
            (_, true) => Err(bad_input(format!("{json} does not fit an i32"))),
            _ => Err(expected("an integer", json)),
        },
        Elem::F32 => {
            if let Some(value) = json.as_str().and_then(not_finite) {
                return Ok(Scalar::F32(value));
            }
            let value = json.as_f64().ok_or_else(|| expected("a number", json))? as f32;
            if value.is_infinite() {
                return Err(bad_input(format!("{json} does not fit an f32")));
            }
            Ok(Scalar::F32(f64::from(value)))
        }
    }
}

fn not_finite(name: &str) -> Option<f64> {
    match name {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn array(json: &Json) -> PathResult<&[Json]> {
    json.as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| expected("an array", json))
}

fn expect_count(what: &str, expected: usize, found: usize) -> PathResult<()> {
    if expected == found {
        return Ok(());
    }
    Err(bad_input(format!(
        "expected {expected} {what}, found {found}"
    )))
}

fn expected(what: &str, found: &Json) -> PathError {
    bad_input(format!("expected {what}, found {}", describe(found)))
}

fn bad_input(message: String) -> PathError {
    PathError {
        kind: ErrorKind::BadInput,
        message,
        path: Vec::new(),
    }
}

/// A word on what a JSON value is, without its content when that may be large.
fn describe(json: &Json) -> String {
    match json {
        Json::Null => "null".to_string(),
        Json::Bool(value) => value.to_string(),
        Json::Number(value) => value.to_string(),
        Json::String(value) => format!(
            "the string {:?}",
            value.chars().take(40).collect::<String>()
        ),
        Json::Array(elements) => format!("an array of {}", elements.len()),
        Json::Object(_) => "an object".to_string(),
    }
}

impl PathError {
    fn at(mut self, segment: &str) -> PathError {
        self.path.push(segment.to_string());
        self
    }
}

impl From<PathError> for InstanceError {
    /// Such as `t.Node[0].Leaf[0]: expected an integer, found null`; a long path shows its ends.
    fn from(error: PathError) -> InstanceError {
        const SHOWN: usize = 12;
        let mut path: Vec<&str> = error.path.iter().rev().map(String::as_str).collect();
        if path.len() > 2 * SHOWN {
            let middle = SHOWN..path.len() - SHOWN;
            path.splice(middle, [" … "]);
        }
        InstanceError::new(error.kind, format!("{}: {}", path.concat(), error.message))
    }
}
