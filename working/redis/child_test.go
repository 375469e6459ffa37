package redis_test

func child() int { return 0 }
