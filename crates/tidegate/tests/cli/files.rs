//! Files that are named by flags: whatever they are, there is an answer, with
//! the file, the reason and what to do.

use std::io::Write as _;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::process::{Running, Site, said};

#[test]
fn files_without_an_end_and_folders_are_named() {
    let site = Site::new();
    let table = [
        ("serve --config FILE", 2, "the configuration FILE"),
        ("serve --tls-cert FILE --tls-key FILE", 1, "the certificate FILE"),
        ("whoami --token-file FILE", 1, "the token file FILE"),
        ("whoami --ca-file FILE", 1, "the certificates to trust FILE"),
    ];
    for (line, code, named) in table {
        for (file, reason) in [("/dev/zero", "bytes"), ("/dev", "is a directory: name a file in it")] {
            let mut command = site.client(&line.replace("FILE", file));
            if !line.contains("--token-file") {
                command.env("TIDEGATE_TOKEN", "token");
            }
            let refused = said(&mut command);
            let expected = named.replace("FILE", file);
            assert!(refused.err.contains(&expected) && refused.err.contains(reason), "{line}: {}", refused.err);
            assert_eq!(refused.code, Some(code), "{line}: {}", refused.err);
        }
    }
}

/// A pipe is what a shell's `<(command)` is.
#[test]
fn a_configuration_from_a_pipe() {
    let site = Site::new();
    let pipe = site.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let mut server = Running::start(site.serve_command().args(["--config", "pipe"]));
    // Opens when the server has, which waits for all of it.
    let mut writer = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    writer.write_all(b"data_dir: else").unwrap();
    writer.write_all(b"where\n").unwrap();
    drop(writer);
    server.err.until("\"message\":\"ready\"");
    assert!(site.path("elsewhere/admin.token").exists());
}
