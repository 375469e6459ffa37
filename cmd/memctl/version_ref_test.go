package main

import "testing"

func TestSplitVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		arg, id string
		lsn     uint64
		ok      bool
	}{
		{"a@12", "a", 12, true}, {"a@b@12", "a@b", 12, true}, {"a", "a", 0, false}, {"a@", "a@", 0, false}, {"@12", "@12", 0, false},
		{"a@+1", "a@+1", 0, false}, {"a@-1", "a@-1", 0, false}, {"me@example.org", "me@example.org", 0, false}, {"a@99999999999999999999", "a@99999999999999999999", 0, false},
	} {
		if id, lsn, ok := splitVersion(c.arg); id != c.id || lsn != c.lsn || ok != c.ok {
			t.Errorf("%q: %q, %d, %v", c.arg, id, lsn, ok)
		}
	}
}
