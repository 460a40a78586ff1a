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
