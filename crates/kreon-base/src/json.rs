//! JSON objects, written by hand: figures need no more.

use std::fmt::Write as _;

/// A value, as its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(String);

impl Json {
    /// A list of values.
    pub fn list<T: Into<Self>>(values: impl IntoIterator<Item = T>) -> Self {
        let values: Vec<_> = values.into_iter().map(|value| value.into().0).collect();
        Self(format!("[{}]", values.join(",")))
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.0
    }
}

macro_rules! whole {
    ($($number:ty),+) => {$(
        impl From<$number> for Json {
            fn from(number: $number) -> Self {
                Self(number.to_string())
            }
        }
    )+};
}

whole!(u8, u16, u32, u64, usize, bool);

impl From<f64> for Json {
    /// `null` for what JSON has no number for.
    fn from(number: f64) -> Self {
        match number.is_finite() {
            true => Self(format!("{number:?}")),
            false => Self("null".to_owned()),
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        let mut quoted = String::with_capacity(text.len() + 2);
        quoted.push('"');
        for letter in text.chars() {
            match letter {
                '"' | '\\' => quoted.extend(['\\', letter]),
                letter if letter.is_control() => {
                    // Those beyond the first plane are no control characters.
                    _ = write!(quoted, "\\u{:04x}", u32::from(letter));
                }
                letter => quoted.push(letter),
            }
        }
        quoted.push('"');
        Self(quoted)
    }
}

impl<T: Into<Self>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(|| Self("null".to_owned()), Into::into)
    }
}

impl From<JsonObject> for Json {
    fn from(object: JsonObject) -> Self {
        Self(format!("{{{}}}", object.0))
    }
}

/// An object, in the making.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonObject(String);

impl JsonObject {
    /// Adds a field, whose name needs no escapes.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Json>) -> Self {
        let comma = if self.0.is_empty() { "" } else { "," };
        _ = write!(self.0, "{comma}\"{name}\":{}", value.into().0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_json_has_them() {
        let object = JsonObject::default()
            .field("whole", u64::MAX)
            .field("real", 1.0)
            .field("small", 1e-9)
            .field("undefined", f64::NAN)
            .field("none", None::<u64>)
            .field("text", "a\"b\\c\n\u{7f}é")
            .field("list", Json::list([1_u64, 2]))
            .field("object", JsonObject::default().field("is", true));
        let expected = r#"{"whole":18446744073709551615,"real":1.0,"small":1e-9,"undefined":null,"none":null,"text":"a\"b\\c\u000a\u007fé","list":[1,2],"object":{"is":true}}"#;
        assert_eq!(Json::from(object).into_text(), expected);
    }
}
