//! What `kubectl apply` needs to run the operator in a cluster.

use crate::config::{ConfigKind, crds};

/// What may differ from one installation to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstallOptions {
    pub namespace: String,
    pub image: String,
    pub replicas: u32,
    /// The four definitions alone, for an operator that runs elsewhere.
    pub is_crds_only: bool,
}

/// YAML of several documents.
pub fn manifests(options: &InstallOptions) -> String {
    let mut documents: Vec<String> = ConfigKind::ALL.iter().map(|kind| crds::yaml(*kind).to_owned()).collect();
    if !options.is_crds_only {
        let rest = include_str!("../install/operator.yaml")
            .replace("NAMESPACE", &options.namespace)
            .replace("IMAGE", &options.image)
            .replace("REPLICAS", &options.replicas.to_string());
        documents.push(rest);
    }
    documents.join("---\n")
}

#[cfg(test)]
mod tests {
    use tidegate_model::yaml::parse_documents;

    use super::*;

    #[test]
    fn every_document_is_an_object() {
        let options = InstallOptions { namespace: "ops".into(), image: "i:1".into(), replicas: 2, is_crds_only: false };
        let documents = parse_documents(&manifests(&options)).unwrap();
        let kinds: Vec<_> =
            documents.iter().map(|document| document.value["kind"].as_str().unwrap().to_owned()).collect();
        assert_eq!(kinds.iter().filter(|kind| *kind == "CustomResourceDefinition").count(), 4);
        for kind in ["Deployment", "Service", "ClusterRole", "ValidatingWebhookConfiguration", "ServiceAccount"] {
            assert!(kinds.iter().any(|own| own == kind), "{kind}");
        }
    }
}
