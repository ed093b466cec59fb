//! A value that may have parts: a list, struct or map of a column, or JSON in a cell of text.

use crate::flow::cell::Cell;
use crate::flow::json::Json;

/// A value with or without parts.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// A value without parts.
    Cell(Cell<'a>),
    /// A row of a column of lists, structs or maps.
    Nested(&'a dyn Nested, usize),
    /// A value of a JSON document.
    Json(&'a Json<'a>),
}

/// A column of lists, structs or maps, as an input has it. The calls are dynamic: they are made for
/// nested values only, whose parts cost far more to render.
pub trait Nested {
    /// Calls `each` with the items of a list; returns false if the value is not a list.
    fn items<'a>(&'a self, row: usize, each: &mut dyn FnMut(Value<'a>)) -> bool;
    /// Calls `each` with the keys and values of a struct or map; returns false if it is neither.
    fn fields<'a>(&'a self, row: usize, each: &mut dyn FnMut(Cell<'a>, Value<'a>)) -> bool;
}

impl<'a> Value<'a> {
    /// The value as a cell; `None` if it has parts.
    pub fn cell(self) -> Option<Cell<'a>> {
        Some(match self {
            Value::Cell(cell) => cell,
            Value::Nested(..) => return None,
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

    /// Calls `each` with the items of a list; returns false if the value is not a list.
    pub fn items(self, mut each: impl FnMut(Value<'a>)) -> bool {
        match self {
            Value::Nested(column, row) => column.items(row, &mut each),
            Value::Json(Json::List(list)) => {
                list.iter().for_each(|item| each(Value::Json(item)));
                true
            }
            _ => false,
        }
    }

    /// Calls `each` with the keys and values of a struct or map; returns false if it is neither.
    pub fn fields(self, mut each: impl FnMut(Cell<'a>, Value<'a>)) -> bool {
        match self {
            Value::Nested(column, row) => column.fields(row, &mut each),
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

/// Whether a text begins as a JSON list or object does.
pub fn is_json(text: &[u8]) -> bool {
    let first = text.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    matches!(first, Some(b'[' | b'{'))
}
