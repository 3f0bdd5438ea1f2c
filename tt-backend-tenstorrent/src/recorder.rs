//! What a session has recorded and not yet handed over, and which slots its tensors have.

use crate::bridge::ffi::{Allocation, Command, Spec, Upload};
use crate::buffer::{Origin, describe};
use tt_dsl::HostBytes;

/// Where a slot's tensor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The slot is nobody's.
    Vacant,
    /// Created by the list that is being recorded.
    Pending,
    /// On the device.
    Live,
    /// The list that was to create it failed.
    Dead,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    state: State,
    spec: Spec,
    /// The last list that names it; lists count from one.
    list: u64,
}

impl Slot {
    /// Whether it holds a tensor that list `list` does not name.
    fn idle(&self, list: u64) -> bool {
        self.state == State::Live && self.list != list
    }
}

/// Places of dropped outputs, by spec.
type Plan = Vec<(Spec, Vec<u32>)>;

/// The recorded list and the slots.
pub(crate) struct Recorder {
    pub(crate) commands: Vec<Command>,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) releases: Vec<u32>,
    uploads: Vec<(u32, HostBytes)>,
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    plan: Plan,
    /// Which list is in recording.
    list: u64,
    /// An error of the recording itself; the next crossing returns it.
    fault: Option<crate::Error>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            commands: Vec::new(),
            allocations: Vec::new(),
            releases: Vec::new(),
            uploads: Vec::new(),
            slots: Vec::new(),
            vacant: Vec::new(),
            plan: Vec::new(),
            list: 1,
            fault: None,
        }
    }
}

impl Recorder {
    /// A slot for a new tensor, created zeroed by the list in recording.
    pub(crate) fn create(&mut self, spec: Spec) -> u32 {
        let slot = self.reserve(spec, State::Pending);
        self.allocations.push(Allocation { slot, spec });
        slot
    }

    /// A slot for an op's output: a place that an earlier output of the same spec left, or a new one.
    pub(crate) fn output(&mut self, spec: Spec) -> u32 {
        let kept = self.plan.iter_mut().find(|(of, _)| *of == spec).and_then(|(_, slots)| slots.pop());
        match kept {
            Some(slot) => {
                self.name(slot);
                slot
            }
            None => self.create(spec),
        }
    }

    /// A slot for a tensor that is written at once, before the list in recording runs: one that this
    /// list cannot name. Whether it exists on the device already is the driver's to see.
    pub(crate) fn immediate(&mut self, spec: Spec) -> u32 {
        let (slots, list) = (&self.slots, self.list);
        let kept = self.plan.iter_mut().find(|(of, _)| *of == spec).and_then(|(_, kept)| {
            let at = kept.iter().position(|&slot| slots[slot as usize].idle(list))?;
            Some(kept.swap_remove(at))
        });
        let slot = kept.unwrap_or_else(|| self.reserve(spec, State::Live));
        // No list names it yet, so where it is dropped before one does, its place is free again.
        self.slots[slot as usize].list = 0;
        slot
    }

