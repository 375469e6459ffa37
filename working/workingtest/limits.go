package workingtest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve/working"
)

var limitCases = []Case{
	{"keys: a typed error, nothing half done", func(t *T) {
		m := t.Open(&working.Options{MaxKeys: 2})
		t.OK(m.SetMany(t.Ctx, map[string]any{"a": 1, "b": 2}))
		for _, err := range []error{
			m.Set(t.Ctx, "c", 3), m.SetMany(t.Ctx, map[string]any{"a": 9, "c": 3}), errOf(m.SetIfAbsent(t.Ctx, "c", 3)),
			errOf(m.Increment(t.Ctx, "c", 1)),
			errOf(m.Update(t.Ctx, "c", func(any, bool) (any, error) { return 1, nil })),
		} {
			t.Fails(err, working.ErrLimit)
			var limit *working.LimitError
			if errors.As(err, &limit) {
				t.Equal("limit", *limit, working.LimitError{Scope: session, What: "keys", Limit: 2, Need: 3})
			}
		}
		t.Has(m, "a", 1.0)
		t.Keys(m, "a", "b")
		t.Set(m, "a", 9)
		_, err := m.Delete(t.Ctx, "b")
		t.OK(err)
		t.Set(m, "c", 3)
		t.Keys(m, "a", "c")
	}},
	{"bytes", func(t *T) {
		m := t.Open(&working.Options{MaxBytes: 20})
		t.Set(m, "a", "123456") // 1 + 8
		t.Set(m, "b", "12345")  // 1 + 7
		t.Equal("bytes", t.Stats(m).Bytes, int64(17))
		err := m.Set(t.Ctx, "c", "12")
		t.Fails(err, working.ErrLimit)
		var limit *working.LimitError
		if errors.As(err, &limit) {
			t.Equal("limit", *limit, working.LimitError{Scope: session, What: "bytes", Limit: 20, Need: 22})
		}
		t.Set(m, "c", 12)
		t.Fails(m.Set(t.Ctx, "a", "1234567"), working.ErrLimit)
		t.Set(m, "a", "1")
		t.Set(m, "d", "1")
		t.Equal("bytes", t.Stats(m).Bytes, int64(19))
	}},
	{"a capacity of 1", func(t *T) {
		m := t.Open(&working.Options{MaxKeys: 1, Evict: true})
		for i := range 3 {
			key := fmt.Sprint("k", i)
			t.Set(m, key, float64(i))
			t.Has(m, key, float64(i))
			t.Keys(m, key)
		}
		refuses := t.OpenOn(t.Home, working.Scope{Session: "other"}, &working.Options{MaxKeys: 1})
		t.Set(refuses, "a", 1)
		t.Fails(refuses.Set(t.Ctx, "b", 1), working.ErrLimit)
		t.Set(refuses, "a", 2)
		t.Keys(refuses, "a")
	}},
	{"the least recently used go", func(t *T) {
		m := t.Open(&working.Options{MaxKeys: 3, Evict: true})
		for _, key := range []string{"a", "b", "c"} {
			t.Set(m, key, 1)
		}
		t.Has(m, "a", 1.0)
		_, err := m.Exists(t.Ctx, "b") // does not count as use
		t.OK(err)
		t.Set(m, "d", 1)
		t.Keys(m, "a", "c", "d")
		t.Set(m, "c", 2)
		t.Set(m, "e", 1)
		t.Keys(m, "c", "d", "e")
		t.OK(m.SetMany(t.Ctx, map[string]any{"x": 1, "y": 1, "e": 2}))
		t.Keys(m, "e", "x", "y")
		_, err = m.Increment(t.Ctx, "x", 1)
		t.OK(err)
		t.OK(m.SetMany(t.Ctx, map[string]any{"n": 1}))
		t.Keys(m, "n", "x", "y")
	}},
	{"the least recently used go, by bytes", func(t *T) {
		m := t.Open(&working.Options{MaxBytes: 30, Evict: true})
		t.Set(m, "a", "1234567") // 10
		t.Set(m, "b", "1234567")
		t.Set(m, "c", "1234567")
		t.Set(m, "d", strings.Repeat("x", 12)) // 15
		t.Keys(m, "c", "d")
		t.Equal("bytes", t.Stats(m).Bytes, int64(25))
	}},
	{"nothing goes in vain", func(t *T) {
		m := t.Open(&working.Options{MaxKeys: 2, MaxBytes: 30, Evict: true})
		t.Set(m, "a", 1)
		t.Set(m, "b", 1)
		t.Fails(m.Set(t.Ctx, "c", strings.Repeat("x", 100)), working.ErrLimit)
		t.Fails(m.SetMany(t.Ctx, map[string]any{"c": 1, "d": 1, "e": 1}), working.ErrLimit)
		t.Keys(m, "a", "b")
	}},
	{"expired values make room before others have to", func(t *T) {
		m := t.Open(&working.Options{MaxKeys: 2, Evict: true})
		t.Set(m, "a", 1)
		t.Set(m, "b", 1, working.Expires(time.Minute))
		t.Advance(time.Minute)
		t.Set(m, "c", 1)
		t.Keys(m, "a", "c")
		refuses := t.OpenOn(t.Home, working.Scope{Session: "other"}, &working.Options{MaxKeys: 1})
		t.Set(refuses, "a", 1, working.Expires(time.Minute))
		t.Advance(time.Minute)
		t.Set(refuses, "b", 1)
		t.Keys(refuses, "b")
	}},
	{"F55 only the user's keys count", func(t *T) {
		m := t.Open(&working.Options{MaxKeys: 1, MaxBytes: 10})
		_, err := m.SetTask(t.Ctx, working.Task{Description: strings.Repeat("long ", 100)})
		t.OK(err)
		for range 5 {
			_, err := m.Append(t.Ctx, "a longer thought")
			t.OK(err)
			_, err = m.Checkpoint(t.Ctx, "a longer description")
			t.OK(err)
		}
		t.Set(m, "k", "1234567")
		s := t.Stats(m)
		t.Equal("counts", []any{s.UserKeys, s.Bytes, s.Total}, []any{1, int64(10), 12})
	}},
	{"without limits", func(t *T) {
		m := t.Open(&working.Options{MaxKeys: working.Unlimited, MaxBytes: working.Unlimited, MaxNotes: working.Unlimited,
			Checkpoints: working.Unlimited})
		t.Set(m, "k", 1)
		_, err := m.Append(t.Ctx, "x")
		t.OK(err)
		_, err = m.Checkpoint(t.Ctx, "x")
		t.OK(err)
		t.Has(m, "k", 1.0)
		for _, o := range []working.Options{{MaxKeys: -2}, {MaxBytes: -2}, {MaxNotes: -2}, {Checkpoints: -2}} {
			_, err := working.Open(t.Ctx, t.Home, session, &o)
			t.Fails(err, working.ErrInvalid)
		}
	}},
}
