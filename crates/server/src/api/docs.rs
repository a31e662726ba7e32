//! The description of the API as a page: made from the description itself, with nothing to load.

use std::fmt::Write;
use std::sync::Arc;

use axum::Extension;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// The page, as it is sent.
#[derive(Clone)]
pub(crate) struct Page(Arc<str>);

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}\
    h2{margin-top:3rem;border-bottom:1px solid}h3{font-family:ui-monospace,monospace;margin-top:2rem}\
    table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0}\
    code,pre{font-family:ui-monospace,monospace;font-size:.9em}.right{opacity:.7;font-weight:normal}";

impl Page {
    pub(crate) fn new(description: &Value) -> Page {
        let mut page = Html(String::new());
        page.raw("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Punctual API</title><style>");
        page.raw(STYLE);
        page.raw("</style><h1>Punctual API</h1><p>The same as JSON: <code>/api/openapi.json</code>.");
        page.raw("<p>Errors are problem documents (RFC 9457). What may go wrong with every request:");
        page.failures(&description["components"]);
        let mut tags: Vec<&str> =
            operations(description).filter_map(|(.., operation)| operation["tags"][0].as_str()).collect();
        tags.sort_unstable();
        tags.dedup();
        for tag in tags {
            page.element("h2", tag);
            for (path, method, operation) in operations(description).filter(|(.., it)| it["tags"][0] == tag) {
                page.operation(path, method, operation);
            }
        }
        page.raw("<h2>Schemas</h2>");
        for (name, schema) in entries(&description["components"]["schemas"]) {
            page.schema(name, schema);
        }
        Page(page.0.into())
    }
}

/// The description of the API, to be read.
#[utoipa::path(get, path = "/api/docs", tag = "about", responses(
    (status = 200, description = "A page that needs nothing else", content_type = "text/html", body = String),
))]
pub(crate) async fn page(Extension(page): Extension<Page>) -> Response {
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, policy)];
    (headers, page.0.to_string()).into_response()
}

fn entries(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn operations(description: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    entries(&description["paths"]).flat_map(|(path, item)| entries(item).map(move |(method, it)| (path, method, it)))
}

/// A text of HTML. What is not its own is escaped.
struct Html(String);

impl Html {
    fn raw(&mut self, html: &str) {
        self.0 += html;
    }

    fn text(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '<' => self.0 += "&lt;",
                '>' => self.0 += "&gt;",
                '&' => self.0 += "&amp;",
                '"' => self.0 += "&quot;",
                other => self.0.push(other),
            }
        }
    }

    fn element(&mut self, name: &str, text: &str) {
        write!(self.0, "<{name}>").expect("a text takes everything");
        self.text(text);
        write!(self.0, "</{name}>").expect("a text takes everything");
    }

    fn operation(&mut self, path: &str, method: &str, operation: &Value) {
        self.raw("<h3>");
        self.text(&format!("{} {path}", method.to_uppercase()));
        self.raw(" <span class=\"right\">");
        self.text(operation["x-right"].as_str().unwrap_or_default());
        self.raw("</span></h3>");
        for said in ["summary", "description"] {
            if let Some(text) = operation[said].as_str() {
                self.element("p", text);
            }
        }
        let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !parameters.is_empty() {
            self.raw("<table><tr><th>Parameter<th>In<th>Meaning");
            for parameter in parameters {
                self.row(&[&parameter["name"], &parameter["in"], &parameter["description"]]);
            }
            self.raw("</table>");
        }
        if let Some((_, body)) = entries(&operation["requestBody"]["content"]).next() {
            self.element("p", &format!("Body: {}", kind_of(&body["schema"])));
        }
        self.raw("<table><tr><th>Answer<th>Body<th>Meaning");
        // What may go wrong with all of them is said once.
        for (status, response) in entries(&operation["responses"]).filter(|(_, it)| !it["$ref"].is_string()) {
            let body = entries(&response["content"]).next().map(|(_, body)| kind_of(&body["schema"]));
            self.row(&[&Value::from(status), &Value::from(body.unwrap_or_default()), &response["description"]]);
        }
        self.raw("</table>");
    }

    fn failures(&mut self, components: &Value) {
        self.raw("<table><tr><th>Answer<th>Code, for example<th>Meaning");
        for (name, response) in entries(&components["responses"]) {
            let problem = &components["examples"][name]["value"];
            self.row(&[&Value::from(problem["status"].to_string()), &problem["code"], &response["description"]]);
        }
        self.raw("</table>");
    }

    fn schema(&mut self, name: &str, schema: &Value) {
        self.element("h3", name);
        if let Some(text) = schema["description"].as_str() {
            self.element("p", text);
        }
        self.raw("<table>");
        let all = schema["allOf"].as_array().map(Vec::as_slice).unwrap_or_default();
        for part in std::iter::once(schema).chain(all) {
            if part["$ref"].is_string() {
                self.row(&[&Value::from("and all of"), &Value::from(kind_of(part)), &Value::Null]);
            }
            for (field, of) in entries(&part["properties"]) {
                self.row(&[&Value::from(field), &Value::from(kind_of(of)), &of["description"]]);
            }
        }
        for word in schema["enum"].as_array().into_iter().flatten() {
            self.row(&[word, &Value::Null, &Value::Null]);
        }
        self.raw("</table>");
        for example in schema["examples"].as_array().into_iter().flatten() {
            self.element("pre", &format!("{example:#}"));
        }
    }

    fn row(&mut self, cells: &[&Value]) {
        self.raw("<tr>");
        for cell in cells {
            self.raw("<td>");
            self.text(cell.as_str().unwrap_or_default());
        }
    }
}

/// What a schema is, in a word or two.
fn kind_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    let choices = schema["oneOf"].as_array().into_iter().flatten().map(kind_of);
    let kinds = match &schema["type"] {
        Value::String(kind) if kind == "array" => vec![format!("list of {}", kind_of(&schema["items"]))],
        Value::String(kind) => vec![kind.clone()],
        Value::Array(kinds) => kinds.iter().filter_map(|kind| Some(kind.as_str()?.to_owned())).collect(),
        _ => vec![],
    };
    let all: Vec<String> = kinds.into_iter().chain(choices).filter(|kind| kind != "null").collect();
    all.join(" or ")
}
