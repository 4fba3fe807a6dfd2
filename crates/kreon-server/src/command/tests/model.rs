//! Redis' data as a map in memory, written to be obvious: what commands are compared with.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What stands at a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Entry {
    Text(String),
    Hash(BTreeMap<String, String>),
    Set(BTreeSet<String>),
    Sorted(BTreeMap<String, i64>),
    List(VecDeque<String>),
}

impl Entry {
    fn name(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Hash(_) => "hash",
            Self::Set(_) => "set",
            Self::Sorted(_) => "zset",
            Self::List(_) => "list",
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(_) => 1,
            Self::Hash(hash) => hash.len(),
            Self::Set(set) => set.len(),
            Self::Sorted(sorted) => sorted.len(),
            Self::List(list) => list.len(),
        }
    }

    /// Records of elements that the store should have.
    pub(super) fn records(&self) -> usize {
        match self {
            Self::Text(_) => 0,
            Self::Sorted(sorted) => 2 * sorted.len(),
            other => other.len(),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) entries: BTreeMap<String, Entry>,
}

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn number(count: usize) -> String {
    format!("({count})")
}

fn list<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> String {
    let items: Vec<String> = items
        .into_iter()
        .map(|item| item.as_ref().to_owned())
        .collect();
    format!("[{}]", items.join(" "))
}

/// Defines how to reach an entry of one type: at a key that must have it or nothing, made if it is missing.
macro_rules! entry {
    ($model:ident, $key:expr, $kind:ident, $make:expr) => {
        match $model
            .entries
            .entry(AsRef::<str>::as_ref($key).to_owned())
            .or_insert_with(|| Entry::$kind($make))
        {
            Entry::$kind(entry) => entry,
            _ => return WRONG_TYPE.to_owned(),
        }
    };
}

impl Model {
    /// Runs a command and shows its reply.
    pub(super) fn run(&mut self, words: &[&str]) -> String {
        let reply = self.apply(words);
        self.entries.retain(|_, entry| entry.len() > 0);
        reply
    }

    fn apply(&mut self, words: &[&str]) -> String {
        match words {
            ["SET" | "GET" | "APPEND" | "INCRBY" | "SETRANGE", ..] => self.text(words),
            ["HSET" | "HDEL" | "HGET" | "HGETALL" | "HINCRBY", ..] => self.hash(words),
            [
                "SADD" | "SREM" | "SMEMBERS" | "SINTER" | "SUNION" | "SDIFF",
                ..,
            ] => self.set(words),
            [
                "ZADD" | "ZREM" | "ZRANGE" | "ZRANK" | "ZPOPMIN" | "ZREMRANGEBYSCORE",
                ..,
            ] => self.sorted(words),
            [
                "LPUSH" | "RPUSH" | "LPOP" | "RPOP" | "LRANGE" | "LREM" | "LTRIM" | "LSET",
                ..,
            ] => self.list(words),
            ["DEL", key] => number(usize::from(self.entries.remove(*key).is_some())),
            ["TYPE", key] => self
                .entries
                .get(*key)
                .map_or("none", Entry::name)
                .to_owned(),
            ["RENAME", from, to] => match self.entries.remove(*from) {
                Some(entry) => {
                    self.entries.insert((*to).to_owned(), entry);
                    "OK".to_owned()
                }
                None => "ERR no such key".to_owned(),
            },
            ["COPY", from, to, "REPLACE"] => {
                if from == to {
                    return "ERR source and destination objects are the same".to_owned();
                }
                let entry = self.entries.get(*from).cloned();
                let is_there = entry.is_some();
                self.entries
                    .extend(entry.map(|entry| ((*to).to_owned(), entry)));
                number(usize::from(is_there))
            }
            ["DBSIZE"] => number(self.entries.len()),
            ["KREON.RANGE", start, end, "KEYS"] => {
                let is_within = |key: &&String| ***key >= **start && ***key < **end;
                list(self.entries.keys().filter(is_within))
            }
            ["KREON.DELRANGE", start, end] => {
                self.entries
                    .retain(|key, _| **key < **start || **key >= **end);
                "OK".to_owned()
            }
            ["FLUSHDB"] => {
                self.entries.clear();
                "OK".to_owned()
            }
            other => panic!("the model does not know {other:?}"),
        }
    }

