# The image that the chart and `tidegate reverse install --print` run. It runs
# `tidegate serve` and `tidegate control`, too.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package tidegate

FROM debian:bookworm-slim
# git talks to the hosts: over HTTPS with the system's authorities, over SSH
# with its client, which does not start for a user without a name.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git openssh-client \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 65532 tidegate \
    && useradd --uid 65532 --gid 65532 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin tidegate \
    && install --directory --owner 65532 --group 65532 /var/cache/gitops-reverser
COPY --from=build /src/target/release/tidegate /usr/local/bin/tidegate
USER 65532:65532
# The default --work-dir. Nothing else is written: the root may be read-only.
VOLUME /var/cache/gitops-reverser
ENTRYPOINT ["/usr/local/bin/tidegate"]
