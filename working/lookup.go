package working

import "context"

// Lookup reads a value from the scope. If the scope does not have the key, Lookup reads the value from the nearest
// parent scope that has it. It returns the scope in which the value was found, and reports whether it was found. It
// reads one scope after another, not all at the same moment.
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
