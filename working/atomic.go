package working

import (
	"bytes"
	"context"
	"errors"
	"reflect"
)

// ErrSkip tells Update to write nothing. The function that is passed to Update returns it.
var ErrSkip = errors.New("skip the write")

// SetIfAbsent stores a value if the key has no value yet, and reports whether it stored the value.
func (m *Memory) SetIfAbsent(ctx context.Context, key string, value any, opts ...SetOption) (bool, error) {
	life, err := m.fresh(opts)
	if err != nil {
		return false, err
	}
	p, err := putItem(key, value, life)
	if err != nil {
		return false, err
	}
	p.Cond = IfAbsent
	_, ok, err := m.try(ctx, p)
	return ok, err
}

// try writes an item, and reports whether the condition of the write was met. If it was not met, the error is nil.
func (m *Memory) try(ctx context.Context, p PutItem) (Item, bool, error) {
	it, err := m.one(ctx, OpPut{Items: []PutItem{p}})
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		return Item{}, false, nil
	}
	it.Value = p.Value
	return it, err == nil, err
}

// CompareAndSet stores value if the current value is equal to old, and reports whether it stored the value. Two values
// are equal if their JSON is equal; the order of members and the notation of numbers are ignored. If the key has no
// value, old never matches; use SetIfAbsent in this case. The value keeps its remaining lifetime, unless an option sets
// another one.
func (m *Memory) CompareAndSet(ctx context.Context, key string, old, value any, opts ...SetOption) (bool, error) {
	want, err := encodeValue("old", old)
	if err != nil {
		return false, err
	}
	done := false
	_, err = m.change(ctx, key, opts, func(now []byte, found bool) ([]byte, error) {
		if done = found && sameJSON(now, want); !done {
			return nil, ErrSkip
		}
		return encodeValue(key, value)
	})
	return done && err == nil, err
}

func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := asFloat.value("", a)
	y, errY := asFloat.value("", b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// Update atomically replaces a value by the result of fn, and returns the new value. found is false if the key has no
// value. If another writer changes the value while fn runs, Update calls fn again with the new value. If fn returns
// ErrSkip, Update writes nothing and returns the current value without an error. Any other error of fn is returned
// unchanged.
func (m *Memory) Update(ctx context.Context, key string, fn func(value any, found bool) (any, error),
	opts ...SetOption) (any, error) {
	it, err := m.change(ctx, key, opts, func(now []byte, found bool) (_ []byte, err error) {
		var v any
		if found {
			if v, err = m.numbers.value(ValueName(key), now); err != nil {
				return nil, err
			}
		}
		if v, err = fn(v, found); err != nil {
			return nil, err
		}
		return encodeValue(key, v)
	})
	if err != nil || it.Value == nil {
		return nil, err
	}
	return m.numbers.value(ValueName(key), it.Value)
}

func (m *Memory) change(ctx context.Context, key string, opts []SetOption,
	fn func([]byte, bool) ([]byte, error)) (Item, error) {
	if err := checkKey(key); err != nil {
		return Item{}, err
	}
	life, err := m.changed(opts)
	if err != nil {
		return Item{}, err
	}
	return m.changeItem(ctx, ValueName(key), life, fn)
}

// changeItem reads an item, calls fn, and writes the result. If another writer has changed the item in between,
// changeItem starts again. An attempt fails only if another writer has succeeded, so at least one writer always makes
// progress.
func (m *Memory) changeItem(ctx context.Context, name string, life lifetime,
	fn func([]byte, bool) ([]byte, error)) (Item, error) {
	for {
		it, err := m.one(ctx, OpGet{Names: []string{name}})
		if err != nil {
			return Item{}, err
		}
		raw, err := fn(it.Value, it.Found)
		if errors.Is(err, ErrSkip) {
			return it, nil
		}
		if err != nil {
			return Item{}, err
		}
		p := PutItem{Name: name, Value: raw, TTL: life.ttl, IfNew: life.ifNew, Cond: IfAbsent}
		if it.Found {
			p.Cond, p.Version = IfVersion, it.Version
		}
		if it, ok, err := m.try(ctx, p); ok || err != nil {
			return it, err
		}
		if err := ctx.Err(); err != nil {
			return Item{}, err
		}
	}
}

// Increment adds delta to a 64-bit integer and returns the sum. A missing value counts as 0. The value keeps its
// remaining lifetime, unless an option sets another one. If the error matches ErrNotInteger or ErrOverflow, the
// value was not changed.
func (m *Memory) Increment(ctx context.Context, key string, delta int64, opts ...SetOption) (int64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	life, err := m.changed(opts)
	if err != nil {
		return 0, err
	}
	res, err := m.do(ctx, OpIncrement{Name: ValueName(key), By: delta, TTL: life.ttl, IfNew: life.ifNew})
	return res.N, err
}