    fn name(&mut self, slot: u32) {
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.list = self.list;
        }
    }

    fn reserve(&mut self, spec: Spec, state: State) -> u32 {
        let new = Slot { state, spec, list: self.list };
        match self.vacant.pop() {
            Some(slot) => {
                self.slots[slot as usize] = new;
                slot
            }
            None => {
                self.slots.push(new);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Records the copy of a master; its bytes are kept alive until they have crossed.
    pub(crate) fn upload(&mut self, slot: u32, bytes: HostBytes) {
        self.uploads.push((slot, bytes));
    }

    /// Records a command.
    pub(crate) fn command(&mut self, command: Command) {
        for slot in command.operands {
            self.name(slot);
        }
        self.commands.push(command);
    }

    /// Records that the list is wrong; the first reason stays.
    pub(crate) fn fail(&mut self, error: crate::Error) {
        self.fault.get_or_insert(error);
    }

    /// The recording's own error, if it has one. The list it spoils is dropped.
    pub(crate) fn take_fault(&mut self) -> Option<crate::Error> {
        let fault = self.fault.take()?;
        self.failed();
        Some(fault)
    }

    /// A buffer was dropped.
    pub(crate) fn retire(&mut self, slot: u32, spec: Spec, origin: Origin) {
        let state = self.slots[slot as usize].state;
        match (state, origin) {
            (State::Pending | State::Live, Origin::Planned) => {
                match self.plan.iter_mut().find(|(of, _)| *of == spec) {
                    Some((_, slots)) => slots.push(slot),
                    None => self.plan.push((spec, vec![slot])),
                }
            }
            // Freed at the end of the list in recording, which may still name it.
            (State::Pending | State::Live, Origin::Owned) => self.releases.push(slot),
            (State::Dead | State::Vacant, _) => self.vacate(slot),
        }
    }

    /// A slot is nobody's any more.
    pub(crate) fn vacate(&mut self, slot: u32) {
        self.slots[slot as usize].state = State::Vacant;
        self.vacant.push(slot);
    }

    /// Whether there is nothing to hand over.
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
            && self.allocations.is_empty()
            && self.uploads.is_empty()
            && self.releases.is_empty()
    }

    /// The masters to be copied, as the bridge takes them.
    pub(crate) fn uploads(&self) -> Vec<Upload<'_>> {
        self.uploads.iter().map(|(slot, bytes)| Upload { slot: *slot, bytes: bytes.as_slice() }).collect()
    }

    /// The list has run.
    pub(crate) fn succeeded(&mut self) {
        for allocation in self.allocations.drain(..) {
            self.slots[allocation.slot as usize].state = State::Live;
        }
        let releases = core::mem::take(&mut self.releases);
        for &slot in &releases {
            self.vacate(slot);
        }
        self.clear();
    }

    /// The list has not run, or not to its end; none of its tensors exist.
    pub(crate) fn failed(&mut self) {
        for allocation in self.allocations.drain(..) {
            self.slots[allocation.slot as usize].state = State::Dead;
        }
        // A place without a tensor is no place to keep, and a tensor that never was is not freed;
        // live ones wait for the next list.
        let slots = &self.slots;
        let dead = |slot: &mut u32| slots[*slot as usize].state == State::Dead;
        let mut gone: Vec<u32> = self.releases.extract_if(.., dead).collect();
        for (_, kept) in &mut self.plan {
            gone.extend(kept.extract_if(.., dead));
        }
        for slot in gone {
            self.vacate(slot);
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.commands.clear();
        self.uploads.clear();
        self.list += 1;
    }

    /// Gives up what the list in recording does not name: kept places, and tensors that wait to be
    /// freed. The caller frees them.
    pub(crate) fn give_up(&mut self) -> Vec<u32> {
        let (slots, list) = (&self.slots, self.list);
        let idle = |slot: &mut u32| slots[*slot as usize].idle(list);
        let mut given: Vec<u32> = self.releases.extract_if(.., idle).collect();
        for (_, kept) in &mut self.plan {
            given.extend(kept.extract_if(.., idle));
        }
        for &slot in &given {
            self.vacate(slot);
        }
        given
    }

    /// The kept places that the list in recording names: nobody reads what it leaves in them.
    pub(crate) fn dead(&self) -> Vec<u32> {
        let named = |slot: &&u32| self.slots[**slot as usize].list == self.list;
        let mut dead: Vec<u32> =
            self.plan.iter().flat_map(|(_, kept)| kept.iter().filter(named).copied()).collect();
        // The order of the places says nothing; a list that comes again is the same list.
        dead.sort_unstable();
        dead
    }

    /// A slot's tensor for people.
    pub(crate) fn describe(&self, slot: u32) -> String {
        self.slots.get(slot as usize).map_or_else(|| "unknown".to_owned(), |slot| describe(&slot.spec))
    }

    /// The tensors that live on the device for buffers or as kept places.
    pub(crate) fn live(&self) -> usize {
        self.slots.iter().filter(|slot| slot.state == State::Live).count()
    }
}
