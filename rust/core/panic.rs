//! Panics that are caught and become errors, without the message that a panic prints.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

thread_local! {
    static SILENCED: Cell<bool> = const { Cell::new(false) };
    /// where the last silenced panic of this thread happened
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs code whose panics the caller catches, without the message that a panic prints.
pub fn silenced<T>(run: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
            if SILENCED.try_with(Cell::get).unwrap_or(false) {
                let place = panic.location().map(ToString::to_string).unwrap_or_default();
                let _ = PLACE.try_with(|last| last.replace(place));
            } else {
                before(panic);
            }
        }));
    });
    let before = SILENCED.replace(true);
    let result = run();
    SILENCED.set(before);
    result
}

/// Runs code. Returns the text and the place of a panic in one line, and prints nothing.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    silenced(|| catch_unwind(AssertUnwindSafe(run))).map_err(|panic| {
        let place = PLACE.with(RefCell::take);
        let text = text(&*panic).replace(char::is_control, " ");
        // the payload of a panic may itself panic when it is dropped
        std::mem::forget(panic);
        format!("{text} at {place}")
    })
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a text")
}
