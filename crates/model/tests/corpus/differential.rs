//! Rules say the same in our machine as in `kube-cel`'s interpreter, on
//! objects that are made up from the schema.

use kube_cel::Validator;
use serde_json::{Map, Value};
use tidegate_model::schema::{Additional, Node, NodeKind, Schema};
use tidegate_model::yaml;

use crate::{definitions, folder};

const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
const OBJECTS_PER_SCHEMA: usize = 25;
const DEPTH_MAX: usize = 12;
/// Words that rules of the corpus ask for, or ask not to find.
const WORDS: [&str; 24] = [
    "",
    "*",
    "*.a.b",
    "-x",
    "/a",
    "/a//b",
    "/a/../b",
    "0s",
    "10.0.0.1",
    "5m",
    "CORS",
    "DaemonSet",
    "Exact",
    "HTTP",
    "HTTPS",
    "Hostname",
    "IPAddress",
    "PathPrefix",
    "ReplaceFullPath",
    "RequestRedirect",
    "TCP",
    "Terminate",
    "URLRewrite",
    "a.b",
];

#[test]
fn rules_agree_with_another_interpreter() {
    let Some(folder) = folder() else { return };
    let mut chance = Chance(SEED);
    for file in definitions(&folder) {
        let text = std::fs::read_to_string(&file).expect("a definition is readable");
        if !text.contains("x-kubernetes-validations") {
            continue;
        }
        let crd = yaml::parse(&text).expect("a definition is YAML");
        for version in crd["spec"]["versions"].as_array().expect("versions") {
            let pair = Pair::of(&version["schema"]["openAPIV3Schema"]);
            for _ in 0..OBJECTS_PER_SCHEMA {
                pair.compare(&mut chance, &file.display().to_string());
            }
        }
    }
}

/// One schema for both interpreters.
struct Pair {
    ours: Schema,
    /// The same without rules: what it refuses is not a rule's doing.
    structure: Schema,
    theirs: kube_cel::CompiledSchema,
    interpreter: Validator,
}

impl Pair {
    fn of(source: &Value) -> Self {
        let compile = |source: &Value| Schema::compile(source).expect("a schema of the corpus");
        let mut bare = source.clone();
        remove_rules(&mut bare);
        Self {
            ours: compile(source),
            structure: compile(&bare),
            theirs: kube_cel::compile_schema(source),
            interpreter: Validator::new(),
        }
    }

    fn compare(&self, chance: &mut Chance, place: &str) {
        let mut object = make(self.ours.root(), chance, 0);
        self.ours.default(&mut object).expect("the defaults of real kinds are small");
        let structure = self.structure.validate(&object, None);
        let found = self.ours.validate(&object, None);
        if found.iter().any(|error| error.message.starts_with("some validation rules were not checked")) {
            return;
        }
        let ours = found.iter().filter(|error| !structure.contains(error)).map(|error| error.message.as_str());
        let ours: Vec<&str> = ours.map(|message| message.splitn(3, ": ").last().unwrap_or(message)).collect();
        let theirs = self.interpreter.validate_compiled(&self.theirs, &object, None).err();
        let theirs = theirs.map(|errors| errors.into_vec()).unwrap_or_default();
        assert_eq!(ours.len(), theirs.len(), "{place}: {object}\n{ours:#?}\n{theirs:#?}");
        for error in theirs.iter().filter(|error| error.kind == kube_cel::ErrorKind::ValidationFailure) {
            assert!(ours.contains(&error.message.as_str()), "{place}: {object}\n{ours:#?}\n{error:?}");
        }
    }
}

fn remove_rules(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            keywords.remove("x-kubernetes-validations");
            keywords.values_mut().for_each(remove_rules);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_rules),
        _ => {}
    }
}

/// A value of the right types, with required fields and allowed values, that
/// is otherwise left to chance.
fn make(node: &Node, chance: &mut Chance, depth: usize) -> Value {
    if let Some(allowed) = node.enumeration() {
        return chance.pick(allowed).clone();
    }
    match &node.kind {
        NodeKind::Object(object) => {
            let mut fields = Map::new();
            for (name, child) in &object.properties {
                let is_told = object.required.contains(name) || depth == 0;
                if is_told || (depth < DEPTH_MAX && chance.below(10) < 4) {
                    fields.insert(name.to_string(), make(child, chance, depth + 1));
                }
            }
            if let Additional::Of(child) = &object.additional {
                fields.insert((*chance.pick(&WORDS)).to_owned(), make(child, chance, depth + 1));
            }
            Value::Object(fields)
        }
        NodeKind::Array(array) => (0..chance.below(4)).map(|_| make(&array.items, chance, depth + 1)).collect(),
        NodeKind::String | NodeKind::Any => (*chance.pick(&WORDS)).into(),
        NodeKind::Integer | NodeKind::IntOrString => chance.below(3).into(),
        NodeKind::Number => (chance.below(5) as f64 / 2.0).into(),
        NodeKind::Boolean => (chance.below(2) == 0).into(),
    }
}

/// A small generator: the same objects in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
