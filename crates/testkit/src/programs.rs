//! The programs that `cargo xtask assets` provides, as commands.

use std::process::Command;

use tidegate_assets::Places;
pub use tidegate_assets::Program;

pub fn command(program: Program) -> Command {
    let found = Places::from_env().and_then(|places| places.find(program));
    Command::new(found.unwrap_or_else(|missing| panic!("{missing}")))
}

/// What it prints; it must succeed.
pub fn output(command: &mut Command) -> String {
    let output = command.output().expect("a program starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

pub fn helm(args: &[&str]) -> String {
    output(command(Program::Helm).args(args))
}

/// What a file in the format of `sops` says to the holder of a key of age.
pub fn sops_decrypt(identity: &str, file: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, key) = (folder.path().join("s.yaml"), folder.path().join("key.txt"));
    std::fs::write(&path, file).expect("a file is written");
    std::fs::write(&key, identity).expect("a key is written");
    output(command(Program::Sops).env_clear().env("SOPS_AGE_KEY_FILE", key).arg("decrypt").arg(path))
}
