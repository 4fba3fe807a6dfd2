//! Spans and events for subscribers of `tracing`. Alone in its program: which callsites are on is decided for all threads.

use std::sync::{Arc, Mutex};

use kreon::Store;

/// Notes the names of spans, and messages of events, of the thread that it is the default of.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Notes {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("kreon_engine")
    }
    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        self.0
            .lock()
            .unwrap()
            .push(span.metadata().name().to_owned());
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Message<'a>(&'a mut String);
        impl tracing::field::Visit for Message<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    *self.0 = format!("{value:?}");
                }
            }
        }
        let mut text = String::new();
        event.record(&mut Message(&mut text));
        self.0.lock().unwrap().push(text);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_subscriber_gets_spans_and_events() {
    let folder = tempfile::tempdir().unwrap();
    let options = Store::options().background_inline();
    let notes = Notes::default();
    tracing::subscriber::with_default(notes.clone(), || {
        let store = options.open(folder.path().join("store")).unwrap();
        store.region("r").unwrap().put("k", "v").unwrap();
        store.checkpoint().unwrap();
    });
    let notes = notes.0.lock().unwrap();
    let at = |text: &str| notes.iter().position(|note| note == text);
    let (span, began, ended) = (at("spill"), at("a spill began"), at("a spill ended"));
    assert!(span.is_some() && span < began && began < ended);
    assert!(at("checkpoint") < at("a checkpoint is durable") && at("checkpoint").is_some());
}
