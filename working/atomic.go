package working

import (
	"bytes"
	"context"
	"errors"
	"reflect"
)

// ErrSkip, returned by the function passed to Update, makes Update write nothing.
var ErrSkip = errors.New("skip: nothing is written")

// SetIfAbsent stores a value if the key has none, and reports whether it did.
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

// try writes an item, and reports whether the condition for the write held.
func (m *Memory) try(ctx context.Context, p PutItem) (Item, bool, error) {
	it, err := m.one(ctx, OpPut{Items: []PutItem{p}})
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		return Item{}, false, nil
	}
	it.Value = p.Value
	return it, err == nil, err
}

// CompareAndSet stores value if the current value equals old as JSON: the order of members and the
// form of numbers are ignored. It reports whether it did. A missing value equals nothing; see
// SetIfAbsent. The remaining lifetime is kept, unless an option sets another.
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

// Update atomically replaces a value by the result of fn: if another writer writes meanwhile, fn
// runs again on the new value. found is false if there is no value. If fn returns ErrSkip, Update
// writes nothing and returns no error; any other error of fn is returned unchanged. Update returns
// the resulting value.
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

// changeItem reads an item, calls fn, and writes the result if no other writer wrote in between;
// otherwise it starts again. A writer fails only if another one succeeded, so all writers together
// make progress.
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

// Increment adds the parameter by to an integer of 64 bits and returns the sum. A missing value counts as 0. The
// remaining lifetime is kept, unless an option sets another. The errors ErrNotInteger and ErrOverflow mean that nothing
// was changed.
func (m *Memory) Increment(ctx context.Context, key string, by int64, opts ...SetOption) (int64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	life, err := m.changed(opts)
	if err != nil {
		return 0, err
	}
	res, err := m.do(ctx, OpIncrement{Name: ValueName(key), By: by, TTL: life.ttl, IfNew: life.ifNew})
	return res.N, err
}
