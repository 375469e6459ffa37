package working

import "context"

// Lookup reads a value from the scope or, if it is missing, from the nearest scope above that has
// it, and returns that scope. Each scope is read at its own moment.
func (m *Memory) Lookup(ctx context.Context, key string) (any, Scope, bool, error) {
	if err := checkKey(key); err != nil {
		return nil, Scope{}, false, err
	}
	for s, ok := m.scope, true; ok; s, ok = s.Parent() {
		res, err := m.doOn(ctx, s, OpGet{Names: []string{ValueName(key)}})
		if err != nil {
			return nil, s, false, err
		}
		if it := res.Items[0]; it.Found {
			v, err := m.numbers.value(it.Name, it.Value)
			return v, s, err == nil, err
		}
	}
	return nil, Scope{}, false, nil
}
