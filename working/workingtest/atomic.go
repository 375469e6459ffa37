package workingtest

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/varve-db/varve/working"
)

var atomicCases = []Case{
	{"set if absent", func(t *T) {
		m := t.Open(nil)
		for _, want := range []bool{true, false} {
			ok, err := m.SetIfAbsent(t.Ctx, "k", "first", working.Expires(time.Hour))
			t.OK(err)
			t.Equal("set", ok, want)
			t.Has(m, "k", "first")
		}
		ok, err := m.SetIfAbsent(t.Ctx, "k", "second", working.NoExpiry())
		t.OK(err)
		t.Equal("set", ok, false)
		t.About("lifetime of the first value", t.TTL(m, "k"), time.Hour)
		t.Advance(time.Hour)
		ok, err = m.SetIfAbsent(t.Ctx, "k", "third")
		t.OK(err)
		t.Equal("set after the value expired", ok, true)
		t.Has(m, "k", "third")
	}},
	{"compare and set", func(t *T) {
		m := t.Open(nil)
		cas := func(key string, old, value any, want bool) {
			t.Helper()
			ok, err := m.CompareAndSet(t.Ctx, key, old, value)
			t.OK(err)
			t.Equal("done", ok, want)
		}
		cas("none", nil, 1, false)
		t.Lacks(m, "none")
		t.Set(m, "k", map[string]any{"b": 1, "a": []int{1}})
		cas("k", map[string]any{"a": []int{2}, "b": 1}, "no", false)
		cas("k", map[string]any{"a": []any{1.0}, "b": 1.0}, nil, true)
		t.Has(m, "k", nil)
		cas("k", nil, 1, true)
		cas("k", json.Number("1.0"), 2, true)
		cas("k", "2", 3, false)
		t.Has(m, "k", 2.0)
		t.Set(m, "big", json.Number("9007199254740993"))
		cas("big", json.Number("9007199254740992"), 0, false)
		t.Set(m, "ttl", 1, working.Expires(time.Hour))
		cas("ttl", 1, 2, true)
		t.About("the remaining lifetime is kept", t.TTL(m, "ttl"), time.Hour)
	}},
	{"increment", func(t *T) {
		m := t.Open(nil)
		inc := func(key string, by, want int64) {
			t.Helper()
			n, err := m.Increment(t.Ctx, key, by)
			t.OK(err)
			t.Equal("sum", n, want)
		}
		inc("n", 5, 5)
		inc("n", -7, -2)
		inc("n", 0, -2)
		t.Has(m, "n", -2.0)
		t.Set(m, "n", int64(math.MaxInt64)-1)
		inc("n", 1, math.MaxInt64)
		_, err := m.Increment(t.Ctx, "n", 1)
		t.Fails(err, working.ErrOverflow)
		t.Fails(err, working.ErrInvalid)
		inc("n", math.MinInt64, -1)
		inc("n", math.MinInt64+1, math.MinInt64)
		_, err = m.Increment(t.Ctx, "n", -1)
		t.Fails(err, working.ErrOverflow)
		t.Has(m, "n", float64(math.MinInt64))
		for _, v := range []any{"1", nil, 1.5, true, []any{}, map[string]any{}, json.Number("9223372036854775808"),
			json.Number("1e2"), json.Number("-0"), json.Number("1.0")} {
			t.Set(m, "bad", v)
			_, err := m.Increment(t.Ctx, "bad", 1)
			t.Fails(err, working.ErrNotInteger)
			t.Fails(err, working.ErrInvalid)
		}
	}},
	{"update", func(t *T) {
		m := t.Open(nil)
		push := func(v any, found bool) (any, error) {
			list, _ := v.([]any)
			return append(list, found), nil
		}
		for _, want := range []any{[]any{false}, []any{false, true}} {
			v, err := m.Update(t.Ctx, "k", push)
			t.OK(err)
			t.Equal("updated", v, want)
			t.Has(m, "k", want)
		}
		v, err := m.Update(t.Ctx, "k", func(any, bool) (any, error) { return nil, working.ErrSkip })
		t.OK(err)
		t.Equal("skipped", v, []any{false, true})
		v, err = m.Update(t.Ctx, "none", func(any, bool) (any, error) { return nil, working.ErrSkip })
		t.OK(err)
		t.Equal("skipped", v, nil)
		t.Lacks(m, "none")
		own := errors.New("own")
		_, err = m.Update(t.Ctx, "k", func(any, bool) (any, error) { return nil, own })
		t.Fails(err, own)
		t.Has(m, "k", []any{false, true})
		runs := 0
		_, err = m.Update(t.Ctx, "k", func(v any, _ bool) (any, error) {
			if runs++; runs == 1 {
				t.Set(m, "k", "between")
			}
			return []any{v}, nil
		})
		t.OK(err)
		t.Equal("runs", runs, 2)
		t.Has(m, "k", []any{"between"})
		t.Set(m, "ttl", 1, working.Expires(time.Hour))
		_, err = m.Update(t.Ctx, "ttl", push)
		t.OK(err)
		t.About("the remaining lifetime is kept", t.TTL(m, "ttl"), time.Hour)
	}},
	{"update over a value that is set again in between", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", "a")
		runs := 0
		_, err := m.Update(t.Ctx, "k", func(v any, _ bool) (any, error) {
			if runs++; runs == 1 {
				t.Set(m, "k", "b")
				t.Set(m, "k", "a")
			}
			return v, nil
		})
		t.OK(err)
		t.Equal("runs", runs, 2)
	}},
	{"update over a value that is deleted or made in between", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", 1)
		var saw []bool
		_, err := m.Update(t.Ctx, "k", func(_ any, found bool) (any, error) {
			saw = append(saw, found)
			switch len(saw) {
			case 1:
				_, err := m.Delete(t.Ctx, "k")
				t.OK(err)
			case 2:
				t.Set(m, "k", 2)
			}
			return 3, nil
		})
		t.OK(err)
		t.Equal("saw", saw, []bool{true, false, true})
		t.Has(m, "k", 3.0)
	}},
	{"versions are not used again", func(t *T) {
		m := t.Open(nil)
		seen := map[uint64]bool{}
		for range 3 {
			t.Set(m, "k", 1)
			e, found, err := m.Entry(t.Ctx, "k")
			t.OK(err)
			t.Equal("entry", []any{found, e.Key, e.Value, e.TTL, e.Updated.IsZero()},
				[]any{true, "k", 1.0, time.Duration(-1), false})
			if seen[e.Version] {
				t.Errorf("version %d again", e.Version)
			}
			seen[e.Version] = true
			_, err = m.Drop(t.Ctx)
			t.OK(err)
		}
	}},
}
