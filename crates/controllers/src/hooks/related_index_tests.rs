//! The index against a model that looks at everything.

use proptest::prelude::*;
use serde_json::json;
use tidegate_model::LabelSelector;
use tidegate_model::kinds::Scope;

use super::super::spec::{By, Related, Target};
use super::*;

const SITES: usize = 4;
const PAGES: usize = 5;

#[derive(Clone, Debug)]
enum Step {
    Site {
        at: usize,
        page: Option<usize>,
        selected: bool,
    },
    SiteGone {
        at: usize,
    },
    Page {
        at: usize,
        site: Option<usize>,
    },
    PageGone {
        at: usize,
    },
    /// The same again, as after a new list.
    Repeat {
        at: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..SITES, proptest::option::of(0..PAGES), prop::bool::weighted(0.8))
            .prop_map(|(at, page, selected)| Step::Site { at, page, selected }),
        (0..SITES).prop_map(|at| Step::SiteGone { at }),
        (0..PAGES, proptest::option::of(0..SITES)).prop_map(|(at, site)| Step::Page { at, site }),
        (0..PAGES).prop_map(|at| Step::PageGone { at }),
        (0..PAGES).prop_map(|at| Step::Repeat { at }),
    ]
}

fn sites() -> Kind {
    Kind::new("example.com/v1", "Site", "sites")
}

fn pages() -> Kind {
    Kind::new("example.com/v1", "Page", "pages")
}

fn index() -> RelatedIndex {
    let hook = json!({
        "apiVersion": "tidegate.dev/v1", "kind": "ReconcileHook", "metadata": {"name": "h"},
        "spec": {
            "target": {"apiVersion": "example.com/v1", "kind": "Site"}, "endpoint": {"url": "http://a"},
            "selector": {"matchLabels": {"mine": "yes"}},
        },
    });
    let spec = HookSpec::read(&Object::from_value(hook).unwrap()).unwrap();
    let related = |name: &str, by| {
        let target = Target { api_version: "example.com/v1".into(), kind: "Page".into() };
        let related = Related { name: name.into(), target, by };
        Relation::new(&related, pages(), Scope::Namespaced, Scope::Namespaced).unwrap()
    };
    let fields = vec![("site".into(), "metadata.name".into())];
    let by_label = By::Labels { selector: LabelSelector::everything(), fields };
    let relations = vec![related("home", By::Field("spec.home".into())), related("pages", by_label)];
    RelatedIndex::new(sites(), spec, relations, Vec::new())
}

/// What there is, and the version of the last change.
#[derive(Default)]
struct World {
    sites: [Option<(Option<usize>, bool)>; SITES],
    pages: [Option<(Option<usize>, u64)>; PAGES],
    version: u64,
}

impl World {
    fn item(&self, kind: &Kind, name: &str, labels: serde_json::Value, spec: serde_json::Value) -> Item {
        let object = json!({"apiVersion": "example.com/v1", "kind": &*kind.kind, "spec": spec,
            "metadata": {"name": name, "namespace": "web", "labels": labels}});
        let version = version(self.version);
        Item { key: kind.key(Some("web"), name), version, json: object.to_string().into() }
    }

    fn site(&self, at: usize) -> Item {
        let (page, selected) = self.sites[at].unwrap();
        let home = page.map(|page| format!("page-{page}"));
        let mine = if selected { "yes" } else { "no" };
        self.item(&sites(), &format!("site-{at}"), json!({"mine": mine}), json!({"home": home}))
    }

    fn page(&self, at: usize) -> Item {
        let (site, version) = self.pages[at].unwrap();
        let labels = site.map_or(json!({}), |site| json!({"site": format!("site-{site}")}));
        let item = self.item(&pages(), &format!("page-{at}"), labels, json!({}));
        Item { version: self::version(version), ..item }
    }

    /// What belongs to a site, found by looking at every page.
    fn related(&self, at: usize) -> Option<Vec<(usize, usize, u64)>> {
        let (home, _) = self.sites[at].filter(|(_, selected)| *selected)?;
        let by_field = home.into_iter().filter_map(|page| Some((0, page, self.pages[page]?.1)));
        let labelled = |(page, found): (usize, &Option<(Option<usize>, u64)>)| {
            found.filter(|(site, _)| *site == Some(at)).map(|(_, version)| (1, page, version))
        };
        Some(by_field.chain(self.pages.iter().enumerate().filter_map(labelled)).collect())
    }

