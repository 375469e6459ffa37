package workingtest

import (
	"time"

	"github.com/varve-db/varve/working"
)

var ttlCases = []Case{
	{"expired is gone for every read", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", 1, working.Expires(time.Minute))
		t.Set(m, "stays", 1)
		t.Has(m, "k", 1.0)
		t.Advance(time.Minute)
		if s := t.Stats(m); s.UserKeys != 1 || s.Bytes != int64(len("stays")+1) {
			t.Errorf("Stats counts an expired value: %+v", s)
		}
		t.Lacks(m, "k")
		t.Keys(m, "stays")
		existed, err := m.Delete(t.Ctx, "k")
		t.OK(err)
		t.Equal("delete existed", existed, false)
		touched, err := m.Touch(t.Ctx, "k", working.Expires(time.Hour))
		t.OK(err)
		t.Equal("touched", touched, false)
		t.Set(m, "n", 41, working.Expires(time.Minute))
		t.Advance(time.Minute)
		n, err := m.Increment(t.Ctx, "n", 1)
		t.OK(err)
		t.Equal("increment", n, int64(1))
		cas, err := m.CompareAndSet(t.Ctx, "k", 1, 2)
		t.OK(err)
		t.Equal("compare and set", cas, false)
		s := t.Stats(m)
		t.Equal("user keys", s.UserKeys, 2)
		t.Equal("bytes", s.Bytes, int64(len("stays")+1+len("n")+1))
		snap, err := m.Snapshot(t.Ctx)
		t.OK(err)
		t.Equal("snapshot", snap.Values, map[string]any{"stays": 1.0, "n": 1.0})
		cleared, err := m.Clear(t.Ctx)
		t.OK(err)
		t.Equal("cleared", cleared, 2)
	}},
	{"F53 zero is at once, negative is refused", func(t *T) {
		m := t.Open(&working.Options{TTL: time.Hour})
		t.Set(m, "k", "before", working.NoExpiry())
		for _, err := range []error{
			m.Set(t.Ctx, "k", 1, working.Expires(-1)), m.SetMany(t.Ctx, map[string]any{"a": 1}, working.Expires(-time.Hour)),
			errOf(m.SetIfAbsent(t.Ctx, "a", 1, working.Expires(-1))), errOf(m.Increment(t.Ctx, "a", 1, working.Expires(-1))),
			errOf(m.Touch(t.Ctx, "k", working.Expires(-1))),
		} {
			t.Fails(err, working.ErrInvalid)
		}
		_, err := working.Open(t.Ctx, t.Home, session, &working.Options{TTL: -1})
		t.Fails(err, working.ErrInvalid)
		t.Has(m, "k", "before")
		t.Lacks(m, "a")
		t.Set(m, "k", 1, working.Expires(0))
		t.Lacks(m, "k")
		t.Set(m, "k", 1)
		touched, err := m.Touch(t.Ctx, "k", working.Expires(0))
		t.OK(err)
		t.Equal("touched", touched, true)
		t.Lacks(m, "k")
		t.Equal("user keys", t.Stats(m).UserKeys, 0)
		ok, err := m.SetIfAbsent(t.Ctx, "k", 1, working.Expires(0))
		t.OK(err)
		t.Equal("set for no time", ok, true)
		t.Lacks(m, "k")
		n, err := m.Increment(t.Ctx, "k", 1, working.Expires(0))
		t.OK(err)
		t.Equal("sum", n, int64(1))
		t.Lacks(m, "k")
	}},
	{"default of the scope", func(t *T) {
		m := t.Open(&working.Options{TTL: time.Hour})
		t.Set(m, "default", 1)
		t.Set(m, "own", 1, working.Expires(time.Minute))
		t.Set(m, "none", 1, working.NoExpiry())
		_, err := m.Increment(t.Ctx, "n", 1)
		t.OK(err)
		t.About("default", t.TTL(m, "default"), time.Hour)
		t.About("own", t.TTL(m, "own"), time.Minute)
		t.About("increment", t.TTL(m, "n"), time.Hour)
		t.Equal("none", t.TTL(m, "none") < 0, true)
		t.Advance(time.Minute)
		t.Keys(m, "default", "n", "none")
		t.Set(m, "default", 2)
		t.About("set again", t.TTL(m, "default"), time.Hour)
		t.Advance(time.Hour)
		t.Keys(m, "none")
	}},
	{"remaining and touch", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", 1, working.Expires(time.Hour))
		t.Advance(20 * time.Minute)
		t.About("remaining", t.TTL(m, "k"), 40*time.Minute)
		before, _, err := m.Entry(t.Ctx, "k")
		t.OK(err)
		touched, err := m.Touch(t.Ctx, "k", working.Expires(2*time.Hour))
		t.OK(err)
		t.Equal("touched", touched, true)
		t.About("remaining", t.TTL(m, "k"), 2*time.Hour)
		after, _, err := m.Entry(t.Ctx, "k")
		t.OK(err)
		t.Equal("value", after.Value, before.Value)
		_, err = m.Touch(t.Ctx, "k", working.NoExpiry())
		t.OK(err)
		t.Advance(1000 * time.Hour)
		t.Has(m, "k", 1.0)
		_, err = m.Touch(t.Ctx, "k", working.Expires(time.Minute))
		t.OK(err)
		t.Advance(time.Minute)
		t.Lacks(m, "k")
		touched, err = m.Touch(t.Ctx, "none")
		t.OK(err)
		t.Equal("touched", touched, false)
	}},
	{"what changes a value keeps what remains", func(t *T) {
		m := t.Open(&working.Options{TTL: 2 * time.Hour})
		t.Set(m, "n", 1, working.Expires(time.Hour))
		t.Advance(30 * time.Minute)
		_, err := m.Increment(t.Ctx, "n", 1)
		t.OK(err)
		t.About("increment", t.TTL(m, "n"), 30*time.Minute)
		_, err = m.Increment(t.Ctx, "n", 1, working.Expires(time.Minute))
		t.OK(err)
		t.About("increment with a lifetime", t.TTL(m, "n"), time.Minute)
		_, err = m.Increment(t.Ctx, "n", 1, working.NoExpiry())
		t.OK(err)
		t.Equal("increment with NoExpiry", t.TTL(m, "n") < 0, true)
		_, err = m.Increment(t.Ctx, "n", 1)
		t.OK(err)
		t.Equal("increment keeps NoExpiry", t.TTL(m, "n") < 0, true)
	}},
	{"shortest and longest", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "long", 1, working.Expires(1<<63-1))
		t.Has(m, "long", 1.0)
		t.Set(m, "short", 1, working.Expires(1))
		t.Advance(time.Second)
		t.Lacks(m, "short")
		t.Has(m, "long", 1.0)
		if d := t.TTL(m, "long"); d < 200*365*24*time.Hour {
			t.Errorf("%v remain", d)
		}
		cp, err := m.Checkpoint(t.Ctx, "")
		t.OK(err)
		_, err = m.Restore(t.Ctx, cp.ID)
		t.OK(err)
		t.Has(m, "long", 1.0)
	}},
	{"a wall clock that jumps, either way", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", 1, working.Expires(time.Hour))
		for _, d := range []time.Duration{100 * 365 * 24 * time.Hour, -50 * 365 * 24 * time.Hour} {
			t.Jump(d)
			t.Set(m, "other", 1, working.Expires(time.Hour))
			_, err := m.Append(t.Ctx, "x")
			t.OK(err)
			_, err = m.Checkpoint(t.Ctx, "")
			t.OK(err)
			t.Jump(-d)
			t.Has(m, "k", 1.0)
			t.About("remaining", t.TTL(m, "k"), time.Hour)
		}
		list, err := m.Checkpoints(t.Ctx)
		t.OK(err)
		notes, err := m.Notes(t.Ctx, -1)
		t.OK(err)
		t.Equal("how many", []int{len(list), len(notes)}, []int{2, 2})
		t.Equal("entries", []int{list[0].Notes, list[1].Notes}, []int{1, 2})
		t.Equal("order", notes[0].Seq < notes[1].Seq, true)
		t.Advance(time.Hour)
		t.Lacks(m, "k")
		t.Lacks(m, "other")
	}},
}
