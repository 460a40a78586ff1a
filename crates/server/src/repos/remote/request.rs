//! A request to look at a remote now, as durable state: any manager, in this
//! process or another, sees it in the watch and answers it.

use chrono::{DateTime, Duration, SecondsFormat, Utc};
use serde_json::json;
use tidegate_model::Object;

use crate::api::Api;
use crate::api::error::ApiError;
use crate::repos::id::RepositoryId;

const REQUESTED: &str = "syncRequestedAt";
const HANDLED: &str = "syncHandledAt";

/// `is_running` while a fetch is under way, which may have missed what this is
/// about. One that waits to be answered is enough otherwise.
pub async fn request_sync(api: &Api, id: &RepositoryId, is_running: impl Fn() -> bool) -> Result<(), ApiError> {
    api.note_repository(&id.namespace, &id.name, |object| {
        let (requested, handled) = (time(object, REQUESTED), time(object, HANDLED));
        let is_waiting = requested.is_some() && requested > handled;
        if is_waiting && !is_running() {
            return Ok(None);
        }
        let at = next(Utc::now(), requested.max(handled));
        Ok(Some(json!({REQUESTED: at.to_rfc3339_opts(SecondsFormat::Micros, true)})))
    })
    .await
}

/// It only goes up, whatever the clock does.
fn next(now: DateTime<Utc>, before: Option<DateTime<Utc>>) -> DateTime<Utc> {
    let least = before.map(|before| before + Duration::microseconds(1));
    least.map_or(now, |least| least.max(now))
}

fn time(object: &Object, field: &str) -> Option<DateTime<Utc>> {
    let text = object.status()?.get(field)?.as_str()?;
    Some(DateTime::parse_from_rfc3339(text).ok()?.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_only_go_up() {
        let now = Utc::now();
        assert_eq!(next(now, None), now);
        assert_eq!(next(now, Some(now - Duration::hours(1))), now);
        assert!(next(now, Some(now)) > now);
        assert!(next(now, Some(now + Duration::hours(1))) > now + Duration::hours(1));
    }
}
