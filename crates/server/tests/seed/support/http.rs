//! Requests to the server's own routes, in process.

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode, header};
use serde_json::Value;
use tower::ServiceExt;

use super::World;

impl World {
    /// What a path shows.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "GET {path}: {body}");
        body
    }

    /// Posts to a path, which answers with this status.
    pub(crate) async fn post(&self, path: &str, body: Value, expected: StatusCode) -> Value {
        let (status, answer) = self.send(Method::POST, path, Some(body)).await;
        assert_eq!(status, expected, "POST {path}: {answer}");
        answer
    }

    /// Changes what is at a path.
    pub(crate) async fn put(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.send(Method::PUT, path, Some(body)).await;
        assert_eq!(status, StatusCode::OK, "PUT {path}: {answer}");
        answer
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let text = body.map(|body| body.to_string()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.secret.reveal()))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONTENT_LENGTH, text.len())
            .body(Body::from(text))
            .expect("it is a request");
        let answer = self.router.clone().oneshot(request).await.expect("routes always answer");
        let status = answer.status();
        let bytes = to_bytes(answer.into_body(), usize::MAX).await.expect("the answer can be read");
        let value = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).expect("it is JSON") };
        (status, value)
    }
}

/// One field of every item of a list.
pub(crate) fn field(items: &Value, name: &str) -> Vec<Value> {
    items.as_array().expect("it is a list").iter().map(|item| item[name].clone()).collect()
}

/// Some fields of an item.
pub(crate) fn fields<const N: usize>(item: &Value, names: [&str; N]) -> [Value; N] {
    names.map(|name| item[name].clone())
}
