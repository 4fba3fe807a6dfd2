//! Commands by number.

/// Which command: the name, its parts joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[rustfmt::skip]
pub(crate) enum Id {
    Get, Set, Setnx, Setex, Psetex, Getset, Getdel, Getex, Mget,
    Mset, Msetnx, Append, Strlen, Setrange, Getrange, Substr, Incr, Incrby,
    Decr, Decrby, Incrbyfloat, Del, Unlink, Exists, Type, Ttl, Pttl,
    Expire, Pexpire, Expireat, Pexpireat, Expiretime, Pexpiretime, Persist, Scan, Keys,
    Randomkey, Rename, Renamenx, Copy, Touch, Object, Dbsize, Flushdb, Flushall,
    Hset, Hsetnx, Hget, Hmget, Hmset, Hgetall, Hdel, Hlen, Hexists,
    Hkeys, Hvals, Hscan, Hstrlen, Hincrby, Hincrbyfloat, Hrandfield, Sadd, Srem,
    Sismember, Smismember, Smembers, Scard, Spop, Srandmember, Sscan, Sunion, Sinter,
    Sdiff, Zadd, Zrem, Zscore, Zmscore, Zcard, Zcount, Zrange, Zrangebyscore,
    Zrevrange, Zrank, Zrevrank, Zincrby, Zpopmin, Zpopmax, Zremrangebyscore, Zremrangebyrank, Zscan,
    Lpush, Rpush, Lpop, Rpop, Llen, Lrange, Lindex, Lset, Ltrim,
    Lrem, Blpop, Brpop, KreonRange, KreonCount, KreonDelrange, Ping, Echo, Hello,
    Auth, Select, Quit, Reset, Client, Multi, Exec, Discard, Watch,
    Unwatch, Subscribe, Psubscribe, Unsubscribe, Punsubscribe, Publish, Pubsub, Info, Config,
    Command, Debug, Wait, Save, Bgsave, Lastsave, Shutdown, Slowlog, Latency,
    Memory, Time,
}
