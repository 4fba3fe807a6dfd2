//! The table of commands.

use std::sync::LazyLock;

use super::{Command, Flags, Group, Id, KeySpec};

/// Longest name of a command, in bytes.
const NAME_BYTES_MAX: usize = 16;

const fn command(
    id: Id,
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: KeySpec,
    group: Group,
    summary: &'static str,
) -> Command {
    Command {
        id,
        name,
        arity,
        flags,
        keys,
        group,
        summary,
    }
}

/// By groups; summaries are those of Redis' manual.
#[rustfmt::skip]
static COMMANDS: &[Command] = &[
    command(Id::Get, "get", 2, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::String, "Returns the string value of a key."),
    command(Id::Set, "set", -3, Flags::WRITE, KeySpec::ONE, Group::String, "Sets the string value of a key, ignoring its type."),
    command(Id::Setnx, "setnx", 3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::String, "Sets the string value of a key only when the key doesn't exist."),
    command(Id::Setex, "setex", 4, Flags::WRITE, KeySpec::ONE, Group::String, "Sets the string value and expiration time of a key."),
    command(Id::Psetex, "psetex", 4, Flags::WRITE, KeySpec::ONE, Group::String, "Sets both string value and expiration time in milliseconds of a key."),
    command(Id::Getset, "getset", 3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::String, "Returns the previous string value of a key after setting it to a new value."),
    command(Id::Getdel, "getdel", 2, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::String, "Returns the string value of a key after deleting the key."),
    command(Id::Getex, "getex", -2, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::String, "Returns the string value of a key after setting its expiration time."),
    command(Id::Mget, "mget", -2, Flags::READONLY.with(Flags::FAST), KeySpec::ALL, Group::String, "Atomically returns the string values of one or more keys."),
    command(Id::Mset, "mset", -3, Flags::WRITE, KeySpec::PAIRS, Group::String, "Atomically creates or modifies the string values of one or more keys."),
    command(Id::Msetnx, "msetnx", -3, Flags::WRITE, KeySpec::PAIRS, Group::String, "Atomically modifies the string values of one or more keys only when all keys don't exist."),
    command(Id::Append, "append", 3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::String, "Appends a string to the value of a key."),
    command(Id::Strlen, "strlen", 2, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::String, "Returns the length of a string value."),
    command(Id::Setrange, "setrange", 4, Flags::WRITE, KeySpec::ONE, Group::String, "Overwrites a part of a string value with another by an offset."),
    command(Id::Getrange, "getrange", 4, Flags::READONLY, KeySpec::ONE, Group::String, "Returns a substring of the string stored at a key."),
    command(Id::Substr, "substr", 4, Flags::READONLY, KeySpec::ONE, Group::String, "Returns a substring from a string value."),
    command(Id::Incr, "incr", 2, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::String, "Increments the integer value of a key by one."),
    command(Id::Incrby, "incrby", 3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::String, "Increments the integer value of a key by a number."),
    command(Id::Decr, "decr", 2, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::String, "Decrements the integer value of a key by one."),
    command(Id::Decrby, "decrby", 3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::String, "Decrements a number from the integer value of a key."),
    command(Id::Incrbyfloat, "incrbyfloat", 3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::String, "Increments the floating point value of a key by a number."),
    command(Id::Del, "del", -2, Flags::WRITE, KeySpec::ALL, Group::Generic, "Deletes one or more keys."),
    command(Id::Unlink, "unlink", -2, Flags::WRITE.with(Flags::FAST), KeySpec::ALL, Group::Generic, "Deletes one or more keys."),
    command(Id::Exists, "exists", -2, Flags::READONLY.with(Flags::FAST), KeySpec::ALL, Group::Generic, "Determines whether one or more keys exist."),
    command(Id::Type, "type", 2, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Generic, "Determines the type of value stored at a key."),
    command(Id::Ttl, "ttl", 2, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Generic, "Returns the expiration time in seconds of a key."),
    command(Id::Pttl, "pttl", 2, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Generic, "Returns the expiration time in milliseconds of a key."),
    command(Id::Expire, "expire", -3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Generic, "Sets the expiration time of a key in seconds."),
    command(Id::Pexpire, "pexpire", -3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Generic, "Sets the expiration time of a key in milliseconds."),
    command(Id::Expireat, "expireat", -3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Generic, "Sets the expiration time of a key to a Unix timestamp."),
    command(Id::Pexpireat, "pexpireat", -3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Generic, "Sets the expiration time of a key to a Unix milliseconds timestamp."),
    command(Id::Expiretime, "expiretime", 2, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Generic, "Returns the expiration time of a key as a Unix timestamp."),
    command(Id::Pexpiretime, "pexpiretime", 2, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Generic, "Returns the expiration time of a key as a Unix milliseconds timestamp."),
    command(Id::Persist, "persist", 2, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Generic, "Removes the expiration time of a key."),
    command(Id::Scan, "scan", -2, Flags::READONLY, KeySpec::NONE, Group::Generic, "Iterates over the key names in the database."),
    command(Id::Keys, "keys", 2, Flags::READONLY, KeySpec::NONE, Group::Generic, "Returns all key names that match a pattern."),
    command(Id::Randomkey, "randomkey", 1, Flags::READONLY, KeySpec::NONE, Group::Generic, "Returns a random key name from the database."),
    command(Id::Rename, "rename", 3, Flags::WRITE, KeySpec::TWO, Group::Generic, "Renames a key and overwrites the destination."),
    command(Id::Renamenx, "renamenx", 3, Flags::WRITE.with(Flags::FAST), KeySpec::TWO, Group::Generic, "Renames a key only when the target key name doesn't exist."),
    command(Id::Copy, "copy", -3, Flags::WRITE, KeySpec::TWO, Group::Generic, "Copies the value of a key to a new key."),
    command(Id::Touch, "touch", -2, Flags::READONLY.with(Flags::FAST), KeySpec::ALL, Group::Generic, "Returns the number of existing keys out of those specified."),
    command(Id::Object, "object", -2, Flags::READONLY, KeySpec { first: 2, last: 2, step: 1 }, Group::Generic, "Tells the encoding of a key."),
    command(Id::Wait, "wait", 3, Flags::NONE, KeySpec::NONE, Group::Generic, "Waits for replicas, of which there are none."),
    command(Id::Hset, "hset", -4, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Hash, "Creates or modifies the value of a field in a hash."),
    command(Id::Hsetnx, "hsetnx", 4, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Hash, "Sets the value of a field in a hash only when the field doesn't exist."),
    command(Id::Hget, "hget", 3, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Hash, "Returns the value of a field in a hash."),
    command(Id::Hmget, "hmget", -3, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Hash, "Returns the values of all fields in a hash."),
    command(Id::Hmset, "hmset", -4, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Hash, "Sets the values of multiple fields."),
    command(Id::Hgetall, "hgetall", 2, Flags::READONLY, KeySpec::ONE, Group::Hash, "Returns all fields and values in a hash."),
    command(Id::Hdel, "hdel", -3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Hash, "Deletes one or more fields and their values from a hash."),
    command(Id::Hlen, "hlen", 2, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Hash, "Returns the number of fields in a hash."),
    command(Id::Hexists, "hexists", 3, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Hash, "Determines whether a field exists in a hash."),
    command(Id::Hkeys, "hkeys", 2, Flags::READONLY, KeySpec::ONE, Group::Hash, "Returns all fields in a hash."),
    command(Id::Hvals, "hvals", 2, Flags::READONLY, KeySpec::ONE, Group::Hash, "Returns all values in a hash."),
    command(Id::Hscan, "hscan", -3, Flags::READONLY, KeySpec::ONE, Group::Hash, "Iterates over fields and values of a hash."),
    command(Id::Hstrlen, "hstrlen", 3, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Hash, "Returns the length of the value of a field."),
    command(Id::Hincrby, "hincrby", 4, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Hash, "Increments the integer value of a field in a hash by a number."),
    command(Id::Hincrbyfloat, "hincrbyfloat", 4, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Hash, "Increments the floating point value of a field by a number."),
    command(Id::Hrandfield, "hrandfield", -2, Flags::READONLY, KeySpec::ONE, Group::Hash, "Returns one or more random fields from a hash."),
    command(Id::Sadd, "sadd", -3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Set, "Adds one or more members to a set."),
    command(Id::Srem, "srem", -3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Set, "Removes one or more members from a set."),
    command(Id::Sismember, "sismember", 3, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Set, "Determines whether a member belongs to a set."),
    command(Id::Smismember, "smismember", -3, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Set, "Determines whether multiple members belong to a set."),
    command(Id::Smembers, "smembers", 2, Flags::READONLY, KeySpec::ONE, Group::Set, "Returns all members of a set."),
    command(Id::Scard, "scard", 2, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::Set, "Returns the number of members in a set."),
    command(Id::Spop, "spop", -2, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::Set, "Returns one or more random members from a set after removing them."),
    command(Id::Srandmember, "srandmember", -2, Flags::READONLY, KeySpec::ONE, Group::Set, "Returns one or more random members from a set."),
    command(Id::Sscan, "sscan", -3, Flags::READONLY, KeySpec::ONE, Group::Set, "Iterates over members of a set."),
    command(Id::Sunion, "sunion", -2, Flags::READONLY, KeySpec::ALL, Group::Set, "Returns the union of multiple sets."),
    command(Id::Sinter, "sinter", -2, Flags::READONLY, KeySpec::ALL, Group::Set, "Returns the intersect of multiple sets."),
    command(Id::Sdiff, "sdiff", -2, Flags::READONLY, KeySpec::ALL, Group::Set, "Returns the difference of multiple sets."),
    command(Id::Zadd, "zadd", -4, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::SortedSet, "Adds one or more members to a sorted set, or updates their scores."),
    command(Id::Zrem, "zrem", -3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::SortedSet, "Removes one or more members from a sorted set."),
    command(Id::Zscore, "zscore", 3, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::SortedSet, "Returns the score of a member in a sorted set."),
    command(Id::Zmscore, "zmscore", -3, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::SortedSet, "Returns the score of one or more members in a sorted set."),
    command(Id::Zcard, "zcard", 2, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::SortedSet, "Returns the number of members in a sorted set."),
    command(Id::Zcount, "zcount", 4, Flags::READONLY, KeySpec::ONE, Group::SortedSet, "Returns the count of members in a sorted set that have scores within a range."),
    command(Id::Zrange, "zrange", -4, Flags::READONLY, KeySpec::ONE, Group::SortedSet, "Returns members in a sorted set within a range of indexes, scores or members."),
    command(Id::Zrangebyscore, "zrangebyscore", -4, Flags::READONLY, KeySpec::ONE, Group::SortedSet, "Returns members in a sorted set within a range of scores."),
    command(Id::Zrevrange, "zrevrange", -4, Flags::READONLY, KeySpec::ONE, Group::SortedSet, "Returns members in a sorted set within a range of indexes in reverse order."),
    command(Id::Zrank, "zrank", 3, Flags::READONLY, KeySpec::ONE, Group::SortedSet, "Returns the index of a member in a sorted set ordered by ascending scores."),
    command(Id::Zrevrank, "zrevrank", 3, Flags::READONLY, KeySpec::ONE, Group::SortedSet, "Returns the index of a member in a sorted set ordered by descending scores."),
    command(Id::Zincrby, "zincrby", 4, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::SortedSet, "Increments the score of a member in a sorted set."),
    command(Id::Zpopmin, "zpopmin", -2, Flags::WRITE, KeySpec::ONE, Group::SortedSet, "Returns the lowest-scoring members from a sorted set after removing them."),
    command(Id::Zpopmax, "zpopmax", -2, Flags::WRITE, KeySpec::ONE, Group::SortedSet, "Returns the highest-scoring members from a sorted set after removing them."),
    command(Id::Zremrangebyscore, "zremrangebyscore", 4, Flags::WRITE, KeySpec::ONE, Group::SortedSet, "Removes members in a sorted set within a range of scores."),
    command(Id::Zremrangebyrank, "zremrangebyrank", 4, Flags::WRITE, KeySpec::ONE, Group::SortedSet, "Removes members in a sorted set within a range of indexes."),
    command(Id::Zscan, "zscan", -3, Flags::READONLY, KeySpec::ONE, Group::SortedSet, "Iterates over members and scores of a sorted set."),
    command(Id::Lpush, "lpush", -3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::List, "Prepends one or more elements to a list."),
    command(Id::Rpush, "rpush", -3, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::List, "Appends one or more elements to a list."),
    command(Id::Lpop, "lpop", -2, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::List, "Returns the first elements in a list after removing them."),
    command(Id::Rpop, "rpop", -2, Flags::WRITE.with(Flags::FAST), KeySpec::ONE, Group::List, "Returns and removes the last elements of a list."),
    command(Id::Llen, "llen", 2, Flags::READONLY.with(Flags::FAST), KeySpec::ONE, Group::List, "Returns the length of a list."),
    command(Id::Lrange, "lrange", 4, Flags::READONLY, KeySpec::ONE, Group::List, "Returns a range of elements from a list."),
    command(Id::Lindex, "lindex", 3, Flags::READONLY, KeySpec::ONE, Group::List, "Returns an element from a list by its index."),
    command(Id::Lset, "lset", 4, Flags::WRITE, KeySpec::ONE, Group::List, "Sets the value of an element in a list by its index."),
    command(Id::Ltrim, "ltrim", 4, Flags::WRITE, KeySpec::ONE, Group::List, "Removes elements from both ends of a list."),
    command(Id::Lrem, "lrem", 4, Flags::WRITE, KeySpec::ONE, Group::List, "Removes elements from a list."),
    command(Id::Blpop, "blpop", -3, Flags::WRITE.with(Flags::BLOCKING), KeySpec::BUT_LAST, Group::List, "Removes and returns the first element in a list, or waits until one is available."),
    command(Id::Brpop, "brpop", -3, Flags::WRITE.with(Flags::BLOCKING), KeySpec::BUT_LAST, Group::List, "Removes and returns the last element in a list, or waits until one is available."),
    command(Id::KreonRange, "kreon.range", -3, Flags::READONLY, KeySpec::NONE, Group::Ordered, "Returns the keys of a range in order, with their values."),
    command(Id::KreonCount, "kreon.count", 3, Flags::READONLY, KeySpec::NONE, Group::Ordered, "Returns the number of keys in a range."),
    command(Id::KreonDelrange, "kreon.delrange", 3, Flags::WRITE, KeySpec::NONE, Group::Ordered, "Deletes all keys of a range."),
    command(Id::Ping, "ping", -1, Flags::FAST, KeySpec::NONE, Group::Connection, "Returns the server's liveliness response."),
    command(Id::Echo, "echo", 2, Flags::FAST, KeySpec::NONE, Group::Connection, "Returns the given string."),
    command(Id::Hello, "hello", -1, Flags::FAST.with(Flags::NO_AUTH), KeySpec::NONE, Group::Connection, "Handshakes with the server."),
    command(Id::Auth, "auth", -2, Flags::FAST.with(Flags::NO_AUTH), KeySpec::NONE, Group::Connection, "Authenticates the connection."),
    command(Id::Select, "select", 2, Flags::FAST, KeySpec::NONE, Group::Connection, "Changes the selected database."),
    command(Id::Quit, "quit", -1, Flags::FAST.with(Flags::NO_AUTH), KeySpec::NONE, Group::Connection, "Closes the connection."),
    command(Id::Reset, "reset", 1, Flags::FAST.with(Flags::NO_AUTH), KeySpec::NONE, Group::Connection, "Resets the connection."),
    command(Id::Client, "client", -2, Flags::NONE, KeySpec::NONE, Group::Connection, "Commands on connections."),
    command(Id::Multi, "multi", 1, Flags::FAST.with(Flags::NO_MULTI), KeySpec::NONE, Group::Transactions, "Starts a transaction."),
    command(Id::Exec, "exec", 1, Flags::NONE, KeySpec::NONE, Group::Transactions, "Executes all commands in a transaction."),
    command(Id::Discard, "discard", 1, Flags::FAST, KeySpec::NONE, Group::Transactions, "Discards a transaction."),
    command(Id::Watch, "watch", -2, Flags::FAST.with(Flags::NO_MULTI), KeySpec::ALL, Group::Transactions, "Monitors changes to keys to determine the execution of a transaction."),
    command(Id::Unwatch, "unwatch", 1, Flags::FAST, KeySpec::NONE, Group::Transactions, "Forgets about watched keys of a transaction."),
    command(Id::Subscribe, "subscribe", -2, Flags::PUBSUB.with(Flags::NO_MULTI), KeySpec::NONE, Group::PubSub, "Listens for messages published to channels."),
    command(Id::Psubscribe, "psubscribe", -2, Flags::PUBSUB.with(Flags::NO_MULTI), KeySpec::NONE, Group::PubSub, "Listens for messages published to channels that match patterns."),
    command(Id::Unsubscribe, "unsubscribe", -1, Flags::PUBSUB.with(Flags::NO_MULTI), KeySpec::NONE, Group::PubSub, "Stops listening to messages posted to channels."),
    command(Id::Punsubscribe, "punsubscribe", -1, Flags::PUBSUB.with(Flags::NO_MULTI), KeySpec::NONE, Group::PubSub, "Stops listening to messages published to channels that match patterns."),
    command(Id::Publish, "publish", 3, Flags::PUBSUB.with(Flags::FAST), KeySpec::NONE, Group::PubSub, "Posts a message to a channel."),
    command(Id::Pubsub, "pubsub", -2, Flags::PUBSUB, KeySpec::NONE, Group::PubSub, "Tells of channels and subscribers."),
    command(Id::Dbsize, "dbsize", 1, Flags::READONLY, KeySpec::NONE, Group::Server, "Returns the number of keys in the database."),
    command(Id::Flushdb, "flushdb", -1, Flags::WRITE, KeySpec::NONE, Group::Server, "Removes all keys from the current database."),
    command(Id::Flushall, "flushall", -1, Flags::WRITE, KeySpec::NONE, Group::Server, "Removes all keys from all databases."),
    command(Id::Info, "info", -1, Flags::NONE, KeySpec::NONE, Group::Server, "Returns information and statistics about the server."),
    command(Id::Config, "config", -2, Flags::ADMIN, KeySpec::NONE, Group::Server, "Reads and sets settings."),
    command(Id::Command, "command", -1, Flags::NONE, KeySpec::NONE, Group::Server, "Returns information about commands."),
    command(Id::Debug, "debug", -2, Flags::ADMIN, KeySpec::NONE, Group::Server, "Commands for tests."),
    command(Id::Save, "save", 1, Flags::ADMIN.with(Flags::NO_MULTI), KeySpec::NONE, Group::Server, "Makes all data durable and writes a backup."),
    command(Id::Bgsave, "bgsave", -1, Flags::ADMIN, KeySpec::NONE, Group::Server, "Begins a backup."),
    command(Id::Lastsave, "lastsave", 1, Flags::FAST, KeySpec::NONE, Group::Server, "Returns the Unix timestamp of the last backup."),
    command(Id::Shutdown, "shutdown", -1, Flags::ADMIN.with(Flags::NO_MULTI), KeySpec::NONE, Group::Server, "Makes all data durable and stops the server."),
    command(Id::Slowlog, "slowlog", -2, Flags::ADMIN, KeySpec::NONE, Group::Server, "Tells of slow commands."),
    command(Id::Latency, "latency", -2, Flags::ADMIN, KeySpec::NONE, Group::Server, "Tells of latencies."),
    command(Id::Memory, "memory", -2, Flags::READONLY, KeySpec { first: 2, last: 2, step: 1 }, Group::Server, "Tells of memory."),
    command(Id::Time, "time", 1, Flags::FAST, KeySpec::NONE, Group::Server, "Returns the server time."),
];

/// In the order of names.
static BY_NAME: LazyLock<Vec<&'static Command>> = LazyLock::new(|| {
    let mut commands: Vec<&Command> = COMMANDS.iter().collect();
    commands.sort_unstable_by_key(|command| command.name);
    commands
});

/// All commands, by groups.
pub(crate) fn all() -> &'static [Command] {
    COMMANDS
}

/// The command called `name`, in upper or lower case. Costs no allocation.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let lower = &*lower;
    let index = BY_NAME.binary_search_by(|command| command.name.as_bytes().cmp(lower));
    BY_NAME.get(index.ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        for command in all() {
            let found = |name: &str| find(name.as_bytes()).map(|it| it.id);
            assert_eq!(found(command.name), Some(command.id), "{}", command.name);
            assert_eq!(found(&command.name.to_uppercase()), Some(command.id));
        }
        assert!(find(b"nosuchcommand").is_none());
        assert!(find(b"a name that is longer than any").is_none());
    }
}
