//! Why a remote host gave us nothing, in words for whoever set it up.

use std::io;

/// Of what git says, for a message.
const MESSAGE_CHARS_MAX: usize = 500;
/// What git prints when the kernel ends a process that writes too large a file.
const FILE_TOO_LARGE: &str = "died of signal 25";

#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error("the host does not let us in: {message}; check the secret that secretRef names")]
    Unauthorized { message: String },
    #[error(
        "the host's key is not the one in `known_hosts`: compare both, and correct the file if the host has a new key ({message})"
    )]
    HostKey { message: String },
    #[error("the host's certificate is not trusted: {message}; put the certificate of its authority into `ca.crt`")]
    Certificate { message: String },
    #[error("there is no such repository, or it may not be seen: {message}; check url and secretRef")]
    NotFound { message: String },
    #[error("the remote repository has no branch `{branch}`: push it, or name another")]
    NoBranch { branch: String },
    #[error("the host cannot be reached: {message}")]
    Unreachable { message: String },
    #[error("the host sent nothing, or too little, for {seconds} s")]
    Stalled { seconds: u64 },
    #[error("it took longer than {seconds} s")]
    TooSlow { seconds: u64 },
    #[error("it is larger than {} MiB", bytes >> 20)]
    TooLarge { bytes: u64 },
    #[error("`git {command}` failed: {message}")]
    Failed { command: &'static str, message: String },
    #[error("failed to run `git {command}`")]
    Io { command: &'static str, source: io::Error },
}

impl RemoteError {
    /// One word, as conditions have it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unauthorized { .. } => "AuthenticationFailed",
            Self::HostKey { .. } => "HostKeyUnknown",
            Self::Certificate { .. } => "CertificateUntrusted",
            Self::NotFound { .. } => "RepositoryNotFound",
            Self::NoBranch { .. } => "BranchNotFound",
            Self::Unreachable { .. } => "Unreachable",
            Self::Stalled { .. } | Self::TooSlow { .. } => "TimedOut",
            Self::TooLarge { .. } => "TooLarge",
            Self::Failed { .. } | Self::Io { .. } => "FetchFailed",
        }
    }
}

/// What git's stderr amounts to, in the order in which one line explains the
/// others: a refused key also "cannot read from the remote repository".
const SIGNS: [(&str, Sign); 22] = [
    ("Host key verification failed", Sign::HostKey),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", Sign::HostKey),
    ("SSL certificate problem", Sign::Certificate),
    ("certificate verification failed", Sign::Certificate),
    ("SSL: no alternative certificate subject name", Sign::Certificate),
    ("Authentication failed", Sign::Unauthorized),
    ("could not read Username", Sign::Unauthorized),
    ("could not read Password", Sign::Unauthorized),
    ("Permission denied (", Sign::Unauthorized),
    ("error: 401", Sign::Unauthorized),
    ("error: 403", Sign::Unauthorized),
    ("Operation too slow", Sign::Stalled),
    ("not responding", Sign::Stalled),
    ("couldn't find remote ref", Sign::NoBranch),
    ("not found", Sign::NotFound),
    ("does not appear to be a git repository", Sign::NotFound),
    ("error: 404", Sign::NotFound),
    ("unable to access", Sign::Unreachable),
    ("ssh: ", Sign::Unreachable),
    ("Connection ", Sign::Unreachable),
    ("kex_exchange_identification", Sign::Unreachable),
    ("early EOF", Sign::Unreachable),
];

#[derive(Clone, Copy)]
enum Sign {
    Unauthorized,
    HostKey,
    Certificate,
    NotFound,
    NoBranch,
    Unreachable,
    Stalled,
}

/// What a failed call was about.
pub(crate) struct Asked<'a> {
    pub command: &'static str,
    pub branch: &'a str,
    pub stall_seconds: u64,
    pub file_bytes_max: u64,
}

pub(crate) fn classify(asked: &Asked<'_>, stderr: &str) -> RemoteError {
    let Asked { command, branch, stall_seconds, file_bytes_max } = *asked;
    if stderr.contains(FILE_TOO_LARGE) {
        return RemoteError::TooLarge { bytes: file_bytes_max };
    }
    let found = SIGNS.iter().find_map(|(text, sign)| Some((*sign, line_with(stderr, text)?)));
    let Some((sign, line)) = found else {
        return RemoteError::Failed { command, message: shorten(stderr.trim()) };
    };
    let message = shorten(line.trim_start_matches("fatal: ").trim_start_matches("error: "));
    match sign {
        Sign::Unauthorized => RemoteError::Unauthorized { message },
        Sign::HostKey => RemoteError::HostKey { message },
        Sign::Certificate => RemoteError::Certificate { message },
        Sign::NotFound => RemoteError::NotFound { message },
        Sign::NoBranch => RemoteError::NoBranch { branch: branch.to_owned() },
        Sign::Unreachable => RemoteError::Unreachable { message },
        Sign::Stalled => RemoteError::Stalled { seconds: stall_seconds },
    }
}

fn line_with<'a>(stderr: &'a str, text: &str) -> Option<&'a str> {
    stderr.lines().find(|line| line.contains(text)).map(str::trim)
}

fn shorten(text: &str) -> String {
    text.chars().take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_failure_has_its_word() {
        for (stderr, reason) in [
            ("fatal: Authentication failed for 'https://example.com/a.git/'\n", "AuthenticationFailed"),
            (
                "fatal: could not read Username for 'https://example.com': terminal prompts disabled",
                "AuthenticationFailed",
            ),
            ("fatal: unable to access 'https://a/': The requested URL returned error: 403", "AuthenticationFailed"),
            (
                "git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.",
                "AuthenticationFailed",
            ),
            ("Host key verification failed.\nfatal: Could not read from remote repository.", "HostKeyUnknown"),
            (
                "fatal: unable to access 'https://a/': SSL certificate problem: unable to get local issuer certificate",
                "CertificateUntrusted",
            ),
            (
                "fatal: unable to access 'https://a/': Operation too slow. Less than 1000 bytes/sec transferred the last 3 seconds",
                "TimedOut",
            ),
            ("fatal: couldn't find remote ref refs/heads/main", "BranchNotFound"),
            ("remote: Not Found\nfatal: repository 'https://a/b/' not found", "RepositoryNotFound"),
            ("fatal: unable to access 'https://a/': Could not resolve host: a", "Unreachable"),
            ("ssh: connect to host a port 22: Connection refused\r\nfatal: Could not read", "Unreachable"),
            ("error: index-pack died of signal 25\nfatal: fetch-pack: invalid index-pack output", "TooLarge"),
            ("fatal: something new", "FetchFailed"),
            ("", "FetchFailed"),
        ] {
            let asked = Asked { command: "fetch", branch: "main", stall_seconds: 3, file_bytes_max: 1 };
            assert_eq!(classify(&asked, stderr).reason(), reason, "{stderr}");
        }
    }
}
