pub(in super::super) fn parse_check(text: &str) -> Result<(), String> {
    kube_cel::cel::Program::compile(text).map(|_| ()).map_err(|error| error.to_string())
}
