//! Loads a configuration: merges its layers, then checks the rules that concern several settings.

use std::collections::BTreeMap;
use std::path::Path;

use super::configuration::Config;
use super::error::ConfigError;
use super::layers::Layers;
use super::storage::Engine;
use super::worker::Surroundings;

impl Config {
    /// Reads the defaults, `file`, the environment variables in `env` with the prefix `IDMINT_`,
    /// and `flags`, in this order. Later layers override earlier layers.
    ///
    /// Tables are merged key by key, while lists and single values replace earlier ones. `flags`
    /// has the same structure as the file (`{ http = { listen = "…" } }`). `env` is the whole
    /// environment, because variables without the prefix contain the host name and show if the
    /// process runs under Kubernetes.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if a file cannot be read or is not TOML, a key is unknown, a value
    /// is out of bounds (even if a later layer replaces it), or settings conflict. No service was
    /// started, and the exit code is 78.
    pub fn load(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        flags: toml::Table,
    ) -> Result<Self, ConfigError> {
        let (mut layers, surroundings) = read_layers(file, env)?;
        layers.add_flags(flags)?;
        Self::checked(&layers, Some(&surroundings))
    }

    /// Reads the same layers as [`load`](Self::load), for a command that runs no node. Such a
    /// command uses no slot, so the configuration need not give this process one.
    ///
    /// # Errors
    /// Returns the errors of [`load`](Self::load), with two exceptions: a second process may have
    /// the same slot, and the host name need not contain the number of the slot.
    pub fn load_without_slot(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let (layers, _) = read_layers(file, env)?;
        Self::checked(&layers, None)
    }

    /// Reads the defaults and the environment variables in `env` with the prefix `IDMINT_`. Rules
    /// that concern several settings are not checked, because the node on this machine may read the
    /// other settings from a file.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if a key is unknown or a value is out of bounds.
    pub fn from_environment(
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        read_layers(None, env)?.0.merge()
    }

    /// Merges the layers, and checks the rules that concern several settings.
    fn checked(layers: &Layers, here: Option<&Surroundings>) -> Result<Self, ConfigError> {
        let mut config = layers.merge()?;
        config.check(here, layers)?;
        config.origins = layers.origins();
        Ok(config)
    }

    /// Checks the rules that concern several settings. Each setting by itself is already known to
    /// be valid.
    fn check(&mut self, here: Option<&Surroundings>, layers: &Layers) -> Result<(), ConfigError> {
        self.http
            .tls
            .check()
            .map_err(|(key, problem)| layers.refusal(key, problem.to_owned()))?;
        if self.log.audit.as_deref() == Some(Path::new("")) {
            let problem = "must be a path; remove it if you want no audit trail".to_owned();
            return Err(layers.refusal("log.audit", problem));
        }
        let is_fleet = self.storage.engine == Engine::Etcd;
        self.numbers
            .rules()
            .map_err(|(key, problem)| layers.refusal(&key, problem))?;
        self.etcd
            .check(is_fleet)
            .map_err(|(key, problem)| layers.refusal(key, problem.to_owned()))?;
        let share = self.cluster.check(self.worker.slots, is_fleet);
        share.map_err(|problem| layers.refusal("cluster.slots", problem))?;
        self.worker
            .assign(here, is_fleet)
            .map_err(|refusal| layers.refusal(refusal.key(), refusal.to_string()))
    }
}

/// Reads the configuration file and environment variables. Each is checked before they are merged.
fn read_layers(
    file: Option<&Path>,
    env: impl Iterator<Item = (String, String)>,
) -> Result<(Layers, Surroundings), ConfigError> {
    let env: BTreeMap<String, String> = env.collect();
    let surroundings = Surroundings::read(&env);
    let mut layers = Layers::default();
    if let Some(path) = file {
        layers.add_file(path)?;
    }
    layers.add_environment(&env, surroundings.kubernetes)?;
    Ok((layers, surroundings))
}