    fn text(&mut self, words: &[&str]) -> String {
        match words {
            ["SET", key, value] => {
                let entry = Entry::Text((*value).to_owned());
                self.entries.insert((*key).to_owned(), entry);
                "OK".to_owned()
            }
            ["GET", key] => match self.entries.get(*key) {
                None => "nil".to_owned(),
                Some(Entry::Text(text)) => text.clone(),
                Some(_) => WRONG_TYPE.to_owned(),
            },
            ["APPEND", key, tail] => {
                let text = entry!(self, key, Text, String::new());
                text.push_str(tail);
                number(text.len())
            }
            ["SETRANGE", key, "1", part] => {
                let text = entry!(self, key, Text, String::new());
                let head = text.chars().next().unwrap_or('\0');
                let tail: String = text.chars().skip(1 + part.len()).collect();
                *text = format!("{head}{part}{tail}");
                number(text.len())
            }
            ["INCRBY", key, by] => {
                let text = entry!(self, key, Text, "0".to_owned());
                let before = text.parse::<i64>().ok();
                let Some(before) = before.filter(|number| number.to_string() == *text) else {
                    return "ERR value is not an integer or out of range".to_owned();
                };
                *text = (before + by.parse::<i64>().unwrap()).to_string();
                format!("({text})")
            }
            other => panic!("the model does not know {other:?}"),
        }
    }

    fn hash(&mut self, words: &[&str]) -> String {
        let hash = entry!(self, words[1], Hash, BTreeMap::new());
        match words {
            ["HSET", _, pairs @ ..] => {
                let before = hash.len();
                for pair in pairs.chunks(2) {
                    hash.insert(pair[0].to_owned(), pair[1].to_owned());
                }
                number(hash.len() - before)
            }
            ["HDEL", _, fields @ ..] => number(
                fields
                    .iter()
                    .filter(|field| hash.remove(**field).is_some())
                    .count(),
            ),
            ["HGET", _, field] => hash.get(*field).cloned().unwrap_or("nil".to_owned()),
            ["HGETALL", _] => list(hash.iter().flat_map(|(field, value)| [field, value])),
            ["HINCRBY", _, field, by] => {
                let text = hash.get(*field).map_or("0", String::as_str);
                let Ok(before) = text.parse::<i64>() else {
                    return "ERR hash value is not an integer".to_owned();
                };
                let sum = (before + by.parse::<i64>().unwrap()).to_string();
                hash.insert((*field).to_owned(), sum.clone());
                format!("({sum})")
            }
            other => panic!("the model does not know {other:?}"),
        }
    }

    fn set(&mut self, words: &[&str]) -> String {
        if let [how @ ("SINTER" | "SUNION" | "SDIFF"), a, b] = words {
            let (a, b) = (
                entry!(self, a, Set, BTreeSet::new()).clone(),
                entry!(self, b, Set, BTreeSet::new()).clone(),
            );
            return match *how {
                "SINTER" => list(&a & &b),
                "SUNION" => list(&a | &b),
                _ => list(&a - &b),
            };
        }
        let set = entry!(self, words[1], Set, BTreeSet::new());
        match words {
            ["SADD", _, members @ ..] => number(
                members
                    .iter()
                    .filter(|member| set.insert((**member).to_owned()))
                    .count(),
            ),
            ["SREM", _, members @ ..] => {
                number(members.iter().filter(|member| set.remove(**member)).count())
            }
            ["SMEMBERS", _] => list(set.iter()),
            other => panic!("the model does not know {other:?}"),
        }
    }

