//! Loading: the layers over each other, then the rules between settings.

use std::collections::BTreeMap;
use std::path::Path;

use super::configuration::Config;
use super::error::ConfigError;
use super::layers::Layers;
use super::storage::Engine;
use super::worker::Surroundings;

impl Config {
    /// Reads the defaults, `file`, the variables under `IDMINT_` and `flags`, later ones over earlier ones.
    ///
    /// Tables are merged key by key; lists and single values replace. `env` is the whole environment: the host name
    /// and whether this is Kubernetes are read from it too. `flags` has the shape of the file
    /// (`{ http = { listen = "…" } }`).
    ///
    /// # Errors
    /// A file that cannot be read or is not TOML, an unknown key, a value out of bounds (even where a later layer
    /// replaces it), or settings that do not go together. Nothing has been started; exit code 78.
    pub fn load(
        file: Option<&Path>,
        env: impl Iterator<Item = (String, String)>,
        flags: toml::Table,
    ) -> Result<Self, ConfigError> {
        let env: BTreeMap<String, String> = env.collect();
        let surroundings = Surroundings::read(&env);

        let mut layers = Layers::default();
        if let Some(path) = file {
            layers.add_file(path)?;
        }
        layers.add_environment(&env, surroundings.kubernetes)?;
        layers.add_flags(flags)?;

        let mut config = layers.merge()?;
        config.check(&surroundings, &layers)?;
        config.origins = layers.origins();
        Ok(config)
    }

    /// Refuses settings that are each fine alone and do not go together.
    fn check(&mut self, surroundings: &Surroundings, layers: &Layers) -> Result<(), ConfigError> {
        self.http
            .tls
            .check()
            .map_err(|(key, problem)| layers.refusal(key, problem.to_owned()))?;
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
            .assign(surroundings, is_fleet)
            .map_err(|refusal| layers.refusal(refusal.key(), refusal.to_string()))
    }
}
