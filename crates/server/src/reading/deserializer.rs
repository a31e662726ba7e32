//! Values out of a tree. Errors know the path to what is wrong.

use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::node::Node;
use super::wrong::{Wrong, listed};

impl Node {
    fn found(&self) -> Unexpected<'_> {
        match self {
            Node::Null => Unexpected::Unit,
            Node::Bool(value) => Unexpected::Bool(*value),
            Node::Unsigned(value) => Unexpected::Unsigned(*value),
            Node::Signed(value) => Unexpected::Signed(*value),
            Node::Float(value) => Unexpected::Float(*value),
            Node::Text(text) | Node::Typed(text) => Unexpected::Str(text),
            Node::List(_) => Unexpected::Seq,
            Node::Object(_) => Unexpected::Map,
        }
    }

    /// What a text of a query stands for, where a number or a boolean is wanted.
    fn typed(self) -> Node {
        let Node::Typed(text) = self else { return self };
        let number = || text.parse().map(Node::Unsigned).or_else(|_| text.parse().map(Node::Signed)).ok();
        let decimal = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Node::Float);
        match text.as_str() {
            "true" => Node::Bool(true),
            "false" => Node::Bool(false),
            // Numbers begin like numbers: `inf` and `+1` are texts.
            _ if text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) => {
                number().or_else(decimal).unwrap_or(Node::Text(text))
            }
            _ => Node::Text(text),
        }
    }
}

macro_rules! typed {
    ($($name:ident)+) => {
        $(fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
            self.typed().deserialize_any(visitor)
        })+
    };
}

impl<'de> Deserializer<'de> for Node {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self {
            Node::Null => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(value),
            Node::Unsigned(value) => visitor.visit_u64(value),
            Node::Signed(value) => visitor.visit_i64(value),
            Node::Float(value) => visitor.visit_f64(value),
            Node::Text(text) | Node::Typed(text) => visitor.visit_string(text),
            Node::List(items) => visitor.visit_seq(Items { items: items.into_iter(), index: 0 }),
            Node::Object(fields) => visitor.visit_map(Fields { fields: fields.into_iter(), next: None }),
        }
    }

    typed! {
        deserialize_bool deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_i8 deserialize_i16
        deserialize_i32 deserialize_i64 deserialize_f32 deserialize_f64
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let (Node::Text(text) | Node::Typed(text)) = self else {
            return Err(Wrong::invalid_type(self.found(), &visitor));
        };
        let wanted = (&visitor as &dyn Expected).to_string();
        visitor.visit_str(&text).map_err(|wrong: Wrong| wrong.of_text(&text, &wanted))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self == Node::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    /// Fields have names: a list of their values is none.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self {
            Node::Object(_) => self.deserialize_any(visitor),
            other => Err(Wrong::invalid_type(other.found(), &"an object")),
        }
    }

    /// All enums here are words.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self {
            Node::Text(word) | Node::Typed(word) => visitor.visit_enum(word.into_deserializer()),
            other => Err(Wrong::invalid_type(other.found(), &listed(words).as_str())),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct seq tuple tuple_struct map identifier
    }
}

/// The fields of an object, in the order in which they were sent.
struct Fields {
    fields: std::vec::IntoIter<(String, Node)>,
    next: Option<(String, Node)>,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        self.next = self.fields.next();
        let Some((name, _)) = &self.next else { return Ok(None) };
        seed.deserialize(Node::Text(name.clone())).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let (name, value) = self.next.take().ok_or_else(|| Wrong::custom("a value without a name"))?;
        seed.deserialize(value).map_err(|wrong| wrong.within(name))
    }
}

/// The items of a list.
struct Items {
    items: std::vec::IntoIter<Node>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(item).map(Some).map_err(|wrong| wrong.within(format!("[{index}]")))
    }
}
