//! Objects made up from every schema, and their mutants.

use serde_json::{Value, json};

use crate::chance::Chance;
use crate::make::make;
use crate::mutants::{mutate, sites};
use crate::plane::{Case, Tally, plane};

/// Another seed finds other objects; a failure prints the one that found it.
const SEED_VARIABLE: &str = "TIDEGATE_PARITY_SEED";
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
/// Of each served version. 37 versions, 100 objects each, about 200 a second on
/// two busy cores: 20 s.
const OBJECTS: usize = 20;
const MUTANTS_EACH: usize = 4;
const UPDATES: usize = 12;

fn seed() -> u64 {
    let given = std::env::var(SEED_VARIABLE).ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or(SEED);
    println!("{SEED_VARIABLE}={seed}");
    seed
}

#[test]
fn made_up_objects_and_their_mutants() {
    let mut chance = Chance::new(seed());
    let mut total = Tally::default();
    for (about, template, schema) in versions() {
        let mut cases = Vec::new();
        for _ in 0..OBJECTS {
            let object = object(&template, &schema, &mut chance);
            let mut places = Vec::new();
            sites(&schema, &object, "", &mut places);
            places.retain(|site| is_of_the_kind(&site.pointer));
            for _ in 0..MUTANTS_EACH {
                let mut mutant = object.clone();
                let site = chance.pick(&places);
                let done = mutate(&mut mutant, site, &mut chance);
                cases.push(Case { old: None, new: mutant, about: format!("{about}: {}: {done}", site.pointer) });
            }
            cases.push(Case { old: None, new: object, about: about.clone() });
        }
        add(&mut total, plane().compare(&cases));
    }
    println!("{} admitted, {} refused by both", total.admitted, total.refused);
    total.check();
    assert!(total.admitted * 5 > total.refused, "too few objects are good enough: {total:?}");
}

/// Transition rules see the old state.
#[test]
fn made_up_updates() {
    let mut chance = Chance::new(seed());
    let mut total = Tally::default();
    for (about, template, schema) in
        versions().into_iter().filter(|(_, _, schema)| schema.to_string().contains("ldSelf"))
    {
        let mut good = Vec::new();
        for _ in 0..UPDATES * 20 {
            let case = Case { old: None, new: object(&template, &schema, &mut chance), about: about.clone() };
            if plane().compare(std::slice::from_ref(&case)).admitted == 1 {
                good.push(case.new);
            }
            if good.len() == UPDATES {
                break;
            }
        }
        assert!(!good.is_empty(), "{about}: no object to update");
        let pairs = good.iter().flat_map(|old| good.iter().map(move |new| (old, new)));
        let cases = pairs.map(|(old, new)| Case { old: Some(old.clone()), new: new.clone(), about: about.clone() });
        add(&mut total, plane().compare(&cases.collect::<Vec<_>>()));
    }
    total.check();
    assert!(total.admitted > 0 && total.refused > 0, "updates are all alike: {total:?}");
}

fn add(total: &mut Tally, more: Tally) {
    total.admitted += more.admitted;
    total.refused += more.refused;
    total.differences.extend(more.differences);
}

/// What it is, an object without content, and its schema.
fn versions() -> Vec<(String, Value, Value)> {
    let mut found = Vec::new();
    for definition in &plane().definitions {
        let spec = &definition.value["spec"];
        for version in spec["versions"].as_array().unwrap().iter().filter(|version| version["served"] == true) {
            let api_version = format!("{}/{}", spec["group"].as_str().unwrap(), version["name"].as_str().unwrap());
            let mut metadata = json!({"name": "made-up"});
            if spec["scope"] == "Namespaced" {
                metadata["namespace"] = json!("default");
            }
            let about = format!("{api_version} {}", spec["names"]["kind"].as_str().unwrap());
            let template = json!({"apiVersion": api_version, "kind": spec["names"]["kind"], "metadata": metadata});
            found.push((about, template, version["schema"]["openAPIV3Schema"].clone()));
        }
    }
    found
}

/// From nearly empty to nearly full.
fn object(template: &Value, schema: &Value, chance: &mut Chance) -> Value {
    let optional = *chance.pick(&[0, 3, 8, 15, 25, 40]);
    let mut object = make(schema, chance, optional, 0);
    for (name, value) in template.as_object().unwrap() {
        object[name] = value.clone();
    }
    let spec = &schema["properties"]["spec"];
    if spec.is_object() && object["spec"].is_null() {
        object["spec"] = make(spec, chance, optional, 1);
    }
    // Written apart from the rest.
    object.as_object_mut().unwrap().remove("status");
    object
}

/// Names and types of the object itself are tested elsewhere.
fn is_of_the_kind(pointer: &str) -> bool {
    !pointer.is_empty() && !["/apiVersion", "/kind", "/metadata"].iter().any(|own| pointer.starts_with(own))
}
