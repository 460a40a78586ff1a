//! What a schema cannot say of branches, folders and addresses.
//!
//! Invariant: a folder that passes stays below the branch's root on every
//! platform, and never names Git's own files.

use super::status::Reason;

/// As long as a path may be on the systems that will check it out.
const FOLDER_BYTES_MAX: usize = 1024;

/// Why an object is not in force, as its condition will say it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    pub reason: Reason,
    pub message: String,
}

impl Problem {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// A relative POSIX path: no leading `/`, no `..`, no `\`.
pub fn check_base_folder(folder: &str) -> Result<(), Problem> {
    let refuse = |why: &str| {
        let message = format!("spec.baseFolder `{folder}`: {why}; give a relative path such as `clusters/prod`");
        Err(Problem::new(Reason::InvalidFolder, message))
    };
    if folder.is_empty() || folder.len() > FOLDER_BYTES_MAX {
        return refuse(&format!("it has 1 to {FOLDER_BYTES_MAX} bytes"));
    }
    if folder.starts_with('/') {
        return refuse("it starts with `/`");
    }
    for segment in folder.split('/') {
        match segment {
            "" => return refuse("it has an empty segment"),
            "." | ".." => return refuse("it has a `.` or `..` segment"),
            segment if segment.eq_ignore_ascii_case(".git") => return refuse("`.git` is Git's own"),
            segment if !segment.bytes().all(is_folder_byte) => {
                return refuse("a segment has letters, digits, `.`, `_` and `-` alone");
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_folder_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')
}

/// The rules of `git check-ref-format --branch`.
pub fn check_branch(branch: &str) -> Result<(), Problem> {
    let is_bad_segment = |s: &str| s.is_empty() || s.starts_with('.') || s.ends_with(".lock");
    let is_bad_char = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
    let is_bad = branch.is_empty()
        || branch.len() > 255
        || branch == "@"
        || branch == "HEAD"
        || branch.starts_with('-')
        || branch.ends_with('.')
        || branch.contains("..")
        || branch.contains("@{")
        || branch.contains(is_bad_char)
        || branch.split('/').any(is_bad_segment);
    if is_bad {
        let message = format!("spec.branch `{branch}` is not a branch name; give one such as `main`");
        return Err(Problem::new(Reason::InvalidBranch, message));
    }
    Ok(())
}

/// HTTP(S) or SSH, never a local path and never an option of git.
pub fn check_repo_url(url: &str) -> Result<(), Problem> {
    let is_url = ["https://", "http://", "ssh://"].iter().any(|scheme| url.starts_with(scheme));
    let is_scp = || {
        let Some((host, path)) = url.split_once(':') else { return false };
        !host.is_empty() && !host.contains('/') && !host.starts_with('-') && !path.is_empty() && !path.starts_with("//")
    };
    let authority = url.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    if (!is_url && !is_scp()) || url.contains(|c: char| c.is_control() || c == ' ') || authority.starts_with('-') {
        let message =
            format!("spec.repoUrl `{url}`: give https://…, ssh://… or user@host:path of a repository on a Git server");
        return Err(Problem::new(Reason::InvalidUrl, message));
    }
    if is_url && authority.split_once('@').is_some_and(|(user, _)| user.contains(':')) {
        let message = "spec.repoUrl has a password in it: put it into the Secret that spec.secretRef names";
        return Err(Problem::new(Reason::InvalidUrl, message));
    }
    Ok(())
}

/// Whether one folder is the other or holds it.
pub fn folders_overlap(a: &str, b: &str) -> bool {
    let holds = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // Some file systems fold case: two folders that differ by it alone are one there.
    let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
    holds(&a, &b) || holds(&b, &a)
}

/// What tells two repositories apart: the host and the path. How one gets
/// there, as whom, and how it is spelled makes no other repository.
pub fn remote_name(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let url = url.strip_suffix(".git").unwrap_or(url).to_ascii_lowercase();
    let (place, first) = match url.split_once("://") {
        Some((_, place)) => (place, '/'),
        // `user@host:path`, as hosts of Git show it.
        None => (url.as_str(), ':'),
    };
    let (host, path) = place.split_once(first).unwrap_or((place, ""));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let usual = [":22", ":80", ":443"].iter().find_map(|port| host.strip_suffix(port));
    format!("{}/{}", usual.unwrap_or(host), path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders() {
        for good in ["a", "clusters/prod", "a.b/c_d-e", ".github/x"] {
            assert!(check_base_folder(good).is_ok(), "{good}");
        }
        let long = "x".repeat(1025);
        for bad in ["", "/a", "a/../b", "..", "a\\b", "a//b", "a/", ".git", "x/.GIT/y", "a b", "ä", long.as_str()] {
            let problem = check_base_folder(bad).unwrap_err();
            assert_eq!(problem.reason, Reason::InvalidFolder, "{bad}");
        }
    }

    #[test]
    fn branches() {
        for good in ["main", "feature/a", "v1.2", "a@b"] {
            assert!(check_branch(good).is_ok(), "{good}");
        }
        for bad in ["", "-x", "a..b", "a b", "x.lock", "a/.b", "HEAD", "@", "a//b", "a/", "x@{1}", "a*", "a.", "a\n"] {
            assert!(check_branch(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn addresses() {
        for good in ["https://git.example.com/a.git", "git@github.com:a/b.git", "ssh://git@host:2222/a.git"] {
            assert!(check_repo_url(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/srv/a.git",
            "file:///srv/a",
            "--upload-pack=x",
            "https://u:p@h/a",
            "ssh://-oProxyCommand=x/a",
            "-x:y",
        ] {
            assert!(check_repo_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn one_repository_has_many_addresses() {
        for url in [
            "https://git.example.com/a/b",
            "https://git.example.com/a/b.git",
            "https://robot@Git.Example.com:443/a/b/",
            "git@git.example.com:a/b.git",
            "ssh://git@git.example.com/a/b.git",
            "ssh://git.example.com:22/a/b",
        ] {
            assert_eq!(remote_name(url), "git.example.com/a/b", "{url}");
        }
        for url in ["https://git.example.com/a/c", "https://other.example.com/a/b", "https://git.example.com:8443/a/b"]
        {
            assert_ne!(remote_name(url), "git.example.com/a/b", "{url}");
        }
    }

    #[test]
    fn overlaps() {
        for (a, b, expected) in
            [("a", "a", true), ("a", "a/b", true), ("a/b", "a", true), ("a", "ab", false), ("x/A", "x/a", true)]
        {
            assert_eq!(folders_overlap(a, b), expected, "{a} {b}");
        }
    }
}
