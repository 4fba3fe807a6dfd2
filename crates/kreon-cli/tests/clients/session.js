// A session of all groups of commands by ioredis: `node session.js PORT`. Ends with 1 at the first wrong reply.
"use strict";
const assert = require("node:assert/strict");
const { Redis } = require("ioredis");

const port = Number(process.argv[2]);
let count = 0;

async function same(got, wanted) {
  count += 1;
  assert.deepEqual(await got, wanted, `reply ${count}`);
}

async function fails(got, words) {
  count += 1;
  await assert.rejects(got, (error) => error.message.includes(words), `reply ${count}`);
}

async function data(r) {
  await same(r.flushall(), "OK");
  await same(r.ping(), "PONG");
  // Strings and keys.
  await same(r.set("s", Buffer.from([0, 255, 13, 10])), "OK");
  await same(r.getBuffer("s"), Buffer.from([0, 255, 13, 10]));
  await same(r.set("s", "hello", "EX", 100, "NX"), null);
  await same(r.set("s", "hello", "EX", 100), "OK");
  await same(r.ttl("s"), 100);
  await same(r.append("s", "!"), 6);
  await same(r.getrange("s", 0, 1), "he");
  await same(r.incrby("n", 41), 41);
  await same(r.incr("n"), 42);
  await same(r.mset({ a: "1", b: "2" }), "OK");
  await same(r.mget("a", "b", "none"), ["1", "2", null]);
  await same(r.exists("a", "none"), 1);
  await same(r.type("a"), "string");
  await same(r.rename("a", "c"), "OK");
  await same(r.persist("s"), 1);
  await same(r.del("b", "c"), 2);
  await fails(r.incr("s"), "not an integer");
  // Hashes and sets.
  await same(r.hset("h", { f: "1", g: "2" }), 2);
  await same(r.hgetall("h"), { f: "1", g: "2" });
  await same(r.hincrby("h", "f", 4), 5);
  await same(r.hdel("h", "g"), 1);
  await same(r.hmget("h", "f", "none"), ["5", null]);
  await same(r.sadd("t", "a", "b"), 2);
  await same(r.sadd("u", "b", "c"), 2);
  await same(r.sinter("t", "u"), ["b"]);
  await same(r.sismember("t", "a"), 1);
  await same(r.scard("t"), 2);
  // Sorted sets and lists.
  await same(r.zadd("z", 1, "a", 2.5, "b", 3, "c"), 3);
  await same(r.zrange("z", 0, -1, "WITHSCORES"), ["a", "1", "b", "2.5", "c", "3"]);
  await same(r.zrangebyscore("z", "(1", "+inf", "LIMIT", 0, 1), ["b"]);
  await same(r.zrevrank("z", "a"), 2);
  await same(r.zpopmin("z"), ["a", "1"]);
  await same(r.rpush("l", 1, 2, 3), 3);
  await same(r.lrange("l", 0, -1), ["1", "2", "3"]);
  await same(r.lrem("l", 1, 2), 1);
  await same(r.blpop("none", "l", 1), ["l", "1"]);
  await fails(r.lpush("s", 1), "WRONGTYPE");
}

async function together(r, other) {
  // Transactions and pipelines.
  await same(r.multi().set("m", 1).incr("m").exec(), [[null, "OK"], [null, 2]]);
  await r.watch("m");
  await other.set("m", 9);
  await same(r.multi().incr("m").exec(), null);
  const pipeline = r.pipeline();
  for (let number = 0; number < 500; number += 1) {
    pipeline.set(`p${String(number).padStart(3, "0")}`, number);
  }
  await same(pipeline.exec(), Array(500).fill([null, "OK"]));
  const found = new Set();
  for await (const keys of r.scanStream({ match: "p*", count: 50 })) {
    keys.forEach((key) => found.add(key));
  }
  await same(found.size, 500);
  await same(r.call("KREON.RANGE", "p1", "p2", "LIMIT", 2, "KEYS"), ["p100", "p101"]);
  await same(r.call("KREON.DELRANGE", "p", "q"), "OK");
  // A pop that waits for the push of another client.
  const waiting = r.brpop("later", 10);
  while (!/blocked_clients:1/.test(await other.info("clients"))) {}
  await same(other.rpush("later", "x"), 1);
  await same(waiting, ["later", "x"]);
  // Messages.
  const got = new Promise((resolve) => r.once("message", (channel, text) => resolve([channel, text])));
  await same(r.subscribe("news"), 1);
  await same(other.publish("news", "hi"), 1);
  await same(got, ["news", "hi"]);
  await same(r.unsubscribe("news"), 0);
  // The server.
  await same(r.client("SETNAME", "node"), "OK");
  await same(r.client("GETNAME"), "node");
  await same(r.config("GET", "databases"), ["databases", "16"]);
  await same(r.select(1), "OK");
  await same(r.dbsize(), 0);
  await fails(r.call("NOSUCH"), "unknown command");
  await same(other.flushall(), "OK");
}

async function main() {
  const clients = [new Redis({ port, maxRetriesPerRequest: 0 }), new Redis({ port, maxRetriesPerRequest: 0 })];
  await data(clients[0]);
  await together(clients[0], clients[1]);
  await Promise.all(clients.map((client) => client.quit()));
  console.log(`${count} replies`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
