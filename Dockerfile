# Builds an image with the program and the C library only. It has no shell, and only these two ever need security updates.

# The Rust version of rust-toolchain.toml, on Debian. Some crates need the C compiler of this image.
FROM rust:1.95.0-slim-bookworm AS rust
WORKDIR /build
# The etcd client needs protoc, and the allocator needs make.
RUN command -v protoc && command -v make || { apt-get update && apt-get install --yes --no-install-recommends make protobuf-compiler libprotobuf-dev; }

# Keep the manifests of all crates, and replace the code by empty crates.
FROM rust AS manifests
COPY . .
RUN find . ! -type d ! -name Cargo.toml ! -name Cargo.lock -delete && for crate in . crates/*; do mkdir -p $crate/src && touch $crate/src/lib.rs; done

FROM rust AS build
# For a quick build of a slow program: --build-arg CARGO_PROFILE_RELEASE_OPT_LEVEL=0 --build-arg CARGO_PROFILE_RELEASE_LTO=off
ARG CARGO_PROFILE_RELEASE_OPT_LEVEL=3 CARGO_PROFILE_RELEASE_LTO=thin

# Build only the dependencies. Docker repeats this step only if a manifest changes. Remove the tables of tests and benchmarks
# ([[…]]) first, because cargo would look for their files.
COPY --from=manifests /build .
RUN sed -i '/^\[\[/,/^$/d' Cargo.toml && echo 'fn main() {}' > src/main.rs && cargo build --locked --release --features etcd

# Remove the fingerprints of the empty crates. Copied files keep their dates, which can be older than the empty crates, so cargo
# would not rebuild them.
COPY . .
RUN rm -rf target/release/.fingerprint/idmint-* && cargo build --locked --release --features etcd
# Copy the shared libraries that the program loads (listed by ldd) to the same paths in the image.
RUN mkdir /data /image && cp target/release/idmint /image/ \
    && ldd target/release/idmint | grep -o '/[^ ]*' | xargs cp --dereference --parents --target-directory /image

FROM scratch
LABEL org.opencontainers.image.title="idmint" \
      org.opencontainers.image.description="A networked id service: mints ids of many layouts, decodes them back, and never mints one twice" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /image/ /
# Set the owner, so that the program can write to a new named volume.
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532

# Use the environment instead of flags, so that `health` and `check` in the container use the same settings.
ENV IDMINT_HTTP__LISTEN=0.0.0.0:8080 \
    IDMINT_STORAGE__DATA_DIR=/data
# The volume stores the time up to which ids were minted. If it is lost, only the clock keeps new ids different from old ones.
# The root file system can be read-only.
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 CMD ["/idmint", "health"]

# A container must listen on all addresses to be reachable. `serve` refuses this (exit code 78) without tokens
# (IDMINT_HTTP__TOKENS) or client certificates (IDMINT_HTTP__TLS__CLIENT_CA). Set IDMINT_INSECURE_PUBLIC=1 instead if the port is
# published only on 127.0.0.1 or in a private network. `serve` also needs IDMINT_WORKER__EXCLUSIVE=true, your promise that no
# second node ever runs with the same slot.
ENTRYPOINT ["/idmint"]
CMD ["serve"]
