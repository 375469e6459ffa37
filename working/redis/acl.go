package redis

// ACL gives the rules of an ACL user who can do all that a Home does, and
// nothing beyond keys that begin with prefix; for ACL SETUSER.
func ACL(prefix string) string {
	return "~" + prefix +
		"* resetchannels -@all +ping +client|setname +auth +select +cluster|slots +cluster|shards +command" +
		" +eval +evalsha +time +type +exists +del +rename +pttl +pexpireat +set +get +incrby +scan" +
		" +hsetnx +hset +hget +hmget +hgetall +hkeys +hlen +hdel +hincrby" +
		" +zadd +zrem +zcard +zrank +zrange +zrangebyscore +zremrangebyrank +zscore +sadd +smembers"
}
