# A static binary on an empty base: nothing to log into, nothing to patch but idmint itself.

# The same version as rust-toolchain.toml. On Alpine, Rust links musl statically by default.
FROM rust:1.95.0-alpine AS build
# Headers for crates that compile C. Unpinned: Alpine keeps only the newest, so a pin would soon fail to build.
# hadolint ignore=DL3018
RUN apk add --no-cache musl-dev
WORKDIR /build

# The dependencies alone, around an empty crate: this layer is built again only when these two files change.
# Without the tables of tests and benchmarks ([[…]]), whose files cargo would look for.
COPY Cargo.toml Cargo.lock ./
RUN sed -i '/^\[\[/,/^$/d' Cargo.toml && mkdir src && touch src/lib.rs && echo 'fn main() {}' > src/main.rs \
    && cargo build --locked --release

# Files keep their dates from outside, which can be older than the empty crate's: forget that it was ever built.
COPY . .
RUN rm -rf target/release/.fingerprint/idmint-* && cargo build --locked --release && mkdir /data

FROM scratch
COPY --from=build /build/target/release/idmint /idmint
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

# idmint refuses an address other than loopback without tokens or client certificates unless told so. In a container it must listen to
# be reached at all, and what is let through to it is decided outside: publish the port on 127.0.0.1 or a private network.
# It also wants to hear that no second node has its slot: run it with IDMINT_WORKER__EXCLUSIVE=true where that is so.
ENTRYPOINT ["/idmint"]
CMD ["serve", "--insecure-public"]
