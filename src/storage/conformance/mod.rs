//! What every engine has to do. Another engine joins [`on_every_engine`], and nothing else here changes.

mod equal_engines;
mod records;
mod starts;

use tempfile::TempDir;

use super::engine::EngineChoice;
use super::memory::MemoryEngine;
use super::start::Opened;

/// An engine with a store of its own, which can be opened again and again: closed in between, or as after a kill.
enum EngineUnderTest {
    Memory(MemoryEngine),
    Embedded(TempDir),
}

impl EngineUnderTest {
    fn every() -> [EngineUnderTest; 2] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        [EngineUnderTest::Memory(MemoryEngine::default()), EngineUnderTest::Embedded(folder)]
    }

    fn open(&self) -> Opened {
        match self {
            EngineUnderTest::Memory(engine) => engine.open(),
            EngineUnderTest::Embedded(folder) => {
                let choice = EngineChoice::Embedded { data_dir: folder.path().to_owned() };
                choice.open(0, None).expect("the folder is usable")
            }
        }
    }
}

/// Checks each engine, from an empty store on.
fn on_every_engine(check: impl Fn(&EngineUnderTest)) {
    EngineUnderTest::every().iter().for_each(check);
}
