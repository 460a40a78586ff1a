//! The programs, each of a Go module in `tests/assets` that fixes its version
//! and those of all that it needs.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    Etcd,
    KubeApiserver,
    Kubectl,
    KubeControllerManager,
    Helm,
    Sops,
}

/// A folder of `tests/assets`.
struct Module {
    folder: &'static str,
    /// What it is there for; the version is that of this requirement.
    requires: &'static str,
    manifest: &'static str,
    sums: &'static str,
}

macro_rules! module {
    ($folder:literal, $requires:literal) => {
        Module {
            folder: $folder,
            requires: $requires,
            manifest: include_str!(concat!("../../../tests/assets/", $folder, "/go.mod")),
            sums: include_str!(concat!("../../../tests/assets/", $folder, "/go.sum")),
        }
    };
}

static ETCD: Module = module!("etcd", "go.etcd.io/etcd/server/v3");
static KUBERNETES: Module = module!("kubernetes", "k8s.io/kubernetes");
static HELM: Module = module!("helm", "helm.sh/helm/v3");
static SOPS: Module = module!("sops", "github.com/getsops/sops/v3");

/// Raised when programs are built in another way from the same modules.
const RECIPE: &str = "1";

impl Program {
    /// Smallest first: what can go wrong goes wrong early.
    pub const ALL: [Self; 6] =
        [Self::Etcd, Self::Kubectl, Self::KubeApiserver, Self::KubeControllerManager, Self::Sops, Self::Helm];

    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::Kubectl => "kubectl",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Helm => "helm",
            Self::Sops => "sops",
        }
    }

    /// `v1.36.3`, as its module requires it.
    pub fn version(self) -> &'static str {
        self.module().version()
    }

    /// The folder of `tests/assets` that it is built in.
    pub(crate) fn module_folder(self) -> &'static str {
        self.module().folder
    }

    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::KubeApiserver => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::KubeControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Helm => "helm.sh/helm/v3/cmd/helm",
            Self::Sops => "github.com/getsops/sops/v3/cmd/sops",
        }
    }

    /// With nothing in Go's own cache, modules fetched included.
    pub(crate) fn build_minutes(self) -> u32 {
        match self {
            Self::KubeApiserver => 5,
            Self::Etcd | Self::Kubectl | Self::Sops | Self::Helm => 2,
            Self::KubeControllerManager => 1,
        }
    }

    /// Without symbols, and with the version that the program tells: what
    /// comes from the proxy has no Git history to tell it from.
    pub(crate) fn link_flags(self) -> String {
        let mut flags = "-s -w".to_owned();
        let mut set = |name: &str, value: &str| flags.push_str(&format!(" -X {name}={value}"));
        let version = self.version();
        match self {
            Self::KubeApiserver | Self::Kubectl | Self::KubeControllerManager => {
                let mut parts = version.trim_start_matches('v').split('.');
                let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
                    set(&format!("{package}.gitVersion"), version);
                    set(&format!("{package}.gitMajor"), major);
                    set(&format!("{package}.gitMinor"), minor);
                    set(&format!("{package}.gitTreeState"), "clean");
                    set(&format!("{package}.gitCommit"), "module-proxy");
                }
            }
            Self::Helm => set("helm.sh/helm/v3/internal/version.version", version),
            Self::Etcd | Self::Sops => {}
        }
        flags
    }

    fn module(self) -> &'static Module {
        match self {
            Self::Etcd => &ETCD,
            Self::KubeApiserver | Self::Kubectl | Self::KubeControllerManager => &KUBERNETES,
            Self::Helm => &HELM,
            Self::Sops => &SOPS,
        }
    }
}

impl Module {
    fn version(&self) -> &'static str {
        let mut required = self.manifest.lines().filter_map(|line| {
            let mut words = line.trim_start().trim_start_matches("require ").split_whitespace();
            (words.next()? == self.requires).then(|| words.next())?
        });
        required.find(|version| version.starts_with('v')).unwrap_or("of an unknown version")
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.version().trim_start_matches('v'))
    }
}

/// Names what all modules ask for, on this platform: another version of
/// anything is another folder.
pub(crate) fn fingerprint() -> String {
    let mut hash = Xxh3::new();
    for module in [&ETCD, &KUBERNETES, &HELM, &SOPS] {
        for part in [module.folder, module.manifest, module.sums] {
            hash.update(part.as_bytes());
            hash.update(&[0]);
        }
    }
    for part in [RECIPE, std::env::consts::OS, std::env::consts::ARCH] {
        hash.update(part.as_bytes());
    }
    format!("{:016x}", hash.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_modules() {
        for program in Program::ALL {
            let version = program.version();
            assert!(version.starts_with('v') && version.split('.').count() == 3, "{program:?} {version}");
        }
        assert!(Program::Kubectl.link_flags().contains(&format!("gitVersion={}", Program::Kubectl.version())));
    }

    /// Each staging module is replaced by the release that belongs to ours.
    #[test]
    fn staging_modules_are_of_the_same_release() {
        let staging = KUBERNETES.version().replacen("v1.", "v0.", 1);
        let replaced: Vec<&str> = KUBERNETES.manifest.lines().filter(|line| line.contains(" => ")).collect();
        assert!(replaced.len() >= 30, "{replaced:?}");
        for line in replaced {
            assert!(line.ends_with(&staging), "{line} is not {staging}");
        }
    }
}
