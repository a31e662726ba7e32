//! Reading what clients send, with errors in our own words: which field, what was found, what is wanted.
//!
//! In: the bytes of a body, or the pairs of a query. Out: a value of any type that can be deserialized, or an [`ApiError`] that names
//! the field. The text goes through a tree of our own ([`node::Node`]), whose deserializer has an error of our own ([`wrong::Wrong`]).

mod deserializer;
mod node;
mod wrong;

use serde::de::DeserializeOwned;

use self::node::Node;
use crate::error::ApiError;

/// A value from a body of JSON.
pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let node: Node = serde_json::from_slice(bytes).map_err(|error| not_json(&error))?;
    T::deserialize(node).map_err(|wrong| wrong.in_body())
}

/// A value from the parameters of a query.
pub(crate) fn query<T: DeserializeOwned>(pairs: Vec<(String, String)>) -> Result<T, ApiError> {
    let pairs = pairs.into_iter().map(|(name, value)| (name, Node::Typed(value)));
    T::deserialize(Node::Object(pairs.collect())).map_err(|wrong| wrong.in_query())
}

/// What is wrong with a text that is no JSON, and where.
fn not_json(error: &serde_json::Error) -> ApiError {
    let place = format!("line {}, column {}", error.line(), error.column());
    let is_deep = error.to_string().starts_with("recursion limit");
    ApiError::malformed(match () {
        () if error.is_eof() => format!("the body is no JSON: it ends too early, in {place}"),
        () if is_deep => format!("the body is nested too deeply, in {place}; use 128 levels at most"),
        () => format!("the body is no JSON: it cannot be read from {place} on"),
    })
}

#[cfg(test)]
mod tests;