    fn apply(&mut self, index: &RelatedIndex, step: &Step) -> Touched {
        self.version += 1;
        let mut touched = Touched::default();
        match *step {
            Step::Site { at, page, selected } => {
                self.sites[at] = Some((page, selected));
                index.apply(&sites(), &[Change::Put(&self.site(at))], &mut touched);
            }
            Step::SiteGone { at } => {
                self.sites[at] = None;
                index.apply(&sites(), &[Change::Gone(&sites().key(Some("web"), &format!("site-{at}")))], &mut touched);
            }
            Step::Page { at, site } => {
                self.pages[at] = Some((site, self.version));
                index.apply(&pages(), &[Change::Put(&self.page(at))], &mut touched);
            }
            Step::PageGone { at } => {
                self.pages[at] = None;
                index.apply(&pages(), &[Change::Gone(&pages().key(Some("web"), &format!("page-{at}")))], &mut touched);
            }
            Step::Repeat { at } if self.pages[at].is_some() => {
                index.apply(&pages(), &[Change::Put(&self.page(at))], &mut touched);
            }
            Step::Repeat { .. } => {}
        }
        touched
    }
}

fn version(at: u64) -> ResourceVersion {
    ResourceVersion::from_raw(ResourceVersion::line_start(1_763_240_000).raw() + at)
}

fn site_key(at: usize) -> ObjectKey {
    sites().key(Some("web"), &format!("site-{at}"))
}

fn expected_digest(related: &[(usize, usize, u64)]) -> u64 {
    let keyed: Vec<(usize, ObjectKey, ResourceVersion)> = related
        .iter()
        .map(|(at, page, version)| (*at, pages().key(Some("web"), &format!("page-{page}")), self::version(*version)))
        .collect();
    digest(keyed.iter().map(|(at, key, version)| (*at, key, *version)))
}

proptest! {
    /// Exactly those sites are touched whose related pages are others now, and
    /// what the index would send is what a look at everything finds.
    #[test]
    fn touches_whom_it_concerns(steps in prop::collection::vec(step(), 1..40)) {
        let (index, mut world) = (index(), World::default());
        for step in &steps {
            let before: Vec<_> = (0..SITES).map(|at| world.related(at)).collect();
            let asked: Vec<_> = world.sites.to_vec();
            let touched = world.apply(&index, step);
            for (at, before) in before.iter().enumerate() {
                let now = world.related(at);
                let is_touched = touched.renewed_keys().contains(&site_key(at));
                // A site that asks for another place is touched for that alone.
                let asks_anew = asked[at] != world.sites[at];
                prop_assert!(is_touched == (*before != now) || (is_touched && asks_anew), "{:?}: site {}", step, at);
            }
        }
        let state = index.read();
        for at in 0..SITES {
            let found = state.asking.get(&site_key(at)).map(|places| state.digest(&site_key(at), places));
            prop_assert_eq!(found, world.related(at).map(|related| expected_digest(&related)));
        }
    }

    /// After a restart those are touched whose note says something else.
    #[test]
    fn an_audit_goes_by_the_notes(before in prop::collection::vec(step(), 1..20), after in prop::collection::vec(step(), 0..6)) {
        let (first, mut world) = (index(), World::default());
        before.iter().for_each(|step| drop(world.apply(&first, step)));
        let called: Vec<_> = (0..SITES).map(|at| world.related(at)).collect();
        after.iter().for_each(|step| drop(world.apply(&first, step)));
        let second = index();
        for (at, related) in called.iter().enumerate() {
            let note = related.as_ref().map(|related| Note { digest: expected_digest(related), answered: true });
            second.set_note(&site_key(at), note);
        }
        for at in (0..SITES).filter(|at| world.sites[*at].is_some()) {
            second.apply(&sites(), &[Change::Put(&world.site(at))], &mut Touched::default());
        }
        for at in (0..PAGES).filter(|at| world.pages[*at].is_some()) {
            second.apply(&pages(), &[Change::Put(&world.page(at))], &mut Touched::default());
        }
        let mut touched = Touched::default();
        second.audit(&mut touched);
        for (at, called) in called.iter().enumerate() {
            let now = world.related(at);
            prop_assert_eq!(touched.keys().contains(&site_key(at)), now.is_some() && *called != now, "site {}", at);
        }
    }
}

#[test]
fn notes_are_read_as_they_were_written() {
    for note in [Note { digest: 0, answered: true }, Note { digest: u64::MAX, answered: false }] {
        assert_eq!(Note::from_bytes(&note.to_bytes()), Some(note));
    }
    assert_eq!(Note::from_bytes(b"nonsense"), None);
}
