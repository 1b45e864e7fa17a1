//! Why a request has no result, as a response: a status code and an error as records have it.

use cohort_runtime::InstanceError;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use super::room::Held;

pub type Reply = Response<Full<Bytes>>;

/// Seconds after which a client that found no room may try again.
const RETRY_SECONDS: &str = "1";

#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub kind: &'static str,
    pub message: String,
    /// Whether the program can compute nothing any more.
    pub is_final: bool,
}

impl Refusal {
    pub fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Refusal {
        Refusal {
            status,
            kind,
            message: message.into(),
            is_final: false,
        }
    }

    /// The request is not one.
    pub fn bad(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    pub fn too_large(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }

    pub fn full() -> Refusal {
        Refusal::new(
            StatusCode::TOO_MANY_REQUESTS,
            "queue_full",
            "too much waits already; try again later",
        )
    }

    pub fn stopping() -> Refusal {
        Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "stopping",
            "the server is being stopped",
        )
    }

    pub fn internal(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// The engine has ended, and with it all that the server can do.
    pub fn ended(message: impl Into<String>) -> Refusal {
        Refusal {
            is_final: true,
            ..Refusal::internal(message)
        }
    }

    pub fn of(error: &InstanceError) -> Refusal {
        Refusal::new(status(error.kind), error.kind, error.message.clone())
    }

    pub fn reply(&self) -> Reply {
        let error = serde_json::json!({"error": {"kind": self.kind, "message": self.message}});
        reply(self.status, "application/json", format!("{error}\n"))
    }
}

/// The status of a request for one instance that failed for this reason.
pub fn status(kind: &str) -> StatusCode {
    match kind {
        "bad_input" | "shape_mismatch" => StatusCode::BAD_REQUEST,
        "deadline" | "time_limit" => StatusCode::GATEWAY_TIMEOUT,
        "cancelled" => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

pub fn reply(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let may_retry = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    if may_retry {
        headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
    }
    reply
}

/// The results of a request, and the room that they take until they are sent.
pub fn answer(
    status: StatusCode,
    content_type: &'static str,
    text: impl Into<Vec<u8>>,
    held: Held,
) -> Reply {
    let text = text.into();
    reply(
        status,
        content_type,
        Bytes::from_owner(Answer { text, _held: held }),
    )
}

struct Answer {
    text: Vec<u8>,
    _held: Held,
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}
