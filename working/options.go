package working

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/varve-db/varve/errs"
)

// The default limits.
const (
	DefaultKeys        = 10_000
	DefaultBytes       = 64 << 20
	DefaultNotes       = 10_000
	DefaultCheckpoints = 100
	// Unlimited, as the value of MaxKeys, MaxBytes, MaxNotes or Checkpoints in Options, means no limit.
	Unlimited = -1
)

// Options are the options of a Memory. The zero value has the defaults.
type Options struct {
	TTL      time.Duration // lifetime of values that are set without a lifetime; 0: they do not expire
	MaxKeys  int           // maximum number of keys of the user; 0: DefaultKeys
	MaxBytes int64         // maximum number of bytes of keys and values of the user; 0: DefaultBytes
	// at MaxKeys and MaxBytes, delete the least recently used values; otherwise the error is a *LimitError
	Evict       bool
	MaxNotes    int   // maximum number of scratchpad entries: the oldest ones are deleted; 0: DefaultNotes
	Checkpoints int   // maximum number of checkpoints: the oldest ones are deleted; 0: DefaultCheckpoints
	Clock       Clock // clock for latencies and the start of a task; nil: SystemClock
	AsWritten   bool  // read numbers as json.Number, exactly as they were written, such as 1.10; otherwise see Get
	// source of random bytes for the UUIDs of checkpoints, safe for concurrent use; nil: crypto/rand
	Random io.Reader
}

// Validate returns the first invalid option as an error, or nil.
func (o *Options) Validate() error {
	bad := func(field string, v any, why string) error {
		return &errs.FieldError{Field: "Options." + field, Value: fmt.Sprint(v), Err: errors.New(why)}
	}
	switch {
	case o.TTL < 0:
		return bad("TTL", o.TTL, "the lifetime must not be negative")
	case o.MaxKeys < Unlimited:
		return bad("MaxKeys", o.MaxKeys, "must not be negative: 0 means the default, Unlimited means no limit")
	case o.MaxBytes < Unlimited:
		return bad("MaxBytes", o.MaxBytes, "must not be negative: 0 means the default, Unlimited means no limit")
	case o.MaxNotes < Unlimited:
		return bad("MaxNotes", o.MaxNotes, "must not be negative: 0 means the default, Unlimited means no limit")
	case o.Checkpoints < Unlimited:
		return bad("Checkpoints", o.Checkpoints, "must not be negative: 0 means the default, Unlimited means no limit")
	}
	return nil
}

func limit[T int | int64](n, def T) T {
	switch n {
	case 0:
		return def
	case Unlimited:
		return 0
	}
	return n
}

func (o *Options) limits() Limits {
	return Limits{Keys: limit(o.MaxKeys, DefaultKeys), Bytes: limit(o.MaxBytes, DefaultBytes), Evict: o.Evict}
}

// SetOption sets the lifetime of a value that is written. Without a SetOption, Set and SetMany give a value the
// lifetime Options.TTL. All other methods do so only for a new value; an existing value keeps its remaining lifetime.
type SetOption func(*lifetime) error

type lifetime struct {
	ttl, ifNew int64
}

// Expires sets a lifetime that begins with the write. It is rounded up to whole milliseconds. A value with the lifetime
// 0 is not stored, and an existing value is removed. A negative lifetime is an error.
func Expires(d time.Duration) SetOption {
	return func(l *lifetime) error {
		ms, err := millis(d)
		l.ttl = ms
		return err
	}
}

// NoExpiry sets no lifetime: the value does not expire, even if Options.TTL is set.
func NoExpiry() SetOption {
	return func(l *lifetime) error { l.ttl = Forever; return nil }
}

func millis(d time.Duration) (int64, error) {
	if d < 0 {
		return 0, &errs.FieldError{Field: "ttl", Value: d.String(), Limit: "0 or more",
			Err: errors.New("the lifetime must not be negative: use NoExpiry for a value that does not expire")}
	}
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond != 0 {
		ms++
	}
	return ms, nil
}

// fresh returns the lifetime of a value that is set; without an option it is Options.TTL. changed returns the lifetime
// of a value that is changed; without an option the value keeps its remaining lifetime.
func (m *Memory) fresh(opts []SetOption) (lifetime, error) { return m.lifetime(m.defaultTTL, opts) }

func (m *Memory) changed(opts []SetOption) (lifetime, error) { return m.lifetime(KeepTTL, opts) }

func (m *Memory) lifetime(ttl int64, opts []SetOption) (lifetime, error) {
	l := lifetime{ttl: ttl, ifNew: m.defaultTTL}
	for _, o := range opts {
		if err := o(&l); err != nil {
			return l, err
		}
	}
	return l, nil
}
