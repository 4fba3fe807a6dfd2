//! Which function runs which command.

use super::steps::Run;
use super::{Id, hashes, keys, lists, scan, sets, strings, whole, zrange, zsets};

/// How a command runs.
#[derive(Clone, Copy)]
pub(super) enum Body {
    /// Changes nothing.
    Read(Run),
    Write(Run),
    /// A write that waits if there is nothing to take.
    Wait(Run),
    /// Not on data.
    Session,
}

/// How the command `id` runs.
#[rustfmt::skip]
pub(super) fn body(id: Id) -> Body {
    use Body::{Read, Wait, Write};
    match id {
        Id::Get => Read(strings::get),
        Id::Set => Write(strings::set),
        Id::Setnx => Write(strings::setnx),
        Id::Setex => Write(strings::setex),
        Id::Psetex => Write(strings::psetex),
        Id::Getset => Write(strings::getset),
        Id::Getdel => Write(strings::getdel),
        Id::Getex => Write(strings::getex),
        Id::Mget => Read(strings::mget),
        Id::Mset => Write(strings::mset),
        Id::Msetnx => Write(strings::msetnx),
        Id::Append => Write(strings::append),
        Id::Strlen => Read(strings::strlen),
        Id::Setrange => Write(strings::setrange),
        Id::Getrange | Id::Substr => Read(strings::getrange),
        Id::Incr => Write(strings::incr),
        Id::Incrby => Write(strings::incrby),
        Id::Decr => Write(strings::decr),
        Id::Decrby => Write(strings::decrby),
        Id::Incrbyfloat => Write(strings::incrbyfloat),

        Id::Del | Id::Unlink => Write(keys::del),
        Id::Exists | Id::Touch => Read(keys::exists),
        Id::Type => Read(keys::type_of),
        Id::Ttl => Read(keys::ttl),
        Id::Pttl => Read(keys::pttl),
        Id::Expire => Write(keys::expire),
        Id::Pexpire => Write(keys::pexpire),
        Id::Expireat => Write(keys::expireat),
        Id::Pexpireat => Write(keys::pexpireat),
        Id::Expiretime => Read(keys::expiretime),
        Id::Pexpiretime => Read(keys::pexpiretime),
        Id::Persist => Write(keys::persist),
        Id::Rename => Write(keys::rename),
        Id::Renamenx => Write(keys::renamenx),
        Id::Copy => Write(keys::copy),
        Id::Object => Read(keys::object),

        Id::Scan => Read(scan::scan),
        Id::Keys => Read(whole::keys),
        Id::Randomkey => Read(whole::randomkey),
        Id::Dbsize => Read(whole::dbsize),
        Id::Flushdb => Write(whole::flushdb),
        Id::Flushall => Write(whole::flushall),
        Id::KreonRange => Read(whole::range),
        Id::KreonCount => Read(whole::count),
        Id::KreonDelrange => Write(whole::delrange),

        Id::Hset => Write(hashes::hset),
        Id::Hsetnx => Write(hashes::hsetnx),
        Id::Hget => Read(hashes::hget),
        Id::Hmget => Read(hashes::hmget),
        Id::Hmset => Write(hashes::hmset),
        Id::Hgetall => Read(hashes::hgetall),
        Id::Hdel => Write(hashes::hdel),
        Id::Hlen => Read(hashes::hlen),
        Id::Hexists => Read(hashes::hexists),
        Id::Hkeys => Read(hashes::hkeys),
        Id::Hvals => Read(hashes::hvals),
        Id::Hscan => Read(scan::hscan),
        Id::Hstrlen => Read(hashes::hstrlen),
        Id::Hincrby => Write(hashes::hincrby),
        Id::Hincrbyfloat => Write(hashes::hincrbyfloat),
        Id::Hrandfield => Read(hashes::hrandfield),

        Id::Sadd => Write(sets::sadd),
        Id::Srem => Write(sets::srem),
        Id::Sismember => Read(sets::sismember),
        Id::Smismember => Read(sets::smismember),
        Id::Smembers => Read(sets::smembers),
        Id::Scard => Read(sets::scard),
        Id::Spop => Write(sets::spop),
        Id::Srandmember => Read(sets::srandmember),
        Id::Sscan => Read(scan::sscan),
        Id::Sunion => Read(sets::sunion),
        Id::Sinter => Read(sets::sinter),
        Id::Sdiff => Read(sets::sdiff),

        Id::Zadd => Write(zsets::zadd),
        Id::Zrem => Write(zsets::zrem),
        Id::Zscore => Read(zsets::zscore),
        Id::Zmscore => Read(zsets::zmscore),
        Id::Zcard => Read(zsets::zcard),
        Id::Zcount => Read(zsets::zcount),
        Id::Zrange => Read(zrange::zrange),
        Id::Zrangebyscore => Read(zrange::zrangebyscore),
        Id::Zrevrange => Read(zrange::zrevrange),
        Id::Zrank => Read(zsets::zrank),
        Id::Zrevrank => Read(zsets::zrevrank),
        Id::Zincrby => Write(zsets::zincrby),
        Id::Zpopmin => Write(zsets::zpopmin),
        Id::Zpopmax => Write(zsets::zpopmax),
        Id::Zremrangebyscore => Write(zsets::zremrangebyscore),
        Id::Zremrangebyrank => Write(zsets::zremrangebyrank),
        Id::Zscan => Read(scan::zscan),

        Id::Lpush => Write(lists::lpush),
        Id::Rpush => Write(lists::rpush),
        Id::Lpop => Write(lists::lpop),
        Id::Rpop => Write(lists::rpop),
        Id::Llen => Read(lists::llen),
        Id::Lrange => Read(lists::lrange),
        Id::Lindex => Read(lists::lindex),
        Id::Lset => Write(lists::lset),
        Id::Ltrim => Write(lists::ltrim),
        Id::Lrem => Write(lists::lrem),
        Id::Blpop => Wait(lists::blpop),
        Id::Brpop => Wait(lists::brpop),

        _ => Body::Session,
    }
}
