//! Starts all threads of the core, and converts panics to errors.
//!
//! A thread has a name. If the system refuses to start it, that is an [`Error`]. A panic in it is
//! caught, prints nothing, and becomes an [`Error`] as well. Everything that the thread owned is
//! dropped before the error is reported, so its channels are closed by then.
//!
//! With the cargo feature `inject` each thread can be made to panic, see [`inject`]. The test
//! `tests/rust/panics.rs` does so for every thread, and fails if a thread is started elsewhere.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::error::{Error, ErrorCode, Result, plain};
use crate::panic::caught;

/// Starts a thread that belongs to no scope. `failed` receives the error of a panic in it.
///
/// # Errors
/// `system.threads` if the system starts no more threads.
pub fn start<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
    failed: impl FnOnce(Error) + Send + 'static,
) -> Result<JoinHandle<Option<T>>> {
    Builder::new().name(label(name)).spawn(boundary(name, work, failed)).map_err(refused)
}

/// Starts a thread that ends before `scope` does. `failed` receives the error of a panic in it.
///
/// # Errors
/// `system.threads` if the system starts no more threads.
pub fn start_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'scope,
    failed: impl FnOnce(Error) + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Option<T>>> {
    let boundary = boundary(name, work, failed);
    Builder::new().name(label(name)).spawn_scoped(scope, boundary).map_err(refused)
}

/// Starts up to `count` threads. If the system refuses some of them, the others do all the work.
///
/// # Errors
/// That of the first thread.
pub fn start_several<H>(count: usize, mut begin: impl FnMut() -> Result<H>) -> Result<Vec<H>> {
    let mut handles = vec![begin()?];
    handles.extend((1..count).map_while(|_| begin().ok()));
    Ok(handles)
}

/// The first error of several threads.
#[derive(Debug, Default)]
pub struct FirstError(Mutex<Option<Error>>);

impl FirstError {
    /// Keeps the error, if it is the first.
    pub fn report(&self, error: Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Takes the error out.
    pub fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Runs code in the calling thread, and returns a panic as an error.
///
/// # Errors
/// `internal.panic`
pub fn guard<T>(name: &'static str, work: impl FnOnce() -> T) -> Result<T> {
    caught(|| {
        inject(name);
        work()
    })
    .map_err(|panic| {
        let message = format!(
            "the thread {name:?} failed: {panic}; this is a defect of urlset, please report it"
        );
        ErrorCode::InternalPanic.error(message)
    })
}

fn boundary<T>(
    name: &'static str,
    work: impl FnOnce() -> T,
    failed: impl FnOnce(Error),
) -> impl FnOnce() -> Option<T> {
    move || match guard(name, work) {
        Ok(result) => Some(result),
        Err(error) => {
            // the receiver of the error may have ended, or panic itself: nothing is left to do
            let _ = caught(|| failed(error));
            None
        }
    }
}

/// The name that the system shows, which is limited to 15 bytes.
fn label(name: &str) -> String {
    format!("urlset-{name}").chars().take(15).collect()
}

fn refused(error: io::Error) -> Error {
    let message = format!(
        "no thread could be started: {}; allow more processes (ulimit -u, or the limit of the \
         container), or use fewer threads (--threads)",
        plain(&error)
    );
    ErrorCode::SystemThreads.error(message).caused_by(error)
}

/// Panics if `point` is armed by the environment variable `URLSET_PANIC`: `POINT`, or `POINT@3` for
/// the third time that a thread passes it. Without the feature `inject` it does nothing.
#[inline]
pub fn inject(point: &str) {
    #[cfg(feature = "inject")]
    armed::pass(point);
    let _ = point;
}

/// The point of panic that is armed.
#[cfg(feature = "inject")]
pub mod armed {
    use std::sync::{LazyLock, Mutex, PoisonError};

    static ARMED: LazyLock<Mutex<Option<(String, u32)>>> =
        LazyLock::new(|| Mutex::new(std::env::var("URLSET_PANIC").ok().map(|text| read(&text))));

    fn read(text: &str) -> (String, u32) {
        let (point, times) = text.split_once('@').unwrap_or((text, "1"));
        (point.to_owned(), times.parse().unwrap_or(1))
    }

    /// Arms a point, as the environment variable does.
    pub fn arm(text: &str) {
        *ARMED.lock().unwrap_or_else(PoisonError::into_inner) = Some(read(text));
    }

    /// Disarms, and returns whether a thread has panicked.
    pub fn disarm() -> bool {
        let armed = ARMED.lock().unwrap_or_else(PoisonError::into_inner).take();
        armed.is_none_or(|(_, left)| left == 0)
    }

    pub(crate) fn pass(point: &str) {
        let mut armed = ARMED.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match armed.as_mut() {
            Some((at, left)) if at == point && *left > 0 => {
                *left -= 1;
                *left == 0
            }
            _ => false,
        };
        drop(armed);
        assert!(!now, "injected at {point}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_panic_is_reported_after_everything_was_dropped() {
        let (held, closed) = channel::<()>();
        let (report, reported) = channel();
        let work = move || {
            let _held = held;
            panic!("two\nlines {}", 1);
        };
        let thread = start("test", work, move |error| report.send(error).unwrap()).unwrap();
        let error = reported.recv().unwrap();
        assert!(closed.try_recv().is_err());
        assert_eq!(error.code, ErrorCode::InternalPanic);
        assert!(error.message.contains("\"test\" failed: two lines 1 at rust/core/thread.rs:"));
        assert_eq!(thread.join().unwrap(), None::<()>);
    }

    #[test]
    fn a_scope_is_not_unwound() {
        let (report, reported) = channel();
        std::thread::scope(|scope| {
            let failed = move |error: Error| report.send(error.code.name()).unwrap();
            start_scoped(scope, "test", || panic!("no"), failed).unwrap().join().unwrap()
        })
        .unwrap_or(());
        assert_eq!(reported.recv(), Ok("internal.panic"));
    }
}
