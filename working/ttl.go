package working

import (
	"context"
	"time"
)

// TTL returns the remaining lifetime of a value. The lifetime is negative if the value does not expire. TTL returns
// false if the key has no value.
func (m *Memory) TTL(ctx context.Context, key string) (time.Duration, bool, error) {
	if err := checkKey(key); err != nil {
		return 0, false, err
	}
	it, err := m.one(ctx, OpGet{Names: []string{ValueName(key)}, Peek: true})
	return remaining(it.TTL), it.Found, err
}

func remaining(ms int64) time.Duration {
	if ms < 0 {
		return -1
	}
	const most = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(ms, most)) * time.Millisecond
}

// Touch sets the lifetime of a value, and reports whether the value exists. Without an option, the lifetime is
// Options.TTL.
func (m *Memory) Touch(ctx context.Context, key string, opts ...SetOption) (bool, error) {
	if err := checkKey(key); err != nil {
		return false, err
	}
	life, err := m.fresh(opts)
	if err != nil {
		return false, err
	}
	res, err := m.do(ctx, OpExpire{Name: ValueName(key), TTL: life.ttl})
	return res.N > 0, err
}

// Entry is a value with its metadata.
type Entry struct {
	Key     string
	Value   any
	Updated time.Time     // time of the last write by the clock of the home
	TTL     time.Duration // remaining lifetime; negative: the value does not expire
	Version uint64        // changes with every write
}

// Entry returns a value with its metadata, and reports whether the key has a value. It does not count as a use of the
// value.
func (m *Memory) Entry(ctx context.Context, key string) (Entry, bool, error) {
	if err := checkKey(key); err != nil {
		return Entry{}, false, err
	}
	it, err := m.one(ctx, OpGet{Names: []string{ValueName(key)}, Peek: true})
	if err != nil || !it.Found {
		return Entry{}, false, err
	}
	v, err := m.numbers.value(it.Name, it.Value)
	return Entry{Key: key, Value: v, Updated: it.Updated, TTL: remaining(it.TTL), Version: it.Version}, err == nil, err
}