    fn sorted(&mut self, words: &[&str]) -> String {
        let sorted = entry!(self, words[1], Sorted, BTreeMap::new());
        let mut order: Vec<(i64, String)> = sorted
            .iter()
            .map(|(member, score)| (*score, member.clone()))
            .collect();
        order.sort();
        match words {
            ["ZADD", _, pairs @ ..] => {
                let before = sorted.len();
                for pair in pairs.chunks(2) {
                    sorted.insert(pair[1].to_owned(), pair[0].parse().unwrap());
                }
                number(sorted.len() - before)
            }
            ["ZREM", _, members @ ..] => number(
                members
                    .iter()
                    .filter(|member| sorted.remove(**member).is_some())
                    .count(),
            ),
            ["ZRANGE", _, start, stop, "WITHSCORES"] => {
                let (from, to) = window(start, stop, order.len());
                let found = order.iter().take(to).skip(from);
                list(found.flat_map(|(score, member)| [member.clone(), score.to_string()]))
            }
            ["ZRANK", _, member] => {
                let rank = order.iter().position(|(_, other)| other == member);
                rank.map_or("nil".to_owned(), number)
            }
            ["ZPOPMIN", _] => list(order.first().into_iter().flat_map(|(score, member)| {
                sorted.remove(member);
                [member.clone(), score.to_string()]
            })),
            ["ZREMRANGEBYSCORE", _, min, max] => {
                let (min, max): (i64, i64) = (min.parse().unwrap(), max.parse().unwrap());
                let before = sorted.len();
                sorted.retain(|_, score| *score < min || *score > max);
                number(before - sorted.len())
            }
            other => panic!("the model does not know {other:?}"),
        }
    }

    fn list(&mut self, words: &[&str]) -> String {
        if let ["LSET", key, ..] = words
            && !self.entries.contains_key(*key)
        {
            return "ERR no such key".to_owned();
        }
        let items = entry!(self, words[1], List, VecDeque::new());
        match words {
            ["LPUSH", _, values @ ..] => {
                values
                    .iter()
                    .for_each(|value| items.push_front((*value).to_owned()));
                number(items.len())
            }
            ["RPUSH", _, values @ ..] => {
                items.extend(values.iter().map(|value| (*value).to_owned()));
                number(items.len())
            }
            ["LPOP", _] => items.pop_front().unwrap_or("nil".to_owned()),
            ["RPOP", _] => items.pop_back().unwrap_or("nil".to_owned()),
            ["LRANGE", _, start, stop] => {
                let (from, to) = window(start, stop, items.len());
                list(items.iter().take(to).skip(from))
            }
            ["LTRIM", _, start, stop] => {
                let (from, to) = window(start, stop, items.len());
                *items = items.iter().take(to).skip(from).cloned().collect();
                "OK".to_owned()
            }
            ["LSET", _, index, value] => {
                let index = index.parse::<usize>().unwrap();
                match items.get_mut(index) {
                    Some(item) => {
                        *item = (*value).to_owned();
                        "OK".to_owned()
                    }
                    None => "ERR index out of range".to_owned(),
                }
            }
            ["LREM", _, count, value] => {
                let count: i64 = count.parse().unwrap();
                let mut left = if count == 0 {
                    usize::MAX
                } else {
                    count.unsigned_abs() as usize
                };
                let before = items.len();
                let mut keep = |item: &String| {
                    let is_removed = item == value && left > 0;
                    left -= usize::from(is_removed);
                    !is_removed
                };
                if count < 0 {
                    let kept: Vec<String> =
                        items.iter().rev().filter(|it| keep(it)).cloned().collect();
                    *items = kept.into_iter().rev().collect();
                } else {
                    items.retain(|item| keep(item));
                }
                number(before - items.len())
            }
            other => panic!("the model does not know {other:?}"),
        }
    }
}

/// First index and the one behind the last.
fn window(start: &str, stop: &str, len: usize) -> (usize, usize) {
    let index = |text: &str| {
        let index: i64 = text.parse().unwrap();
        if index < 0 {
            (index + len as i64).max(-1)
        } else {
            index
        }
    };
    (
        index(start).max(0) as usize,
        (index(stop) + 1).max(0) as usize,
    )
}
