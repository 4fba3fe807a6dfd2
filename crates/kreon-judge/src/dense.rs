//! A history in small numbers: registers and versions count from 0, events are in their order.

use std::collections::HashMap;

use crate::call::{Call, History, Register, Seen, State, Version, Violation};

/// The state of a register that holds nothing.
pub const ABSENT: u32 = 0;

/// The state of a register that holds something that nobody will ask for by its version. To a read:
/// anything.
pub const PRESENT: u32 = 1;

const FIRST_VERSION: u32 = 2;

/// A call in small numbers.
#[derive(Default)]
pub struct DenseCall {
    /// Ascending by register: what they must hold.
    pub reads: Vec<(u32, u32)>,
    /// Ascending by register: what they hold afterwards.
    pub writes: Vec<(u32, u32)>,
    /// Whether it must have happened before what the recovery found.
    pub is_durable: bool,
    /// Whether it is the recovery.
    pub is_recovery: bool,
    /// Whether it must have happened at all.
    pub returns: bool,
}

/// The beginning or the end of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// When.
    pub at: u64,
    /// Beginnings come first.
    pub is_return: bool,
    /// Which call.
    pub call: u32,
}

/// See the module's text.
pub struct Dense {
    /// The calls of the history, in its order; then the recovery, if there is one.
    pub calls: Vec<DenseCall>,
    /// In order.
    pub events: Vec<Event>,
    /// What the registers hold at first.
    pub before: Vec<u32>,
    /// How many versions there are, with the two that are none.
    pub versions: usize,
    registers: Vec<Register>,
    names: Vec<Version>,
}

impl Dense {
    /// # Errors
    /// A read of what nobody wrote.
    pub fn of(history: &History) -> Result<Self, Violation> {
        let mut numbering = Numbering::default();
        for (register, version) in &history.before {
            numbering.write(*register, *version);
        }
        for call in &history.calls {
            // A later write of one call to the same register hides an earlier one from everybody.
            for (register, version) in &last_writes(call) {
                numbering.register(*register);
                if let Some(version) = version {
                    numbering.write(*register, *version);
                }
            }
        }
        let mut calls = Vec::with_capacity(history.calls.len() + 1);
        for (number, call) in history.calls.iter().enumerate() {
            let dense = numbering.call(call).map_err(|text| Violation {
                call: Some(number),
                text,
            })?;
            calls.push(dense);
        }
        if let Some(state) = &history.recovered {
            let recovery = numbering
                .recovery(state)
                .map_err(|text| Violation { call: None, text })?;
            calls.push(recovery);
        }
        Ok(Self {
            events: events(history),
            before: numbering.before(&history.before),
            versions: numbering.names.len() + FIRST_VERSION as usize,
            calls,
            registers: numbering.registers,
            names: numbering.names,
        })
    }

    /// The register's own number.
    pub fn register(&self, dense: u32) -> Register {
        self.registers.get(dense as usize).copied().unwrap_or(0)
    }

    /// What a register holds, in words.
    pub fn said(&self, held: u32) -> String {
        match held {
            ABSENT => "nothing".to_owned(),
            PRESENT => "something".to_owned(),
            version => {
                let name = self.names.get((version - FIRST_VERSION) as usize);
                format!("version {}", name.copied().unwrap_or(0))
            }
        }
    }
}

fn last_writes(call: &Call) -> Vec<(Register, Option<Version>)> {
    let mut writes: Vec<(Register, Option<Version>)> = Vec::with_capacity(call.writes.len());
    for (register, version) in &call.writes {
        match writes.iter_mut().find(|(known, _)| known == register) {
            Some(known) => known.1 = *version,
            None => writes.push((*register, *version)),
        }
    }
    writes
}

fn events(history: &History) -> Vec<Event> {
    let mut events = Vec::with_capacity(history.calls.len() * 2 + 2);
    for (call, recorded) in (0..).zip(&history.calls) {
        let event = |at, is_return| Event {
            at,
            is_return,
            call,
        };
        if recorded.returned.is_some() || !recorded.writes.is_empty() {
            events.push(event(recorded.invoked, false));
        }
        events.extend(recorded.returned.map(|at| event(at, true)));
    }
    if history.recovered.is_some() {
        let call = history.calls.len() as u32;
        for (at, is_return) in [(0, false), (u64::MAX, true)] {
            events.push(Event {
                at,
                is_return,
                call,
            });
        }
    }
    events.sort_unstable();
    events
}

#[derive(Default)]
struct Numbering {
    by_register: HashMap<Register, u32>,
    registers: Vec<Register>,
    by_version: HashMap<(Register, Version), u32>,
    names: Vec<Version>,
}

impl Numbering {
    fn register(&mut self, register: Register) -> u32 {
        let next = self.registers.len() as u32;
        *self.by_register.entry(register).or_insert_with(|| {
            self.registers.push(register);
            next
        })
    }

    fn write(&mut self, register: Register, version: Version) {
        self.register(register);
        let next = self.names.len() as u32 + FIRST_VERSION;
        self.by_version
            .entry((register, version))
            .or_insert_with(|| {
                self.names.push(version);
                next
            });
    }

    fn version(&self, register: Register, version: Version) -> Result<u32, String> {
        let known = self.by_version.get(&(register, version)).copied();
        known.ok_or_else(|| {
            format!("register {register:#x} shows version {version}, which was never written there")
        })
    }

    fn call(&mut self, call: &Call) -> Result<DenseCall, String> {
        let returns = call.returned.is_some();
        let mut reads = match self.reads(call) {
            Err(text) if returns => return Err(text),
            Ok(reads) if returns || !call.writes.is_empty() => reads,
            // It tells nothing, or it cannot have happened and never returned.
            Ok(_) | Err(_) => return Ok(DenseCall::default()),
        };
        let mut writes = Vec::with_capacity(call.writes.len());
        for (register, version) in last_writes(call) {
            let held = version.map_or(Ok(ABSENT), |version| self.version(register, version))?;
            writes.push((self.register(register), held));
        }
        reads.sort_unstable();
        writes.sort_unstable();
        Ok(DenseCall {
            reads,
            writes,
            is_durable: call.is_durable && !call.writes.is_empty(),
            is_recovery: false,
            returns,
        })
    }

    fn reads(&mut self, call: &Call) -> Result<Vec<(u32, u32)>, String> {
        let mut reads = Vec::with_capacity(call.reads.len());
        for (register, seen) in &call.reads {
            let held = match seen {
                Seen::Absent => ABSENT,
                Seen::Present => PRESENT,
                Seen::Version(version) => self.version(*register, *version)?,
            };
            reads.push((self.register(*register), held));
        }
        Ok(reads)
    }

    /// A read of every register.
    fn recovery(&mut self, state: &State) -> Result<DenseCall, String> {
        for register in state.keys() {
            self.register(*register);
        }
        let mut reads = Vec::with_capacity(self.registers.len());
        for (number, register) in (0..).zip(&self.registers) {
            let held = match state.get(register) {
                Some(version) => self.version(*register, *version)?,
                None => ABSENT,
            };
            reads.push((number, held));
        }
        Ok(DenseCall {
            reads,
            writes: Vec::new(),
            is_durable: false,
            is_recovery: true,
            returns: true,
        })
    }

    fn before(&self, state: &State) -> Vec<u32> {
        let held = |register: &Register| {
            let version = state.get(register)?;
            self.by_version.get(&(*register, *version)).copied()
        };
        let registers = self.registers.iter();
        registers.map(|r| held(r).unwrap_or(ABSENT)).collect()
    }
}
