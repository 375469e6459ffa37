package workingtest

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/varve-db/varve/working"
)

// oddKeys has valid keys that a home may handle wrongly, for example because they contain special characters.
var oddKeys = []string{
	"a", "a:b", "a/b", "a b", "{a}", "}{", "a{b}c", "*", "?", "[", `\`, "%41", "ключ", "🙂", "a\nb", "a\x00b", "\"", "'",
	"-1", "0",
	"v", "t", "n0000000000000001", "task_state", "A", strings.Repeat("k", working.MaxKey),
}

var valueCases = []Case{
	{"every kind of JSON", func(t *T) {
		m := t.Open(nil)
		for _, v := range []any{
			nil, true, false, "", "text", "null", "a\x00\n\"\\ ü 🙂", 0.0, -1.5, 1e300, json.Number("12345678901234567890"),
			json.Number("0.1234567890123456789"),
			[]any{}, map[string]any{}, []any{nil, "x", 1.0, []any{map[string]any{"a": nil}}},
			map[string]any{"": 1.0, "b": map[string]any{"c": []any{}}},
		} {
			t.Set(m, "k", v)
			t.Has(m, "k", v)
		}
	}},
	{"odd keys stay apart", func(t *T) {
		m := t.Open(nil)
		want := map[string]any{}
		for i, key := range oddKeys {
			t.Set(m, key, float64(i))
			want[key] = float64(i)
		}
		for key, v := range want {
			t.Has(m, key, v)
		}
		all, err := m.All(t.Ctx)
		t.OK(err)
		t.Equal("all", all, want)
		for _, key := range oddKeys {
			existed, err := m.Delete(t.Ctx, key)
			t.OK(err)
			t.Equal("delete existed "+key, existed, true)
			t.Lacks(m, key)
		}
		t.Keys(m)
	}},
	{"F49 a stored null is not a missing key", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", nil)
		t.Has(m, "k", nil)
		v, err := m.GetOr(t.Ctx, "k", "default")
		t.OK(err)
		t.Equal("stored null", v, nil)
		v, err = m.GetOr(t.Ctx, "other", "default")
		t.OK(err)
		t.Equal("default", v, "default")
		exists, err := m.Exists(t.Ctx, "k")
		t.OK(err)
		t.Equal("exists", exists, true)
		many, err := m.GetMany(t.Ctx, "k", "other")
		t.OK(err)
		t.Equal("many", many, map[string]any{"k": nil})
		ok, err := m.SetIfAbsent(t.Ctx, "k", 1)
		t.OK(err)
		t.Equal("set if absent", ok, false)
		t.Lacks(m, "other")
	}},
	{"F57 values do not alias", func(t *T) {
		m := t.Open(nil)
		in := map[string]any{"list": []any{"a"}}
		t.Set(m, "k", in)
		in["list"].([]any)[0] = "changed"
		in["more"] = true
		want := map[string]any{"list": []any{"a"}}
		t.Has(m, "k", want)
		for range 2 {
			v, _, err := m.Get(t.Ctx, "k")
			t.OK(err)
			v.(map[string]any)["list"].([]any)[0] = "changed"
			t.Has(m, "k", want)
			all, err := m.All(t.Ctx)
			t.OK(err)
			all["k"].(map[string]any)["list"] = nil
			t.Has(m, "k", want)
		}
		v, err := m.Update(t.Ctx, "k", func(v any, _ bool) (any, error) { return v, nil })
		t.OK(err)
		v.(map[string]any)["list"] = nil
		t.Has(m, "k", want)
		// The home's own answer is the caller's too.
		for _, op := range []working.Op{working.OpGet{Names: []string{working.ValueName("k")}}, working.OpList{Values: true},
			working.OpLoad{}} {
			res, err := t.Home.Do(t.Ctx, &working.Request{Scope: session, Op: op})
			t.OK(err)
			clear(res.Items[0].Value)
			t.Has(m, "k", want)
		}
	}},
	{"delete and exists", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", 1)
		for _, want := range []bool{true, false} {
			exists, err := m.Exists(t.Ctx, "k")
			t.OK(err)
			t.Equal("exists", exists, want)
			existed, err := m.Delete(t.Ctx, "k")
			t.OK(err)
			t.Equal("existed", existed, want)
		}
	}},
	{"decode into a type", func(t *T) {
		m := t.Open(nil)
		type point struct{ X, Y int }
		t.Set(m, "k", point{1, 2})
		var p point
		found, err := m.Decode(t.Ctx, "k", &p)
		t.OK(err)
		t.Equal("point", []any{found, p}, []any{true, point{1, 2}})
		found, err = m.Decode(t.Ctx, "other", &p)
		t.OK(err)
		t.Equal("found", found, false)
		var n int
		_, err = m.Decode(t.Ctx, "k", &n)
		t.Fails(err, working.ErrInvalid)
	}},
	{"glob", func(t *T) {
		m := t.Open(nil)
		for _, key := range []string{"a", "ab", "abc", "b", "a/b", "a*c", "ü"} {
			t.Set(m, key, 1)
		}
		for pattern, want := range map[string][]string{
			"*": {"a", "a*c", "a/b", "ab", "abc", "b", "ü"}, "a*": {"a", "a*c", "a/b", "ab", "abc"}, "?": {"a", "b", "ü"},
			"a?c":  {"a*c", "abc"},
			`a\*c`: {"a*c"}, "[ab]": {"a", "b"}, "[^a]": {"b", "ü"}, "[a-z]": {"a", "b"}, "*b*": {"a/b", "ab", "abc", "b"},
			"": {}, "x*": {}, "**c": {"a*c", "abc"},
			"_*": {}, "a[*]c": {"a*c"},
		} {
			keys, err := m.Keys(t.Ctx, pattern)
			t.OK(err)
			t.Equal(pattern, keys, want)
		}
		for _, pattern := range []string{"[", "[]", "[a", "a\\", "[z-a]", "[a-", "\xff"} {
			_, err := m.Keys(t.Ctx, pattern)
			t.Fails(err, working.ErrInvalid)
		}
	}},
	{"many at once", func(t *T) {
		m := t.Open(nil)
		t.OK(m.SetMany(t.Ctx, map[string]any{"a": 1.0, "b": nil, "c": "x"}))
		many, err := m.GetMany(t.Ctx, "c", "none", "a", "a")
		t.OK(err)
		t.Equal("many", many, map[string]any{"a": 1.0, "c": "x"})
		t.Fails(m.SetMany(t.Ctx, map[string]any{"a": 2.0, "d": 1, "z": math.NaN()}), working.ErrInvalid)
		t.Has(m, "a", 1.0)
		t.Lacks(m, "d")
		t.OK(m.SetMany(t.Ctx, nil))
		many, err = m.GetMany(t.Ctx)
		t.OK(err)
		t.Equal("none", many, map[string]any{})
		big := map[string]any{}
		for i := range 500 {
			big["many"+strings.Repeat("x", i)] = float64(i)
		}
		t.OK(m.SetMany(t.Ctx, big))
		all, err := m.All(t.Ctx)
		t.OK(err)
		t.Equal("how many", len(all), 503)
	}},
	{"F50 clear removes the user's values and nothing else", func(t *T) {
		m := t.Open(nil)
		t.OK(m.SetMany(t.Ctx, map[string]any{"a": 1, "b": 2}))
		_, err := m.SetTask(t.Ctx, working.Task{Status: "busy"})
		t.OK(err)
		_, err = m.Append(t.Ctx, "thought")
		t.OK(err)
		cp, err := m.Checkpoint(t.Ctx, "")
		t.OK(err)
		n, err := m.Clear(t.Ctx)
		t.OK(err)
		t.Equal("cleared", n, 2)
		t.Keys(m)
		task, set, err := m.Task(t.Ctx)
		t.OK(err)
		t.Equal("task", []any{set, task.Status}, []any{true, "busy"})
		texts, err := m.Scratchpad(t.Ctx)
		t.OK(err)
		t.Equal("scratchpad", texts, []string{"thought"})
		list, err := m.Checkpoints(t.Ctx)
		t.OK(err)
		t.Equal("checkpoints", len(list), 1)
		_, err = m.Restore(t.Ctx, cp.ID)
		t.OK(err)
		t.Keys(m, "a", "b")
		n, err = m.Clear(t.Ctx)
		t.OK(err)
		t.Equal("cleared", n, 2)
		n, err = m.Clear(t.Ctx)
		t.OK(err)
		t.Equal("cleared again", n, 0)
	}},
	{"F54 reserved keys, for all operations alike", func(t *T) {
		m := t.Open(nil)
		for name, err := range everyKey(t, m, "_task_state") {
			if t.Fails(err, working.ErrReserved); err == nil {
				t.Errorf("%s accepts a reserved key", name)
			}
			t.Fails(err, working.ErrInvalid)
		}
		t.Set(m, "a_b", 1)
		t.Keys(m, "a_b")
	}},
	{"bad keys", func(t *T) {
		m := t.Open(nil)
		for key, want := range map[string]error{"": working.ErrInvalid,
			strings.Repeat("k", working.MaxKey+1): working.ErrTooLarge, "\xff": working.ErrInvalid} {
			for name, err := range everyKey(t, m, key) {
				if t.Fails(err, want); err == nil {
					t.Errorf("%s takes %q", name, key)
				}
			}
		}
		t.Equal("keys", t.Stats(m).UserKeys, 0)
	}},
	{"bad values", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", "before")
		deep := any("x")
		for range 200 {
			deep = []any{deep}
		}
		loop := map[string]any{}
		loop["loop"] = loop
		for _, v := range []any{math.NaN(), math.Inf(1), make(chan int), func() {}, "\xff",
			map[string]any{"a": []any{math.NaN()}}, deep, loop, json.Number("x")} {
			t.Fails(m.Set(t.Ctx, "k", v), working.ErrInvalid)
			_, err := m.SetIfAbsent(t.Ctx, "new", v)
			t.Fails(err, working.ErrInvalid)
			_, err = m.Update(t.Ctx, "k", func(any, bool) (any, error) { return v, nil })
			t.Fails(err, working.ErrInvalid)
		}
		t.Fails(m.Set(t.Ctx, "k", strings.Repeat("x", working.MaxValue)), working.ErrTooLarge)
		_, err := m.Append(t.Ctx, "\xff")
		t.Fails(err, working.ErrInvalid)
		t.Has(m, "k", "before")
		t.Keys(m, "k")
	}},
	{"a large value", func(t *T) {
		m := t.Open(nil)
		v := strings.Repeat("x", 1<<20)
		t.Set(m, "k", v)
		t.Has(m, "k", v)
	}},
}

// everyKey calls all operations that have a key as an argument, with the given key. It returns the error of each
// operation, by the name of the operation.
func everyKey(t *T, m *working.Memory, key string) map[string]error {
	all := map[string]error{"Set": m.Set(t.Ctx, key, 1), "SetMany": m.SetMany(t.Ctx, map[string]any{"ok": 1, key: 2})}
	_, _, all["Get"] = m.Get(t.Ctx, key)
	_, all["GetOr"] = m.GetOr(t.Ctx, key, nil)
	_, all["GetMany"] = m.GetMany(t.Ctx, "ok", key)
	_, all["Decode"] = m.Decode(t.Ctx, key, new(any))
	_, _, all["Entry"] = m.Entry(t.Ctx, key)
	_, all["Delete"] = m.Delete(t.Ctx, key)
	_, all["Exists"] = m.Exists(t.Ctx, key)
	_, all["SetIfAbsent"] = m.SetIfAbsent(t.Ctx, key, 1)
	_, all["CompareAndSet"] = m.CompareAndSet(t.Ctx, key, 1, 2)
	_, all["Increment"] = m.Increment(t.Ctx, key, 1)
	_, all["Update"] = m.Update(t.Ctx, key, func(any, bool) (any, error) { return 1, nil })
	_, all["Touch"] = m.Touch(t.Ctx, key)
	_, _, all["TTL"] = m.TTL(t.Ctx, key)
	_, _, _, all["Lookup"] = m.Lookup(t.Ctx, key)
	return all
}
