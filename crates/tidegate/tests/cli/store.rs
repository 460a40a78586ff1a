//! `tidegate store` on a stopped server's directory.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use super::process::{QUIET, Running, Site, said};

/// A site that has served once, and the version of its products.
fn stopped_site() -> (Site, String) {
    let site = Site::new();
    let mut server = site.serve_with(QUIET);
    let list: Value = serde_json::from_str(&site.say("get products -o json").good()).unwrap();
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    (site, list["metadata"]["resourceVersion"].as_str().unwrap().to_owned())
}

fn serve_from(site: &Site, data_dir: &str) -> Running {
    let mut server = Running::start(site.serve_command().args(QUIET).args(["--data-dir", data_dir]));
    server.err.until("\"message\":\"ready\"");
    server
}

#[test]
fn a_running_server_is_not_disturbed() {
    let site = Site::new();
    let server = site.serve_with(QUIET);
    for line in ["store check", "store compact", "store export backup"] {
        let refused = site.say(line);
        assert_eq!(refused.code, Some(1), "{line}");
        assert!(refused.err.contains(&format!("in use by process {}", server.pid())), "{line}: {}", refused.err);
    }
    assert!(!site.path("backup").exists() && !site.path("backup.partial").exists(), "nothing is left behind");
}

#[test]
fn check_and_compact() {
    let (site, _) = stopped_site();
    assert!(site.say("store check").good().contains("all is well"));
    let said = site.say("store compact").good();
    assert!(said.contains(" KiB before, ") && said.contains(" KiB after"), "{said}");
    assert!(site.say("store check").good().contains("all is well"));
    let missing = site.say("store check --data-dir nowhere");
    assert_eq!(missing.code, Some(1));
    assert!(!site.path("nowhere").exists(), "a check creates nothing");
}

#[test]
fn a_moved_store_keeps_its_cursors_and_a_restored_one_ends_them() {
    let (site, version) = stopped_site();
    site.say("store export backup").good();
    assert_eq!(fs::metadata(site.path("backup")).unwrap().permissions().mode() & 0o777, 0o600);
    site.say("store import backup --data-dir moved").good();
    site.say("store import backup --data-dir restored --restore").good();
    assert_eq!(site.say("store import backup --data-dir moved").code, Some(1), "only into an empty directory");

    site.product("sofa", "Sofa");
    let watch = format!("watch products -o name --since {version} --count 1 --timeout 1m --token-file");
    let mut moved = serve_from(&site, "moved");
    let seen = site.say(&format!("{watch} moved/admin.token")).good();
    assert_eq!(seen, "ADDED products.catalog.gitstore.dev/sofa\n");
    moved.signal(Signal::TERM);
    moved.wait();

    let _restored = serve_from(&site, "restored");
    let expired = site.say(&format!("{watch} restored/admin.token"));
    assert_eq!(expired.code, Some(1));
    assert!(expired.err.contains("WATCH_EXPIRED"), "{}", expired.err);
}

#[test]
fn a_watch_over_a_restored_backup_shows_what_it_missed() {
    let site = Site::new();
    let mut server = site.serve_with(QUIET);
    let mut watch = Running::start(&mut site.client("watch products -o name"));
    watch.out.until("ADDED products.catalog.gitstore.dev/chair");
    watch.out.until("ADDED products.catalog.gitstore.dev/desk-lamp");
    server.signal(Signal::TERM);
    server.wait();

    site.say("store export backup").good();
    fs::remove_dir_all(site.path("tidegate-data/store")).unwrap();
    site.say("store import backup --restore").good();
    site.remove("chair.yaml");
    site.product("sofa", "Sofa");
    let _server = site.serve_with(QUIET);
    watch.err.until("reading the list again");
    let missed = [watch.out.next(), watch.out.next()];
    assert_eq!(missed, ["ADDED products.catalog.gitstore.dev/sofa", "DELETED products.catalog.gitstore.dev/chair"]);
}

#[test]
fn through_a_pipe_and_not_half() {
    let (site, _) = stopped_site();
    let exported = said(site.client("store export -").stdin(Stdio::null())).good();
    fs::write(site.path("piped"), &exported).unwrap();
    let piped = said(site.client("store import - --data-dir copy").stdin(File::open(site.path("piped")).unwrap()));
    assert!(piped.good().contains("imported"));

    let half: String = exported.lines().take(3).map(|line| format!("{line}\n")).collect();
    fs::write(site.path("half"), half).unwrap();
    let refused = site.say("store import half --data-dir broken");
    assert_eq!(refused.code, Some(1), "{}", refused.out);
    assert!(refused.err.contains("damaged"), "{}", refused.err);
}
