# The program, the C library it stands on, and nothing else: nothing to log into, nothing to patch but these two.

# The same version as rust-toolchain.toml, on Debian, with the C compiler that some crates need.
FROM rust:1.95.0-slim-bookworm AS rust
WORKDIR /build
# What the client of etcd and the allocator are built with.
RUN command -v protoc && command -v make || { apt-get update && apt-get install --yes --no-install-recommends make protobuf-compiler libprotobuf-dev; }

# The manifests of all crates, around empty crates.
FROM rust AS manifests
COPY . .
RUN find . ! -type d ! -name Cargo.toml ! -name Cargo.lock -delete && for crate in . crates/*; do mkdir -p $crate/src && touch $crate/src/lib.rs; done

FROM rust AS build
# A slower program is built quicker: --build-arg CARGO_PROFILE_RELEASE_OPT_LEVEL=0 --build-arg CARGO_PROFILE_RELEASE_LTO=off
ARG CARGO_PROFILE_RELEASE_OPT_LEVEL=3 CARGO_PROFILE_RELEASE_LTO=thin

# The dependencies alone: this layer is built again only when a manifest changes.
# Without the tables of tests and benchmarks ([[…]]), whose files cargo would look for.
COPY --from=manifests /build .
RUN sed -i '/^\[\[/,/^$/d' Cargo.toml && echo 'fn main() {}' > src/main.rs && cargo build --locked --release --features etcd

# Files keep their dates from outside, which can be older than the empty crates': forget that those were ever built.
COPY . .
RUN rm -rf target/release/.fingerprint/idmint-* && cargo build --locked --release --features etcd
# What the program loads at its start (ldd names it), at the paths where it looks for it.
RUN mkdir /data /image && cp target/release/idmint /image/ \
    && ldd target/release/idmint | grep -o '/[^ ]*' | xargs cp --dereference --parents --target-directory /image

FROM scratch
LABEL org.opencontainers.image.title="idmint" \
      org.opencontainers.image.description="A networked id service: mints ids of many layouts, decodes them back, and never mints one twice" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /image/ /
# With its owner, so that a new named volume can be written to.
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532

# In the environment rather than as flags, so that `health` and `check` run in the container see the same.
ENV IDMINT_HTTP__LISTEN=0.0.0.0:8080 \
    IDMINT_STORAGE__DATA_DIR=/data
# The record that keeps ids unique: lose it, and only the clock does. The root file system can be read-only.
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 CMD ["/idmint", "health"]

# In a container it must listen on all addresses to be reached at all. It refuses to (exit code 78) until callers need a
# token (IDMINT_HTTP__TOKENS) or a certificate (IDMINT_HTTP__TLS__CLIENT_CA), or IDMINT_INSECURE_PUBLIC=1 says that the port is published on 127.0.0.1 or a private
# network only. It also wants to hear that no second node has its slot: IDMINT_WORKER__EXCLUSIVE=true where that is so.
ENTRYPOINT ["/idmint"]
CMD ["serve"]
