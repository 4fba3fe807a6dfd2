"""A session of all groups of commands by the Python client: `session.py PORT`. Ends with 1 at the first wrong reply."""

import sys
import threading

import redis

PORT = int(sys.argv[1])
count = 0


def same(got, wanted):
    global count
    count += 1
    if got != wanted:
        raise SystemExit(f"reply {count}: {got!r}, not {wanted!r}")


def fails(call, words):
    try:
        got = call()
    except redis.RedisError as error:
        same(words in str(error), True)
    else:
        raise SystemExit(f"{got!r}, not an error with {words!r}")


def session(r):
    same(r.flushall(), True)
    same(r.ping(), True)
    same(r.echo("x"), b"x")
    # Strings.
    same(r.set("s", b"\x00\xff\r\n"), True)
    same(r.get("s"), b"\x00\xff\r\n")
    same(r.set("s", "v", nx=True), None)
    same(r.set("s", "hello", get=True), b"\x00\xff\r\n")
    same(r.append("s", " world"), 11)
    same(r.getrange("s", 6, -1), b"world")
    same(r.setrange("s", 6, "there"), 11)
    same(r.strlen("s"), 11)
    same(r.incrby("n", 5), 5)
    same(r.decr("n"), 4)
    same(r.incrbyfloat("n", 0.5), 4.5)
    same(r.mset({"a": 1, "b": 2}), True)
    same(r.mget("a", "b", "none"), [b"1", b"2", None])
    same(r.msetnx({"a": 3, "c": 3}), False)
    same(r.getdel("a"), b"1")
    fails(lambda: r.incr("s"), "not an integer")
    # Keys.
    same(r.exists("s", "b", "none"), 2)
    same(r.type("s"), b"string")
    same(r.expire("b", 100), True)
    same(r.ttl("b"), 100)
    same(r.persist("b"), True)
    same(r.pttl("b"), -1)
    same(r.getex("b", ex=50), b"2")
    same(r.copy("b", "c"), True)
    same(r.rename("c", "d"), True)
    same(r.renamenx("d", "b"), False)
    same(sorted(r.keys("[bd]")), [b"b", b"d"])
    same(r.touch("b", "d"), 2)
    same(r.unlink("d"), 1)
    # Hashes.
    same(r.hset("h", mapping={"f": 1, "g": 2}), 2)
    same(r.hsetnx("h", "f", 3), False)
    same(r.hgetall("h"), {b"f": b"1", b"g": b"2"})
    same(r.hmget("h", "f", "none"), [b"1", None])
    same(r.hincrby("h", "f", 4), 5)
    same(r.hincrbyfloat("h", "g", 0.25), 2.25)
    same(sorted(r.hkeys("h")), [b"f", b"g"])
    same(sorted(r.hscan_iter("h")), [(b"f", b"5"), (b"g", b"2.25")])
    same(r.hdel("h", "g"), 1)
    same(r.hrandfield("h"), b"f")
    # Sets.
    same(r.sadd("t", "a", "b", "c"), 3)
    same(r.sadd("u", "b", "c", "d"), 3)
    same(r.smembers("t"), {b"a", b"b", b"c"})
    same(r.smismember("t", ["a", "d"]), [1, 0])
    same(r.sinter("t", "u"), {b"b", b"c"})
    same(r.sunion("t", "u"), {b"a", b"b", b"c", b"d"})
    same(r.sdiff("t", "u"), {b"a"})
    same(r.srem("t", "a"), 1)
    same(r.spop("t") in (b"b", b"c"), True)
    same(r.scard("t"), 1)
    # Sorted sets.
    same(r.zadd("z", {"a": 1, "b": 2.5, "c": 3}), 3)
    same(r.zadd("z", {"a": 9}, nx=True), 0)
    same(r.zscore("z", "b"), 2.5)
    same([member for member, _ in r.zrange("z", 0, -1, withscores=True)], [b"a", b"b", b"c"])
    same(r.zrange("z", "(1", "+inf", byscore=True, offset=0, num=1), [b"b"])
    same(r.zrange("z", "[c", "[a", bylex=True, desc=True), [b"c", b"b", b"a"])
    same(r.zrank("z", "c"), 2)
    same(r.zincrby("z", 1, "a"), 2.0)
    same(r.zcount("z", 2, 3), 3)
    same(r.zremrangebyrank("z", 0, 0), 1)
    same(r.zcard("z"), 2)
    same(len(list(r.zscan_iter("z"))), 2)
    same(len(r.zpopmax("z")) > 0, True)
    # Lists.
    same(r.rpush("l", 1, 2, 3, 4), 4)
    same(r.lpush("l", 0), 5)
    same(r.lrange("l", 0, -1), [b"0", b"1", b"2", b"3", b"4"])
    same(r.lset("l", 0, "x"), True)
    same(r.lindex("l", 0), b"x")
    same(r.lrem("l", 0, "x"), 1)
    same(r.ltrim("l", 0, 2), True)
    same(r.lpop("l", 2), [b"1", b"2"])
    same(r.blpop(["none", "l"], timeout=1), LIST(b"l", b"3"))
    fails(lambda: r.lpush("s", 1), "WRONGTYPE")
    # Transactions, pipelines.
    with r.pipeline() as pipe:
        pipe.watch("b")
        pipe.multi()
        pipe.set("b", 7).incr("b").get("b")
        same(pipe.execute(), [True, 8, b"8"])
    with r.pipeline() as pipe:
        pipe.watch("b")
        r.set("b", 1)
        pipe.multi()
        pipe.get("b")
        fails(pipe.execute, "Watched variable changed")
    with r.pipeline(transaction=False) as pipe:
        for number in range(500):
            pipe.set(f"p{number:03}", number)
        same(pipe.execute(), [True] * 500)
    same(len(set(r.scan_iter(match="p*", count=50))), 500)
    # Ordered commands.
    same(r.execute_command("KREON.COUNT", "p", "q"), 500)
    same(r.execute_command("KREON.RANGE", "p1", "p2", "LIMIT", 2, "KEYS"), [b"p100", b"p101"])
    same(r.execute_command("KREON.DELRANGE", "p", "q"), b"OK")
    # The server.
    same(r.client_setname("python"), True)
    same(r.client_getname() in ("python", b"python"), True)
    same(r.client_id() > 0, True)
    same(len(r.info()) > 10, True)
    same(r.config_get("databases"), {"databases": "16"})
    same(r.command_count() > 100, True)
    same(r.memory_usage("s") > 0, True)
    fails(lambda: r.execute_command("NOSUCH", 1), "unknown command")
    messages(r)
    same(r.dbsize() > 5, True)
    same(r.flushdb(), True)
    same(r.dbsize(), 0)


def LIST(*parts):
    """The client makes a tuple of what RESP2 brings and keeps the list of RESP3."""
    return Either(parts)


class Either(tuple):
    def __new__(cls, parts):
        return super().__new__(cls, parts)

    def __eq__(self, other):
        return tuple(self) == tuple(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = tuple.__hash__


def messages(r):
    with r.pubsub(ignore_subscribe_messages=True) as channels:
        channels.subscribe("news")
        channels.psubscribe("n*s")
        while sum(number for _, number in r.pubsub_numsub("news")) == 0 or r.pubsub_numpat() == 0:
            pass
        sender = threading.Thread(target=lambda: same(r.publish("news", "hi"), 2))
        sender.start()
        got = []
        while len(got) < 2:
            message = channels.get_message(timeout=5)
            if message:
                got.append((message["type"], message["data"]))
        sender.join()
        same(sorted(got), [("message", b"hi"), ("pmessage", b"hi")])


for protocol in (2, 3):
    with redis.Redis(port=PORT, protocol=protocol, socket_timeout=20) as client:
        session(client)
print(f"{count} replies")
