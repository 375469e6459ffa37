package redis

// ACL returns the rules for a Redis user, as the command ACL SETUSER needs them. The user may do everything that a Home
// needs, but only with keys that begin with prefix.
func ACL(prefix string) string {
	return "~" + prefix +
		"* resetchannels -@all +ping +client|setname +auth +select +cluster|slots +cluster|shards +command" +
		" +eval +evalsha +time +type +exists +del +rename +pttl +pexpireat +set +get +incrby +scan" +
		" +hsetnx +hset +hget +hmget +hgetall +hkeys +hlen +hdel +hincrby" +
		" +zadd +zrem +zcard +zrank +zrange +zrangebyscore +zremrangebyrank +zscore +sadd +smembers"
}
