//! Every route, with the right that it needs.

use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Info, OpenApi, PathItem};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use crate::api::{
    approvals, describe, docs, executions, future, health, journal, metrics, nodes, openapi, output, past, projects,
    schedules, stream, tokens, why,
};
use crate::app::App;
use crate::auth::{Right, guard};
use crate::conductor;
use crate::conductor::error::in_their_shape;
use crate::error::ApiError;
use crate::extract::BODY_MAX;

/// How long an answer may take, from the head of the request on.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Routes as they are put together: none without a right.
struct Routes {
    app: App,
    router: OpenApiRouter<App>,
}

impl Routes {
    fn new(app: App) -> Routes {
        let info = Info::new("Punctual", env!("CARGO_PKG_VERSION"));
        let mut description = OpenApi::new(info, utoipa::openapi::Paths::new());
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = description.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
        Routes { app, router: OpenApiRouter::with_openapi(description) }
    }

    /// Adds routes that need a right. The guard stands before each of them, and the description names it.
    fn with(mut self, right: Right, (schemas, mut paths, methods): UtoipaMethodRouter<App>) -> Routes {
        paths.paths.values_mut().for_each(|item| describe(item, right));
        let guarded = methods.route_layer(from_fn_with_state((self.app.clone(), right), guard));
        self.router = self.router.routes((schemas, paths, guarded));
        self
    }
}

fn describe(item: &mut PathItem, right: Right) {
    let operations =
        [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch].into_iter().flatten();
    for operation in operations {
        let extension = Extensions::builder().add("x-right", right.as_str()).build();
        operation.extensions.get_or_insert_default().merge(extension);
        if right != Right::Nobody {
            operation.security = Some(vec![SecurityRequirement::new("token", [""; 0])]);
        }
    }
}

/// Answers in time, or says that it could not. Streams begin in time, and go on.
async fn in_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(ANSWERED_WITHIN, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ApiError::too_slow().into_response(),
    }
}

/// Nothing answers at this path.
fn no_route() -> ApiError {
    let detail = "there is nothing at this path; /api/docs lists every path";
    ApiError::new(StatusCode::NOT_FOUND, "no_route", detail)
}

/// Everything that a server answers: what [`crate::serve()`] puts behind a listener.
pub fn router(app: App) -> Router {
    let routes = Routes::new(app.clone())
        .with(Right::Edit, routes!(schedules::create))
        .with(Right::View, routes!(schedules::list))
        .with(Right::View, routes!(schedules::show))
        .with(Right::Edit, routes!(schedules::update))
        .with(Right::Edit, routes!(schedules::delete))
        .with(Right::Edit, routes!(schedules::pause))
        .with(Right::Edit, routes!(schedules::resume))
        .with(Right::View, routes!(schedules::preview))
        .with(Right::View, routes!(future::future))
        .with(Right::View, routes!(executions::show))
        .with(Right::Edit, routes!(executions::cancel))
        .with(Right::Edit, routes!(executions::trigger))
        .with(Right::View, routes!(approvals::list))
        .with(Right::Administer, routes!(approvals::approve))
        .with(Right::Administer, routes!(approvals::deny))
        .with(Right::View, routes!(output::list))
        .with(Right::View, routes!(output::follow))
        .with(Right::View, routes!(why::of_run))
        .with(Right::View, routes!(why::of_schedule))
        .with(Right::View, routes!(past::list))
        .with(Right::View, routes!(past::show))
        .with(Right::View, routes!(past::metrics))
        .with(Right::View, routes!(nodes::agents))
        .with(Right::View, routes!(nodes::nodes))
        .with(Right::View, routes!(journal::list))
        .with(Right::View, routes!(stream::journal))
        .with(Right::Administer, routes!(tokens::create))
        .with(Right::Administer, routes!(tokens::list))
        .with(Right::Administer, routes!(tokens::revoke))
        .with(Right::View, routes!(metrics::show))
        .with(Right::View, routes!(projects::list))
        .with(Right::View, routes!(openapi::document))
        .with(Right::View, routes!(docs::page))
        .with(Right::Edit, routes!(conductor::schedules::save))
        .with(Right::View, routes!(conductor::schedules::list))
        .with(Right::View, routes!(conductor::search::schedules))
        .with(Right::View, routes!(conductor::schedules::show))
        .with(Right::Edit, routes!(conductor::schedules::delete))
        .with(Right::Edit, routes!(conductor::schedules::pause))
        .with(Right::Edit, routes!(conductor::schedules::pause_by_get))
        .with(Right::Edit, routes!(conductor::schedules::resume))
        .with(Right::Edit, routes!(conductor::schedules::resume_by_get))
        .with(Right::View, routes!(conductor::executions::of_schedule))
        .with(Right::View, routes!(conductor::times::of_schedule))
        .with(Right::View, routes!(conductor::times::next_few))
        .with(Right::View, routes!(conductor::search::executions))
        .with(Right::Edit, routes!(conductor::bulk::pause))
        .with(Right::Edit, routes!(conductor::bulk::resume))
        .with(Right::View, routes!(conductor::tags::list))
        .with(Right::Edit, routes!(conductor::tags::put))
        .with(Right::Edit, routes!(conductor::tags::delete))
        .with(Right::Administer, routes!(conductor::admin::pause))
        .with(Right::Administer, routes!(conductor::admin::resume))
        .with(Right::Administer, routes!(conductor::admin::requeue))
        .with(Right::View, routes!(conductor::admin::test_timeout))
        .with(Right::Nobody, routes!(conductor::token::exchange))
        .with(Right::Edit, routes!(conductor::workflow::start))
        .with(Right::Edit, routes!(conductor::workflow::start_by_name))
        .with(Right::Edit, routes!(conductor::workflow::define))
        .with(Right::Edit, routes!(conductor::workflow::redefine))
        .with(Right::View, routes!(conductor::workflow::definitions))
        .with(Right::Nobody, routes!(health::live))
        .with(Right::Nobody, routes!(health::ready));
    let (router, description) = routes.router.split_for_parts();
    let mut description = serde_json::to_value(&description).expect("a description is plain data");
    describe::complete(&mut description);
    let page = docs::Page::new(&description);
    let description = openapi::Description::new(&description);
    router
        .fallback(|| async { no_route() })
        .method_not_allowed_fallback(|| async {
            let detail = "this path does not answer to this method; /api/docs lists every path with its methods";
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "no_method", detail)
        })
        .layer(axum::Extension(description))
        .layer(axum::Extension(page))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn(in_time))
        .layer(from_fn(in_their_shape))
        .with_state(app)
}
