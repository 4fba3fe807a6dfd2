// A session of all groups of commands by go-redis: `session PORT`. Ends with 1 at the first wrong reply.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	ctx   = context.Background()
	count = 0
)

func stop(words ...any) {
	fmt.Fprintln(os.Stderr, words...)
	os.Exit(1)
}

// same checks a reply; absent values are redis.Nil.
func same[T any](got interface{ Result() (T, error) }, wanted any) {
	count++
	value, err := got.Result()
	if err == redis.Nil && wanted == redis.Nil {
		return
	}
	if err != nil || !reflect.DeepEqual(any(value), wanted) {
		stop("reply", count, fmt.Sprintf("%#v %v, not %#v", value, err, wanted))
	}
}

func fails[T any](got interface{ Result() (T, error) }, words string) {
	count++
	if value, err := got.Result(); err == nil || !strings.Contains(err.Error(), words) {
		stop("reply", count, value, err, "not an error with", words)
	}
}

func data(r *redis.Client) {
	same(r.FlushAll(ctx), "OK")
	same(r.Ping(ctx), "PONG")
	// Strings and keys.
	same(r.Set(ctx, "s", "\x00\xff\r\n", 0), "OK")
	same(r.Get(ctx, "s"), "\x00\xff\r\n")
	same(r.Get(ctx, "none"), redis.Nil)
	same(r.SetNX(ctx, "s", "x", 0), false)
	same(r.Set(ctx, "s", "hello", 100*time.Second), "OK")
	same(r.TTL(ctx, "s"), 100*time.Second)
	same(r.Append(ctx, "s", "!"), int64(6))
	same(r.IncrBy(ctx, "n", 42), int64(42))
	same(r.IncrByFloat(ctx, "n", 0.5), 42.5)
	same(r.MSet(ctx, "a", 1, "b", 2), "OK")
	same(r.MGet(ctx, "a", "none"), []any{"1", nil})
	same(r.Exists(ctx, "a", "b", "none"), int64(2))
	same(r.Type(ctx, "a"), "string")
	same(r.Rename(ctx, "a", "c"), "OK")
	same(r.Persist(ctx, "s"), true)
	same(r.Del(ctx, "b", "c"), int64(2))
	fails(r.Incr(ctx, "s"), "not an integer")
	// Hashes and sets.
	same(r.HSet(ctx, "h", "f", 1, "g", 2), int64(2))
	same(r.HGetAll(ctx, "h"), map[string]string{"f": "1", "g": "2"})
	same(r.HIncrBy(ctx, "h", "f", 4), int64(5))
	same(r.HExists(ctx, "h", "none"), false)
	same(r.SAdd(ctx, "t", "a", "b"), int64(2))
	same(r.SAdd(ctx, "u", "b", "c"), int64(2))
	same(r.SInter(ctx, "t", "u"), []string{"b"})
	same(r.SMIsMember(ctx, "t", "a", "c"), []bool{true, false})
	// Sorted sets and lists.
	same(r.ZAdd(ctx, "z", redis.Z{Score: 1, Member: "a"}, redis.Z{Score: 2.5, Member: "b"}), int64(2))
	same(r.ZRangeWithScores(ctx, "z", 0, -1), []redis.Z{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}})
	same(r.ZRangeArgs(ctx, redis.ZRangeArgs{Key: "z", Start: "(1", Stop: "+inf", ByScore: true}), []string{"b"})
	same(r.ZScore(ctx, "z", "b"), 2.5)
	same(r.ZIncrBy(ctx, "z", 2, "a"), 3.0)
	same(r.ZPopMin(ctx, "z"), []redis.Z{{Score: 2.5, Member: "b"}})
	same(r.RPush(ctx, "l", 1, 2, 3), int64(3))
	same(r.LRange(ctx, "l", 0, -1), []string{"1", "2", "3"})
	same(r.LPopCount(ctx, "l", 2), []string{"1", "2"})
	same(r.BLPop(ctx, time.Second, "none", "l"), []string{"l", "3"})
	fails(r.LPush(ctx, "s", 1), "WRONGTYPE")
}

func together(r *redis.Client) {
	// Transactions and pipelines.
	replies, err := r.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "m", 1, 0)
		pipe.Incr(ctx, "m")
		return nil
	})
	if err != nil || replies[1].(*redis.IntCmd).Val() != 2 {
		stop("transaction", replies, err)
	}
	err = r.Watch(ctx, func(tx *redis.Tx) error {
		r.Set(ctx, "m", 9, 0)
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Incr(ctx, "m").Err() })
		return err
	}, "m")
	if err != redis.TxFailedErr {
		stop("a transaction over a changed key", err)
	}
	_, err = r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for number := range 500 {
			pipe.Set(ctx, fmt.Sprintf("p%03d", number), number, 0)
		}
		return nil
	})
	if err != nil {
		stop("pipeline", err)
	}
	var keys []string
	scan := r.Scan(ctx, 0, "p*", 50).Iterator()
	for scan.Next(ctx) {
		keys = append(keys, scan.Val())
	}
	sort.Strings(keys)
	if scan.Err() != nil || len(keys) != 500 || keys[499] != "p499" {
		stop("scan", scan.Err(), len(keys))
	}
	same(r.Do(ctx, "KREON.RANGE", "p1", "p2", "LIMIT", 2, "KEYS"), any([]any{"p100", "p101"}))
	same(r.Do(ctx, "KREON.DELRANGE", "p", "q"), any("OK"))
	// Messages.
	news := r.Subscribe(ctx, "news")
	defer news.Close()
	if _, err := news.Receive(ctx); err != nil {
		stop("subscribe", err)
	}
	same(r.Publish(ctx, "news", "hi"), int64(1))
	if message, err := news.ReceiveMessage(ctx); err != nil || message.Payload != "hi" {
		stop("message", message, err)
	}
	// The server.
	same(r.ConfigGet(ctx, "databases"), map[string]string{"databases": "16"})
	fails(r.Do(ctx, "NOSUCH"), "unknown command")
	same(r.FlushAll(ctx), "OK")
	same(r.DBSize(ctx), int64(0))
}

func main() {
	for _, protocol := range []int{2, 3} {
		r := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol})
		data(r)
		together(r)
		r.Close()
	}
	fmt.Println(count, "replies")
}
