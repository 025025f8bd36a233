// redigo as its users use it: a pool, pipelines, scripts, messages. The server dies in the middle.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	writes   = 600
	patience = 60 * time.Second
)

func require(condition bool, what ...interface{}) {
	if !condition {
		fmt.Println(append([]interface{}{"FAILED:"}, what...)...)
		os.Exit(1)
	}
}

func equal(got interface{}, err error, expected interface{}) {
	require(err == nil, err)
	require(reflect.DeepEqual(got, expected), got, "expected", expected)
}

func values(client redis.Conn) {
	raw := []byte{0, 255, 13, 10, 36}
	large := bytes.Repeat([]byte("gr\xc3\xbc\xc3\x9fe\x00"), 200000)
	got, err := redis.String(client.Do("SET", "bytes", raw, "PX", 60000))
	equal(got, err, "OK")
	back, err := redis.Bytes(client.Do("GET", "bytes"))
	equal(back, err, raw)
	_, err = client.Do("SET", "large", large)
	require(err == nil, err)
	back, err = redis.Bytes(client.Do("GET", "large"))
	require(err == nil && bytes.Equal(back, large), "a large value came back changed", err)
	_, err = redis.String(client.Do("GET", "none"))
	require(err == redis.ErrNil, err)
	_, err = client.Do("HSET", redis.Args{}.Add("map").AddFlat(map[string]string{"a": "1"})...)
	require(err == nil, err)
	fields, err := redis.StringMap(client.Do("HGETALL", "map"))
	equal(fields, err, map[string]string{"a": "1"})
	_, err = client.Do("INCR", "map")
	require(err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE "), err)
	_, err = client.Do("ZADD", "scores", 1.5, "a", 2, "b")
	require(err == nil, err)
	scores, err := redis.StringMap(client.Do("ZRANGE", "scores", 0, -1, "WITHSCORES"))
	equal(scores, err, map[string]string{"a": "1.5", "b": "2"})
}

func units(client redis.Conn) {
	for n := 0; n < 500; n++ {
		require(client.Send("INCR", "many") == nil)
	}
	require(client.Flush() == nil)
	for n := 1; n <= 500; n++ {
		got, err := redis.Int(client.Receive())
		equal(got, err, n)
	}
	client.Send("MULTI")
	client.Send("INCR", "many")
	client.Send("GET", "many")
	both, err := redis.Values(client.Do("EXEC"))
	equal(both, err, []interface{}{int64(501), []byte("501")})
	script := redis.NewScript(1, "return redis.call('INCRBY', KEYS[1], ARGV[1])")
	got, err := redis.Int(script.Do(client, "many", 9))
	equal(got, err, 510)
	client.Do("SCRIPT", "FLUSH")
	got, err = redis.Int(script.Do(client, "many", 9))
	equal(got, err, 519)
}

func messages(pool *redis.Pool) {
	client, subscriber := pool.Get(), redis.PubSubConn{Conn: pool.Get()}
	defer client.Close()
	defer subscriber.Close()
	require(subscriber.Subscribe("news") == nil)
	_, subscribed := subscriber.ReceiveWithTimeout(patience).(redis.Subscription)
	require(subscribed, "no subscription")
	count, err := redis.Int(client.Do("PUBLISH", "news", "hello"))
	equal(count, err, 1)
	message, _ := subscriber.ReceiveWithTimeout(patience).(redis.Message)
	equal(string(message.Data), nil, "hello")
}

// What was acknowledged is there; what was under way may be or not, and nothing comes twice.
func throughAKill(pool *redis.Pool) {
	script := redis.NewScript(2,
		"redis.call('RPUSH', KEYS[2], ARGV[1]) return redis.call('INCR', KEYS[1])")
	acknowledged, unknown := 0, 0
	// It continues until it has seen the kill.
	for n := 0; n < writes || unknown == 0; n++ {
		if n == writes/2 {
			fmt.Println("kill")
		}
		client := pool.Get()
		if _, err := script.Do(client, "count", "log", n); err == nil {
			acknowledged++
		} else {
			unknown++
			time.Sleep(5 * time.Millisecond)
		}
		client.Close()
	}
	told, err := bufio.NewReader(os.Stdin).ReadString('\n')
	equal(told, err, "restarted\n")
	var count int
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		client := pool.Get()
		count, err = redis.Int(client.Do("GET", "count"))
		client.Close()
		if err == nil || time.Now().After(deadline) {
			break
		}
	}
	require(err == nil, err)
	fmt.Println(acknowledged, "acknowledged,", unknown, "unknown,", count, "counted")
	require(count >= acknowledged && count <= acknowledged+unknown, "the count")
	client := pool.Get()
	defer client.Close()
	length, err := redis.Int(client.Do("LLEN", "log"))
	equal(length, err, count)
}

func main() {
	address := "127.0.0.1:" + os.Getenv("SLUICE_PORT")
	pool := &redis.Pool{MaxIdle: 4, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", address, redis.DialReadTimeout(patience))
	}}
	client := pool.Get()
	values(client)
	units(client)
	client.Close()
	messages(pool)
	throughAKill(pool)
	fmt.Println("all of it holds")
}
