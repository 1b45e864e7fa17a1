//! Bodies of requests, of limited length, by themselves and together.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as _, Bytes, Incoming};
use tokio::time::timeout;

use super::refusal::Refusal;
use super::room::{Held, Room};

/// How much more of a body that is too long is read, so that its client sees why it is refused.
const DRAINED: u64 = 256 << 20;

/// How much bodies may have.
pub struct Bodies {
    most: u64,
    room: Room,
    /// A client that sends its body more slowly is not waited for.
    patience: Duration,
}

/// A body with the room that it takes.
pub struct Body {
    pub bytes: Bytes,
    _room: Held,
}

impl Bodies {
    /// With limits in bytes for one body and for all of them together.
    pub fn new(most: u64, together: u64, patience: Duration) -> Bodies {
        Bodies {
            most,
            room: Room::new(together.max(most)),
            patience,
        }
    }

    pub async fn read(&self, body: Incoming) -> Result<Body, Refusal> {
        let late = |_| {
            Refusal::new(
                StatusCode::REQUEST_TIMEOUT,
                "body_timeout",
                "the body did not come in time",
            )
        };
        (timeout(self.patience, self.read_all(body)).await).map_err(late)?
    }

    async fn read_all(&self, mut body: Incoming) -> Result<Body, Refusal> {
        let told = body.size_hint().exact();
        if told.is_some_and(|length| length > self.most) {
            return Err(self.too_large(body, 0).await);
        }
        // A length that is told takes no room from others, only what has come.
        let mut room = self.room.enter();
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| Refusal::bad(format!("the body broke off: {error}")))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if (bytes.len() + data.len()) as u64 > self.most {
                return Err(self.too_large(body, bytes.len() as u64).await);
            }
            room.grow(bytes.len() + data.len())?;
            bytes.extend_from_slice(&data);
        }
        Ok(Body {
            bytes: bytes.into(),
            _room: room,
        })
    }

    /// A client that still sends would not see an answer, so what it sends is taken, and dropped.
    async fn too_large(&self, mut body: Incoming, mut length: u64) -> Refusal {
        while let Some(Ok(frame)) = body.frame().await {
            length += frame.data_ref().map_or(0, |data| data.len() as u64);
            if length > self.most.saturating_add(DRAINED) {
                break;
            }
        }
        Refusal::too_large(format!(
            "the body is longer than {} bytes; raise the limit with --max-body",
            self.most
        ))
    }
}
