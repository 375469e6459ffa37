package working

import (
	"context"
	"maps"
	"slices"
)

// Set stores a value, which must be encodable as JSON. The lifetime is Options.TTL, unless an option sets another one.
func (m *Memory) Set(ctx context.Context, key string, value any, opts ...SetOption) error {
	return m.SetMany(ctx, map[string]any{key: value}, opts...)
}

// SetMany stores all values or none, in the same way as Set.
func (m *Memory) SetMany(ctx context.Context, values map[string]any, opts ...SetOption) error {
	life, err := m.fresh(opts)
	if err != nil {
		return err
	}
	op := OpPut{Items: make([]PutItem, 0, len(values))}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		p, err := putItem(key, values[key], life)
		if err != nil {
			return err
		}
		op.Items = append(op.Items, p)
	}
	if len(op.Items) == 0 {
		return nil
	}
	_, err = m.do(ctx, op)
	return err
}

func putItem(key string, value any, life lifetime) (PutItem, error) {
	if err := checkKey(key); err != nil {
		return PutItem{}, err
	}
	raw, err := encodeValue(key, value)
	return PutItem{Name: ValueName(key), Value: raw, TTL: life.ttl, IfNew: life.ifNew}, err
}

// Get returns a value, and reports whether the key has a value. For a stored null, it returns nil and true. The value
// is nil, a bool, a string, a number, an []any or a map[string]any. A number is a float64, or a json.Number if float64
// would lose precision or Options.AsWritten is set.
func (m *Memory) Get(ctx context.Context, key string) (any, bool, error) {
	it, err := m.item(ctx, key)
	if err != nil || !it.Found {
		return nil, false, err
	}
	v, err := m.numbers.value(it.Name, it.Value)
	return v, err == nil, err
}

// GetOr returns the value of a key. If the key has no value, it returns the argument otherwise.
func (m *Memory) GetOr(ctx context.Context, key string, otherwise any) (any, error) {
	v, found, err := m.Get(ctx, key)
	if err == nil && !found {
		v = otherwise
	}
	return v, err
}

// Decode decodes a value into the variable to which into points, and reports whether the key has a value.
func (m *Memory) Decode(ctx context.Context, key string, into any) (bool, error) {
	it, err := m.item(ctx, key)
	if err != nil || !it.Found {
		return false, err
	}
	return true, decodeInto(it.Name, it.Value, into)
}

// GetMany returns several values, all read at the same moment. Keys without a value are not in the map.
func (m *Memory) GetMany(ctx context.Context, keys ...string) (map[string]any, error) {
	names := make([]string, len(keys))
	for i, key := range keys {
		if err := checkKey(key); err != nil {
			return nil, err
		}
		names[i] = ValueName(key)
	}
	if len(names) == 0 {
		return map[string]any{}, nil
	}
	res, err := m.do(ctx, OpGet{Names: names})
	if err != nil {
		return nil, err
	}
	return m.numbers.values(res.Items)
}

// All returns all values, all read at the same moment.
func (m *Memory) All(ctx context.Context) (map[string]any, error) {
	res, err := m.do(ctx, OpList{Values: true})
	if err != nil {
		return nil, err
	}
	return m.numbers.values(res.Items)
}

func (d decoder) values(items []Item) (map[string]any, error) {
	all := make(map[string]any, len(items))
	for _, it := range items {
		key, user := UserKey(it.Name)
		if !it.Found || !user {
			continue
		}
		v, err := d.value(it.Name, it.Value)
		if err != nil {
			return nil, err
		}
		all[key] = v
	}
	return all, nil
}

func (m *Memory) item(ctx context.Context, key string) (Item, error) {
	if err := checkKey(key); err != nil {
		return Item{}, err
	}
	return m.one(ctx, OpGet{Names: []string{ValueName(key)}})
}

func (m *Memory) one(ctx context.Context, op Op) (Item, error) {
	res, err := m.do(ctx, op)
	if err != nil {
		return Item{}, err
	}
	return res.Items[0], nil
}

// Exists reports whether a key has a value. It does not count as a use of the value.
func (m *Memory) Exists(ctx context.Context, key string) (bool, error) {
	if err := checkKey(key); err != nil {
		return false, err
	}
	it, err := m.one(ctx, OpGet{Names: []string{ValueName(key)}, Peek: true})
	return it.Found, err
}

// Delete removes a value, and reports whether the value existed.
func (m *Memory) Delete(ctx context.Context, key string) (bool, error) {
	if err := checkKey(key); err != nil {
		return false, err
	}
	it, err := m.one(ctx, OpDelete{Names: []string{ValueName(key)}})
	return it.Found, err
}

// Keys returns the keys that match a pattern, in the order of their bytes. Match describes patterns.
func (m *Memory) Keys(ctx context.Context, pattern string) ([]string, error) {
	if err := checkGlob(pattern); err != nil {
		return nil, err
	}
	res, err := m.do(ctx, OpList{})
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(res.Items))
	for _, it := range res.Items {
		if key, _ := UserKey(it.Name); match(pattern, key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Clear removes all values and returns their number. It does not remove the task state, the scratchpad and the
// checkpoints.
func (m *Memory) Clear(ctx context.Context) (int, error) {
	res, err := m.do(ctx, OpClear{})
	return int(res.N), err
}
