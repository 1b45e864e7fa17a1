//! Requests and notifications, one after another.

use std::error::Error;

use cohort_frontend::{Meaning, NameKind, word_at};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response, ResponseError};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, DidSaveTextDocument,
    Notification as _, PublishDiagnostics,
};
use lsp_types::request::{Completion, GotoDefinition, HoverRequest, Request as _};
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionOptions, CompletionParams,
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    GotoDefinitionParams, Hover, HoverContents, HoverParams, HoverProviderCapability,
    LanguageString, Location, MarkedString, OneOf, PublishDiagnosticsParams, SaveOptions,
    ServerCapabilities, TextDocumentPositionParams, TextDocumentSyncCapability,
    TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions, Url,
};
use serde_json::{Value, json};

use crate::documents::{Document, Documents};
use crate::positions;

type Failure = Box<dyn Error + Send + Sync>;

/// Serves until the editor ends it.
pub fn serve(connection: &Connection) -> Result<(), Failure> {
    let capabilities = ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Options(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::FULL),
                save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions {
                    include_text: Some(false),
                })),
                ..TextDocumentSyncOptions::default()
            },
        )),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        completion_provider: Some(CompletionOptions::default()),
        ..ServerCapabilities::default()
    };
    connection.initialize(serde_json::to_value(capabilities)?)?;
    let mut documents = Documents::default();
    for message in &connection.receiver {
        match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request)? {
                    return Ok(());
                }
                let response = answer(&documents, request);
                connection.sender.send(Message::Response(response))?;
            }
            Message::Notification(notification) => {
                for published in take(&mut documents, notification) {
                    connection.sender.send(Message::Notification(published))?;
                }
            }
            Message::Response(_) => {}
        }
    }
    Ok(())
}

/// What an editor tells; answered by the diagnostics of what has changed. What cannot be read is left out.
fn take(documents: &mut Documents, notification: Notification) -> Vec<Notification> {
    let changed = match notification.method.as_str() {
        DidOpenTextDocument::METHOD => {
            let Ok(params) =
                serde_json::from_value::<DidOpenTextDocumentParams>(notification.params)
            else {
                return vec![];
            };
            let document = params.text_document;
            documents.set(&document.uri, document.text);
            vec![document.uri]
        }
        DidChangeTextDocument::METHOD => {
            let Ok(params) =
                serde_json::from_value::<DidChangeTextDocumentParams>(notification.params)
            else {
                return vec![];
            };
            let url = params.text_document.uri;
            // The last one is all of the text.
            let Some(change) = params.content_changes.into_iter().last() else {
                return vec![];
            };
            documents.set(&url, change.text);
            vec![url]
        }
        DidSaveTextDocument::METHOD => {
            // Others may import what was saved.
            let all: Vec<(Url, String)> = documents
                .open
                .iter()
                .map(|(url, document)| (url.clone(), document.text.clone()))
                .collect();
            let urls = all.into_iter().map(|(url, text)| {
                documents.set(&url, text);
                url
            });
            urls.collect()
        }
        DidCloseTextDocument::METHOD => {
            let Ok(params) =
                serde_json::from_value::<DidCloseTextDocumentParams>(notification.params)
            else {
                return vec![];
            };
            documents.open.remove(&params.text_document.uri);
            vec![params.text_document.uri]
        }
        _ => return vec![],
    };
    let published = changed.into_iter().map(|url| {
        let document = documents.open.get(&url);
        let diagnostics = document.map(|document| document.published(&url));
        let params = PublishDiagnosticsParams::new(url, diagnostics.unwrap_or_default(), None);
        Notification::new(PublishDiagnostics::METHOD.to_owned(), params)
    });
    published.collect()
}

fn answer(documents: &Documents, request: Request) -> Response {
    let result = match request.method.as_str() {
        HoverRequest::METHOD => hover(documents, request.params),
        GotoDefinition::METHOD => definition(documents, request.params),
        Completion::METHOD => completion(documents, request.params),
        method => {
            let error = ResponseError {
                code: ErrorCode::MethodNotFound as i32,
                message: format!("cohort-lsp does not know {method}"),
                data: None,
            };
            return Response {
                id: request.id,
                result: None,
                error: Some(error),
            };
        }
    };
    match result {
        Ok(value) => Response::new_ok(request.id, value),
        Err(error) => {
            let code = ErrorCode::InvalidParams as i32;
            Response::new_err(request.id, code, error.to_string())
        }
    }
}

/// The document of a request, its place in bytes, and what is there.
fn place<'d>(
    documents: &'d Documents,
    at: &TextDocumentPositionParams,
) -> Option<(&'d Document, Meaning)> {
    let document = documents.open.get(&at.text_document.uri)?;
    let offset = positions::offset(&document.text, at.position);
    let checked = document.checked.as_ref()?;
    // Places are those of the text that was checked; names are good for longer.
    let found = match document.is_current {
        true => checked.at(document.file, &document.text, offset),
        false => {
            let mut place = checked.named(word_at(&document.text, offset)?)?;
            place.definition = None;
            Some(place)
        }
    };
    Some((document, found?))
}

fn hover(documents: &Documents, params: Value) -> serde_json::Result<Value> {
    let params: HoverParams = serde_json::from_value(params)?;
    let found = place(documents, &params.text_document_position_params);
    let hover = found.map(|(_, place)| Hover {
        contents: HoverContents::Scalar(MarkedString::LanguageString(LanguageString {
            language: "cohort".to_owned(),
            value: place.text,
        })),
        range: None,
    });
    serde_json::to_value(hover)
}

fn definition(documents: &Documents, params: Value) -> serde_json::Result<Value> {
    let params: GotoDefinitionParams = serde_json::from_value(params)?;
    let at = params.text_document_position_params;
    let found = place(documents, &at);
    let location: Option<Location> = found
        .and_then(|(document, place)| document.location(&at.text_document.uri, &place.definition?));
    serde_json::to_value(location)
}

fn completion(documents: &Documents, params: Value) -> serde_json::Result<Value> {
    let params: CompletionParams = serde_json::from_value(params)?;
    let url = params.text_document_position.text_document.uri;
    let Some(document) = documents.open.get(&url) else {
        return Ok(json!([]));
    };
    let names = match &document.checked {
        Some(checked) => checked.names(document.file),
        // Of a program that was never right the words of the language are known.
        None => cohort_frontend::names_of_the_language(),
    };
    let items = names.into_iter().map(|name| CompletionItem {
        label: name.name,
        kind: Some(match name.kind {
            NameKind::Keyword => CompletionItemKind::KEYWORD,
            NameKind::Function => CompletionItemKind::FUNCTION,
            NameKind::Constructor => CompletionItemKind::ENUM_MEMBER,
            NameKind::Type => CompletionItemKind::CLASS,
            NameKind::Dim | NameKind::Constant => CompletionItemKind::CONSTANT,
            NameKind::Parameter => CompletionItemKind::FIELD,
            NameKind::Variable => CompletionItemKind::VARIABLE,
        }),
        detail: (!name.text.is_empty()).then_some(name.text),
        ..CompletionItem::default()
    });
    serde_json::to_value(items.collect::<Vec<_>>())
}
