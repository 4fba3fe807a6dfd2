//! The end of a run under a fault: power cuts, a fault in the recovery from them, and what is left.

use kreon_base::ErrorKind;
use kreon_sim::{Call, Effect, Fault, Image, Keep};

use super::Trial;
use crate::check::{After, check, is_sound, said};
use crate::content::{self, Content};
use crate::silent::{self, Lie};
use crate::store::Store;

impl Trial {
    /// Without faults: what is there now, what a reopen finds, what power cuts leave, and a fault in
    /// the recovery from them; and that the store works again. Returns whether a fault was met.
    pub fn finish(mut self) -> Result<bool, String> {
        let met = self.has_met();
        self.never_flushes_again()?;
        if self.class.is_silent() && met {
            return self.finish_silently().map(|()| met);
        }
        if self.class.is_dead() && met {
            // To close it ends: it does not hang, and does not panic.
            self.store.abandon();
            self.store.device.clear_faults();
            return self.power_cuts().map(|()| met);
        }
        self.store.device.clear_faults();
        let found = content::read(self.engine()?).map_err(said("the last read"))?;
        let expected = self.store.model.content(self.store.model.end());
        if found != expected {
            return Err(format!(
                "at the end: {}",
                content::difference(&expected, &found)
            ));
        }
        self.check_is_poisoned_or_works()?;
        self.power_cuts()?;
        self.reopen()?;
        let content = self.store.model.content(self.store.model.end());
        is_sound(self.engine()?, &content)?;
        self.put_again()?;
        Ok(met)
    }

    /// What the device holds if nothing that was not flushed arrived, and if all or any did.
    fn power_cuts(&self) -> Result<(), String> {
        let (model, progress) = (&self.store.model, self.store.progress);
        let history = self.store.device.history();
        let crash = history.crash();
        let other = match self.n % 2 {
            0 => Keep::All,
            _ => Keep::SomeSectors { seed: self.n },
        };
        for (mut keep, after) in [(Keep::Nothing, After::Nothing), (other, After::Checkpoint)] {
            let image = crash.image(&mut keep);
            let image = self.fail_recovery(image).map_err(|what| {
                format!("a fault in the recovery from a power cut, {keep:?}: {what}")
            })?;
            check(image, model, progress, after, false)
                .map_err(|what| format!("power cut at the end, {keep:?}: {what}"))?;
        }
        Ok(())
    }

    /// Opens `image` with a fault in that, and cuts the power again; returns what is left then.
    fn fail_recovery(&self, image: Image) -> Result<Image, String> {
        let mut store = Store::on(image, &Content::new(), true);
        let call =
            [Call::Write, Call::Flush, Call::Read, Call::Allocate][(self.n / 2 % 4) as usize];
        let effect = match call {
            Call::Write if self.n.is_multiple_of(3) => Effect::Partial { sectors: 3 },
            _ => Effect::Io,
        };
        store
            .device
            .inject(Fault::nth(1 + self.n / 8 % 9, call, effect));
        match store.open().map(drop) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned) => {}
            Err(error) => return Err(format!("unexpected error {error}")),
        }
        store.abandon();
        let seed = self.n;
        Ok(store
            .device
            .history()
            .crash()
            .image(&mut Keep::SomeWrites { seed }))
    }

    /// Every answer is right or `Corruption`: of the open store, after a power cut, after closing.
    fn finish_silently(mut self) -> Result<(), String> {
        self.store.device.clear_faults();
        let now = self.store.progress;
        let lie = Lie {
            before: self.before,
            now,
            is_proven: self
                .behind
                .is_some_and(|behind| behind.durable_units < now.durable_units),
        };
        let image = self
            .store
            .device
            .history()
            .crash()
            .image(&mut Keep::Nothing);
        silent::judge(image, &self.store.model, &lie)
            .map_err(|what| format!("power cut: {what}"))?;
        self.store.abandon();
        let image = self.store.device.image();
        silent::judge(image, &self.store.model, &lie).map_err(|what| format!("closed: {what}"))
    }
}
