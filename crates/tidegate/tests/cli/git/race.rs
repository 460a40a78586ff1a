//! Pushes to different repositories that want the same: one wins, the other
//! is refused, and nothing is ever stored without being in force.

use std::thread;

use super::super::process::said;
use super::{CRD, Hosted, Tree, git, widget};

const ROUNDS: usize = 6;
const PUSHERS: usize = 4;

fn repository(name: &str) -> String {
    format!(
        "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {{name: {name}, namespace: default}}\nspec: {{}}\n"
    )
}

#[test]
fn of_many_repositories_that_define_one_object_one_wins() {
    let hosted = Hosted::start();
    hosted.tree.write("crd.yaml", CRD);
    for pusher in 0..PUSHERS {
        hosted.tree.write(&format!("r{pusher}.yaml"), &repository(&format!("r{pusher}")));
    }
    hosted.tree.commit().pushed();
    let trees: Vec<Tree> =
        (0..PUSHERS).map(|n| Tree::clone(&hosted.site, &format!("default/r{n}"), &format!("r{n}"))).collect();
    for round in 0..ROUNDS {
        let name = format!("w{round}");
        let outcomes: Vec<_> = thread::scope(|scope| {
            let pushes: Vec<_> = trees
                .iter()
                .map(|tree| {
                    tree.write(&format!("{name}.yaml"), &widget(&name, 1)).commit();
                    scope.spawn(|| tree.push(&[]))
                })
                .collect();
            pushes.into_iter().map(|push| push.join().unwrap()).collect()
        });
        let winners = outcomes.iter().filter(|said| said.code == Some(0)).count();
        assert_eq!(winners, 1, "{:?}", outcomes.iter().map(|said| &said.err).collect::<Vec<_>>());
        for (number, (tree, outcome)) in trees.iter().zip(&outcomes).enumerate() {
            if outcome.code == Some(0) {
                assert!(outcome.err.contains("+1 ~0 -0 objects"), "{}", outcome.err);
            } else {
                assert!(outcome.err.contains("refused: nothing has changed"), "{}", outcome.err);
                // Not stored, either.
                let bare = hosted.site.path(&format!("tidegate-data/repos/default/r{number}.git"));
                let head = said(&mut git(&bare, &["rev-parse", "--verify", "-q", "main"])).out;
                assert_ne!(head.trim(), tree.head());
                let upstream = if head.is_empty() { "--root" } else { head.trim() };
                if upstream == "--root" {
                    tree.git(&["update-ref", "-d", "HEAD"]).good();
                    tree.git(&["rm", "-q", "--cached", "-r", "."]).good();
                    std::fs::remove_file(tree.dir.join(format!("{name}.yaml"))).unwrap();
                } else {
                    tree.git(&["reset", "-q", "--hard", upstream]).good();
                }
            }
        }
    }
    assert_eq!(hosted.site.say("repo verify").good().matches("agree").count(), PUSHERS + 1);
}
