//! JSON, and which member an object has twice, of which `serde_json` would take the last without a word.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

/// Reads a value, in which the first of two members counts, and notes the name of the first such pair.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) twice: &'a RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut read: A) -> Result<Json, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = read.next_element_seed(self)? {
            elements.push(element);
        }
        Ok(Json::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut read: A) -> Result<Json, A::Error> {
        let mut members = Map::new();
        while let Some(name) = read.next_key::<String>()? {
            let value = read.next_value_seed(self)?;
            if members.contains_key(&name) {
                self.twice.borrow_mut().get_or_insert(name);
            } else {
                members.insert(name, value);
            }
        }
        Ok(Json::Object(members))
    }
}
