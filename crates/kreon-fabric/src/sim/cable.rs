//! One simulated link: two lanes, and what its two ends were told.

use std::collections::VecDeque;

use kreon_base::{Error, ErrorKind, Result};

use super::lane::{Item, Lane};
use crate::address::Address;
use crate::bytes::Bytes;
use crate::link::Event;
use crate::peer::PeerId;

/// One end.
pub(super) struct EndState {
    /// The server that this end belongs to.
    pub(super) host: Address,
    /// This end, as the other one sees it.
    pub(super) id: PeerId,
    /// Whether nobody has a handle of it.
    pub(super) is_dropped: bool,
    inbox: VecDeque<Event>,
    /// Why it has ended, once it has.
    ended: Option<Error>,
    is_told: bool,
}

impl EndState {
    pub(super) fn new(host: Address, id: PeerId, is_dropped: bool) -> Self {
        Self {
            host,
            id,
            is_dropped,
            inbox: VecDeque::new(),
            ended: None,
            is_told: false,
        }
    }

    fn end(&mut self, error: Error) {
        if self.ended.is_none() {
            self.inbox.push_back(Event::Closed(error.clone()));
            self.ended = Some(error);
        }
    }
}

/// A link. Lane `e` holds what end `e` has sent; end 0 connected, end 1 accepted.
pub(super) struct Cable {
    pub(super) ends: [EndState; 2],
    pub(super) lanes: [Lane; 2],
}

impl Cable {
    pub(super) fn new(connector: EndState, acceptor: EndState) -> Self {
        Self {
            ends: [connector, acceptor],
            lanes: [Lane::default(), Lane::default()],
        }
    }

    /// Whether no end can learn anything new of it.
    pub(super) fn is_over(&self) -> bool {
        self.ends.iter().all(|end| end.is_dropped)
    }

    pub(super) fn send(
        &mut self,
        end: usize,
        packet: Bytes,
        due_us: u64,
        window_bytes: usize,
    ) -> Result<()> {
        if let Some(error) = &self.ends[end].ended {
            return Err(error.clone());
        }
        let lane = &mut self.lanes[end];
        if lane.held_bytes > 0 && lane.held_bytes + packet.len() > window_bytes {
            lane.is_room_wanted = true;
            let text = format!("{} bytes are under way", lane.held_bytes);
            return Err(Error::new(ErrorKind::Busy, text));
        }
        lane.push(due_us, Item::Packet(packet));
        Ok(())
    }

    /// Hands out what end `end` was told, and says whether anything was.
    pub(super) fn poll(
        &mut self,
        end: usize,
        out: &mut Vec<Event>,
        window_bytes: usize,
    ) -> Result<bool> {
        let state = &mut self.ends[end];
        if let (true, Some(error)) = (state.is_told, &state.ended) {
            return Err(error.clone());
        }
        let is_any = !state.inbox.is_empty();
        for event in state.inbox.drain(..) {
            match &event {
                Event::Packet(packet) => self.lanes[1 - end].held_bytes -= packet.len(),
                Event::Closed(_) => state.is_told = true,
                Event::Room => {}
            }
            out.push(event);
        }
        self.tell_room(1 - end, window_bytes);
        Ok(is_any)
    }

    fn tell_room(&mut self, sender: usize, window_bytes: usize) {
        let lane = &mut self.lanes[sender];
        let state = &mut self.ends[sender];
        if lane.is_room_wanted && lane.held_bytes <= window_bytes / 2 && state.ended.is_none() {
            lane.is_room_wanted = false;
            state.inbox.push_back(Event::Room);
        }
    }

    /// Delivers the next of what `from` has sent, and says whether there was anything.
    pub(super) fn deliver(&mut self, from: usize) -> bool {
        let Some(item) = self.lanes[from].pop() else {
            return false;
        };
        let receiver = &mut self.ends[1 - from];
        match item {
            Item::Packet(packet) if receiver.ended.is_none() => {
                receiver.inbox.push_back(Event::Packet(packet));
            }
            Item::Packet(packet) => self.lanes[from].held_bytes -= packet.len(),
            Item::End(error) => {
                receiver.end(error);
                self.lanes[1 - from].keep(0);
            }
        }
        true
    }

    /// End `end` closes: of what it has sent, the first `keep` packets arrive.
    pub(super) fn close(&mut self, end: usize, why: &str, keep: usize, due_us: u64) {
        let state = &mut self.ends[end];
        if state.ended.is_some() {
            return;
        }
        state.inbox.clear();
        state.end(Error::new(ErrorKind::Closed, why));
        let is_whole = keep >= self.lanes[end].packets();
        self.lanes[end].keep(keep);
        self.lanes[1 - end].keep(0);
        self.lanes[1 - end].held_bytes = 0;
        let told = match is_whole {
            true => Error::new(ErrorKind::Closed, "the peer has closed the link"),
            false => broken(),
        };
        self.lanes[end].push(due_us, Item::End(told));
    }

    /// The link breaks: of what end `e` has sent, the first `keep[e]` packets arrive, now.
    pub(super) fn cut(&mut self, keep: [usize; 2]) {
        for (from, keep) in keep.into_iter().enumerate() {
            self.lanes[from].keep(keep);
            while self.lanes[from].packets() > 0 && self.deliver(from) {}
        }
        for end in &mut self.ends {
            end.end(broken());
        }
        self.lanes.iter_mut().for_each(|lane| lane.keep(0));
    }
}

fn broken() -> Error {
    Error::new(ErrorKind::Io, "the link broke")
}
