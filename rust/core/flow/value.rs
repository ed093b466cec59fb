//! A value that may have parts: lists, structs and maps of Arrow, or JSON in a cell of text.

use crate::build::read::arrow::Part;
use crate::build::read::json::Json;
use crate::flow::cell::Cell;

/// A value with or without parts.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// One without.
    Cell(Cell<'a>),
    /// A list, struct or map of Arrow.
    Arrow(Part<'a>),
    /// A value of a JSON document.
    Json(&'a Json<'a>),
}

impl<'a> Value<'a> {
    /// The value as a cell; `None` if it has parts.
    pub fn cell(self) -> Option<Cell<'a>> {
        Some(match self {
            Value::Cell(cell) => cell,
            Value::Arrow(_) => return None,
            Value::Json(json) => match json {
                Json::Null => Cell::Null,
                Json::Bool(value) => Cell::Bool(*value),
                Json::Int(value) => Cell::Int(*value),
                Json::UInt(value) => Cell::UInt(*value),
                Json::Float(value) => Cell::Float(*value),
                Json::Text(text) if text.is_empty() => Cell::Null,
                Json::Text(text) => Cell::Text(text.as_bytes()),
                Json::List(_) | Json::Fields(_) => return None,
            },
        })
    }

    /// Calls `each` with the items of a list; false if it is none.
    pub fn items(self, mut each: impl FnMut(Value<'a>)) -> bool {
        match self {
            Value::Arrow(part) => part.items(each),
            Value::Json(Json::List(list)) => {
                list.iter().for_each(|item| each(Value::Json(item)));
                true
            }
            _ => false,
        }
    }

    /// Calls `each` with the keys and values of a struct or map; false if it is none.
    pub fn fields(self, mut each: impl FnMut(Cell<'a>, Value<'a>)) -> bool {
        match self {
            Value::Arrow(part) => part.fields(each),
            Value::Json(Json::Fields(fields)) => {
                for (key, value) in fields {
                    each(Value::Json(key).cell().unwrap_or(Cell::Null), Value::Json(value));
                }
                true
            }
            _ => false,
        }
    }
}

/// Whether a text is meant as a JSON list or object.
pub fn is_json(text: &[u8]) -> bool {
    let first = text.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    matches!(first, Some(b'[' | b'{'))
}
