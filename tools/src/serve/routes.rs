//! What is where: paths, and what they answer.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cohort_runtime::Limits;
use cohort_runtime::io::output::columns::Columns;
use cohort_runtime::serving::{Engine, Options};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use serde_json::json;
use tokio::sync::Notify;

use super::args::Arguments;
use super::body::Bodies;
use super::infer::Way;
use super::metrics::Metrics;
use super::refusal::{Refusal, Reply, answer, reply, status};
use super::room::Room;
use super::{arrow, json, kserve};

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
const PAGE: &str = include_str!("page.html");
/// The page loads nothing from elsewhere, and nothing that it shows runs.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Seconds until a request's results are wanted.
const DEADLINE: &str = "cohort-deadline";
const PRIORITY: &str = "cohort-priority";

/// All that requests share.
pub struct Service {
    engine: Engine,
    name: String,
    limits: Limits,
    bodies: Bodies,
    answers: Room,
    metrics: Metrics,
    deadline: Duration,
    in_flight: usize,
    window: usize,
    max_response: u64,
    is_stopping: AtomicBool,
    has_failed: AtomicBool,
    failed: Notify,
}

impl Service {
    pub fn new(engine: Engine, arguments: &Arguments, limits: Limits) -> Result<Service, Refusal> {
        let metrics = Metrics::new().map_err(|error| Refusal::internal(error.to_string()))?;
        let (in_flight, queued) = (arguments.in_flight as usize, arguments.max_queued as usize);
        Ok(Service {
            engine,
            name: arguments.name(),
            limits,
            bodies: Bodies::new(
                arguments.max_body,
                arguments.max_queued_memory,
                arguments.patience,
            ),
            answers: Room::new(arguments.max_queued_memory.max(arguments.max_response)),
            metrics,
            deadline: arguments.deadline,
            in_flight,
            // Enough to keep the engine full, and never all of the queue.
            window: (2 * in_flight).min(queued / 2).max(1),
            max_response: arguments.max_response,
            is_stopping: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            failed: Notify::new(),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// From now on, nothing new is taken.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Waits until the program can compute nothing any more.
    pub async fn fails(&self) {
        self.failed.notified().await;
    }

    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    pub async fn answer(&self, request: Request<Incoming>) -> Result<Reply, Infallible> {
        let begin = Instant::now();
        let route = Route::of(request.uri().path(), &self.name);
        let answered = match (route, request.method()) {
            (None, _) => Err(Refusal::new(
                StatusCode::NOT_FOUND,
                "not_found",
                format!("there is nothing at {}", request.uri().path()),
            )),
            (Some(route @ (Route::Infer | Route::KServe)), &Method::POST) => {
                let answered = self.infer(route, request, begin).await;
                let status = match &answered {
                    Ok(reply) => reply.status(),
                    Err(refusal) => refusal.status,
                };
                self.metrics.answered(status, begin.elapsed());
                if answered.as_ref().is_err_and(|refusal| refusal.is_final) {
                    self.has_failed.store(true, Ordering::Relaxed);
                    self.failed.notify_one();
                }
                answered
                    .map_err(|refusal| (route, refusal))
                    .or_else(|(route, refusal)| match route {
                        Route::KServe => Ok(kserve_error(&refusal)),
                        _ => Err(refusal),
                    })
            }
            (Some(Route::Infer | Route::KServe), _) => Ok(wrong_method("POST")),
            (Some(route), &Method::GET | &Method::HEAD) => self.get(route),
            (Some(_), _) => Ok(wrong_method("GET, HEAD")),
        };
        Ok(answered.unwrap_or_else(|refusal| refusal.reply()))
    }

    fn get(&self, route: Route) -> Result<Reply, Refusal> {
        let stats = self.engine.stats();
        let json = |value: serde_json::Value| reply(StatusCode::OK, JSON, format!("{value}\n"));
        Ok(match route {
            Route::Page => {
                let mut page = reply(StatusCode::OK, "text/html; charset=utf-8", PAGE);
                let policy = HeaderValue::from_static(POLICY);
                page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
                page
            }
            Route::Live if self.has_failed() => {
                return Err(Refusal::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "internal",
                    "the program can compute nothing any more",
                ));
            }
            Route::Live => json(json!({"live": true})),
            Route::Ready if self.is_stopping() || self.has_failed() => {
                return Err(Refusal::stopping());
            }
            Route::Ready => json(json!({"ready": true, "name": self.name})),
            Route::Stats => json(self.metrics.page(&self.name, self.in_flight, &stats)),
            Route::Metrics => {
                let text = self.metrics.text(&stats)?;
                reply(
                    StatusCode::OK,
                    "text/plain; version=0.0.4; charset=utf-8",
                    text,
                )
            }
            Route::Server => json(kserve::server()),
            Route::Model => json(kserve::model(self.engine.manifest(), &self.name)),
            Route::Infer | Route::KServe => wrong_method("POST"),
        })
    }

    async fn infer(
        &self,
        route: Route,
        request: Request<Incoming>,
        begin: Instant,
    ) -> Result<Reply, Refusal> {
        if self.is_stopping() || self.has_failed() {
            return Err(Refusal::stopping());
        }
        let form = Form::of(route, request.headers())?;
        let way = Way {
            engine: &self.engine,
            options: self.options(request.headers(), begin)?,
            window: self.window,
            max_response: self.max_response,
            room: &self.answers,
        };
        let manifest = self.engine.manifest();
        if form == Form::Arrow {
            // Whether results have a form there is known before they are computed.
            arrow::records(manifest, &Columns::of(manifest))?;
        }
        let body = self.bodies.read(request.into_body()).await?;
        let max_memory = self.limits.max_memory;
        let instance =
            |number: u64, text: &[u8]| json::instance(manifest, max_memory, number, text);
        let is_list = body.bytes.trim_ascii_start().first() == Some(&b'[');
        match form {
            Form::Arrow => {
                let table = arrow::Table::read(manifest, &body.bytes)?;
                let build = |row| table.instance(manifest, max_memory, row);
                let (columns, held) = way.run(table.count(), build).await?;
                let text = arrow::records(manifest, &columns)?;
                Ok(answer(StatusCode::OK, arrow::CONTENT_TYPE, text, held))
            }
            Form::Lines => {
                let lines = json::lines(&body.bytes);
                let build = |at: usize| instance(lines[at].0, lines[at].1);
                let (columns, held) = way.run(lines.len(), build).await?;
                let text = json::records(manifest, &columns, max_memory, false)?;
                Ok(answer(StatusCode::OK, LINES, text, held))
            }
            Form::Json if is_list => {
                let elements = json::elements(&body.bytes)?;
                let build = |at: usize| instance(at as u64 + 1, elements[at].as_bytes());
                let (columns, held) = way.run(elements.len(), build).await?;
                let text = json::records(manifest, &columns, max_memory, true)?;
                Ok(answer(StatusCode::OK, JSON, text, held))
            }
            Form::Json => {
                let (columns, held) = way.run(1, |_| instance(1, &body.bytes)).await?;
                let line = json::line(manifest, &columns, 0, max_memory)?;
                let error = columns.instances[0].error.as_ref();
                let status = error.map_or(StatusCode::OK, |error| status(error.kind));
                Ok(answer(status, JSON, line, held))
            }
            Form::KServe => {
                let line = kserve::line(manifest, &body.bytes)?;
                let (columns, held) = way.run(1, |_| instance(1, line.as_bytes())).await?;
                if let Some(error) = &columns.instances[0].error {
                    return Err(Refusal::of(error));
                }
                let record = json::line(manifest, &columns, 0, max_memory)?;
                let text = kserve::response(manifest, &self.name, &columns, &record)?;
                Ok(answer(StatusCode::OK, JSON, text, held))
            }
        }
    }

    /// What the headers ask for.
    fn options(&self, headers: &HeaderMap, begin: Instant) -> Result<Options, Refusal> {
        let text = |name: &str| {
            headers
                .get(name)
                .map(|value| value.to_str().unwrap_or_default())
        };
        let mut wait = self.deadline;
        if let Some(text) = text(DEADLINE) {
            let seconds = text.parse().ok().filter(|seconds: &f64| *seconds >= 0.0);
            let seconds = seconds.ok_or_else(|| {
                Refusal::bad(format!(
                    "{DEADLINE}: expected a number of seconds, found {text:?}"
                ))
            })?;
            // What is beyond a duration is beyond the server's own.
            wait = wait.min(Duration::try_from_secs_f64(seconds).unwrap_or(wait));
        }
        let priority = text(PRIORITY).map_or(Ok(0), |text| {
            text.parse().map_err(|_| {
                Refusal::bad(format!("{PRIORITY}: expected an integer, found {text:?}"))
            })
        })?;
        Ok(Options {
            priority,
            deadline: begin.checked_add(wait),
        })
    }
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Lines,
    Arrow,
    KServe,
}

impl Form {
    fn of(route: Route, headers: &HeaderMap) -> Result<Form, Refusal> {
        let given = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let given = String::from_utf8_lossy(given.unwrap_or_default()).to_ascii_lowercase();
        let media = given.split(';').next().unwrap_or_default().trim();
        match (route, media) {
            // What says nothing of itself, as `curl -d` does, is JSON.
            (Route::KServe, "" | JSON | "application/x-www-form-urlencoded") => Ok(Form::KServe),
            (Route::Infer, "" | JSON | "application/x-www-form-urlencoded") => Ok(Form::Json),
            (Route::Infer, LINES | "application/jsonl" | "application/jsonlines") => {
                Ok(Form::Lines)
            }
            (Route::Infer, arrow::CONTENT_TYPE) => Ok(Form::Arrow),
            _ => {
                let expected = match route {
                    Route::KServe => JSON.to_owned(),
                    _ => format!("{JSON}, {LINES} or {}", arrow::CONTENT_TYPE),
                };
                Err(Refusal::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "unsupported_media_type",
                    format!("expected {expected}, found {media:?}"),
                ))
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Page,
    Live,
    Ready,
    Stats,
    Metrics,
    Server,
    Model,
    Infer,
    KServe,
}

impl Route {
    fn of(path: &str, name: &str) -> Option<Route> {
        Some(match path {
            "/" => Route::Page,
            "/health" | "/v2/health/ready" => Route::Ready,
            "/v2/health/live" => Route::Live,
            "/stats" => Route::Stats,
            "/metrics" => Route::Metrics,
            "/infer" => Route::Infer,
            "/v2" | "/v2/" => Route::Server,
            _ => {
                let rest = path.strip_prefix("/v2/models/")?.strip_prefix(name)?;
                match rest.strip_prefix("/versions/1").unwrap_or(rest) {
                    "" => Route::Model,
                    "/ready" => Route::Ready,
                    "/infer" => Route::KServe,
                    _ => return None,
                }
            }
        })
    }
}

/// An error of KServe is a text.
fn kserve_error(refusal: &Refusal) -> Reply {
    let error = json!({"error": refusal.message, "kind": refusal.kind});
    reply(refusal.status, JSON, format!("{error}\n"))
}

fn wrong_method(allowed: &'static str) -> Reply {
    let refusal = Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("expected {allowed}"),
    );
    let mut reply = refusal.reply();
    reply
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}
