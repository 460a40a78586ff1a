//! GraphiQL, served from the binary: the page asks for a token and needs no
//! other host.

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

pub const PAGE: &str = include_str!("../../assets/graphiql/index.html");

struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
    gzipped: bool,
}

const JS: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

macro_rules! asset {
    ($name:literal, $content_type:expr) => {
        Asset {
            name: $name,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../../assets/graphiql/", $name)),
            gzipped: false,
        }
    };
    (gz $name:literal, $content_type:expr) => {
        Asset {
            name: $name,
            content_type: $content_type,
            bytes: include_bytes!(concat!("../../assets/graphiql/", $name, ".gz")),
            gzipped: true,
        }
    };
}

/// Code that everybody may read: there is no token in it.
static ASSETS: [Asset; 6] = [
    asset!(gz "graphiql.min.js", JS),
    asset!(gz "graphiql.min.css", CSS),
    asset!(gz "react.production.min.js", JS),
    asset!(gz "react-dom.production.min.js", JS),
    asset!("page.js", JS),
    asset!("page.css", CSS),
];

pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/graphiql/{name}", get(asset))
}

async fn asset(Path(name): Path<String>) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut response =
        ([(header::CONTENT_TYPE, asset.content_type), (header::CACHE_CONTROL, "max-age=3600")], asset.bytes)
            .into_response();
    if asset.gzipped {
        response.headers_mut().insert(header::CONTENT_ENCODING, header::HeaderValue::from_static("gzip"));
    }
    response
}
