//! A user of the cluster as Git names people.

use std::sync::Arc;

use serde_json::Value;

/// A name that no mail client and no log has to wrap.
const NAME_CHARS_MAX: usize = 256;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Person {
    pub name: Arc<str>,
    pub email: Arc<str>,
}

/// From the `userInfo` of an admission; `None` if it names nobody.
pub fn person(user_info: &Value, cluster: &str) -> Option<Person> {
    let name = clean(user_info["username"].as_str()?);
    if name.is_empty() {
        return None;
    }
    let email = email_of(user_info).or_else(|| is_email(&name).then(|| name.clone()));
    let email = email.unwrap_or_else(|| format!("{}@users.noreply.{cluster}", local_part(&name)));
    Some(Person { name: name.into(), email: email.into() })
}

/// The first of `extra` whose key is `email` or ends in `/email`.
fn email_of(user_info: &Value) -> Option<String> {
    let extra = user_info.get("extra")?.as_object()?;
    let is_key = |key: &str| key.rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case("email"));
    let values = extra.iter().filter(|(key, _)| is_key(key)).filter_map(|(_, values)| values.get(0)?.as_str());
    values.map(str::to_owned).find(|text| is_email(text))
}

fn is_email(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() && !"<>()[],;:\"\\".contains(c);
    text.len() <= 254
        && text.chars().all(is_plain)
        && text.split_once('@').is_some_and(|(local, domain)| {
            !local.is_empty() && domain.contains('.') && !domain.contains('@') && !domain.starts_with('.')
        })
}

/// What Git would strip or misread is no part of a name.
fn clean(name: &str) -> String {
    let kept = name.chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>'));
    kept.take(NAME_CHARS_MAX).collect::<String>().trim().to_owned()
}

/// `system:serviceaccount:ns:name` → `system.serviceaccount.ns.name`.
fn local_part(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '.' };
    let local: String = name.chars().map(plain).collect();
    let local = local.trim_matches('.');
    if local.is_empty() { "user".into() } else { local.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(user_info: Value, expected: &str) {
        let found = person(&user_info, "prod").map(|person| format!("{} <{}>", person.name, person.email));
        assert_eq!(found.as_deref().unwrap_or("-"), expected);
    }

    #[test]
    fn names_and_addresses() {
        check(json!({"username": "alice"}), "alice <alice@users.noreply.prod>");
        check(json!({"username": "alice", "extra": {"email": ["a@x.org"]}}), "alice <a@x.org>");
        check(json!({"username": "alice", "extra": {"example.org/Email": ["a@x.org"]}}), "alice <a@x.org>");
        check(json!({"username": "alice", "extra": {"email": ["not one"]}}), "alice <alice@users.noreply.prod>");
        check(json!({"username": "bob@x.org"}), "bob@x.org <bob@x.org>");
        check(
            json!({"username": "system:serviceaccount:ns:robot"}),
            "system:serviceaccount:ns:robot <system.serviceaccount.ns.robot@users.noreply.prod>",
        );
    }

    #[test]
    fn hostile_names_stay_one_line() {
        check(json!({"username": "a\n<b> c"}), "ab c <ab.c@users.noreply.prod>");
        check(json!({"username": "x", "extra": {"email": ["a@b.c>\nauthor"]}}), "x <x@users.noreply.prod>");
        check(json!({"username": ""}), "-");
        check(json!({}), "-");
        check(json!({"username": "::"}), ":: <user@users.noreply.prod>");
    }
}
