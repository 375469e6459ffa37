package workingtest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/varve-db/varve/working"
)

// Fixture has a home to be tested, which is empty, and the functions by which the cases control this home and its
// clock.
type Fixture struct {
	Home working.Home
	// Again opens a second home with the same data, as another process would; nil if the home cannot be opened twice.
	Again func(t *testing.T) working.Home
	// Advance moves the clock of the home forward, so that lifetimes pass.
	Advance func(d time.Duration)
	// Jump sets the wall clock of this process forwards or backwards; lifetimes do not change.
	Jump func(d time.Duration)
}

// Run runs all cases of the suite. Before each case it calls open, so that each case has a home of its own.
func Run(t *testing.T, open func(t *testing.T) *Fixture) {
	n := 0
	for _, group := range []struct {
		name  string
		cases []Case
	}{
		{"values", valueCases}, {"atomic", atomicCases}, {"ttl", ttlCases}, {"limits", limitCases}, {"task", taskCases},
		{"scratchpad", scratchpadCases}, {"checkpoints", checkpointCases}, {"scopes", scopeCases},
		{"concurrent", concurrentCases},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				n++
				t.Run(c.Name, func(t *testing.T) {
					f := open(t)
					c.Run(&T{T: t, Fixture: f, Ctx: t.Context()})
				})
			}
		})
	}
	t.Logf("%d cases", n)
}

// Case is one test of the suite.
type Case struct {
	Name string
	Run  func(t *T)
}

// T is passed to a case. It has the test, the fixture and a context.
type T struct {
	*testing.T
	*Fixture
	Ctx context.Context
}

var session = working.Scope{Project: "p", Session: "s"}

// Open opens the scope that most cases use. It fails the test on an error.
func (t *T) Open(opts *working.Options) *working.Memory {
	t.Helper()
	return t.OpenOn(t.Home, session, opts)
}

// OpenOn opens a scope of a home. It fails the test on an error.
func (t *T) OpenOn(h working.Home, s working.Scope, opts *working.Options) *working.Memory {
	t.Helper()
	m, err := working.Open(t.Ctx, h, s, opts)
	t.OK(err)
	t.Cleanup(func() { m.Close() })
	return m
}

// OK fails the test if err is not nil.
func (t *T) OK(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Fails fails the test if err does not match want.
func (t *T) Fails(err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want one that matches %v", err, want)
	}
}

// Equal fails the test if got and want are not deeply equal. label begins the message.
func (t *T) Equal(label string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %#v, want %#v", label, got, want)
	}
}

// Set stores a value.
func (t *T) Set(m *working.Memory, key string, v any, opts ...working.SetOption) {
	t.Helper()
	t.OK(m.Set(t.Ctx, key, v, opts...))
}

// Has fails the test if the key does not have the value want.
func (t *T) Has(m *working.Memory, key string, want any) {
	t.Helper()
	v, found, err := m.Get(t.Ctx, key)
	t.OK(err)
	if !found {
		t.Errorf("key %q is missing, want %#v", key, want)
		return
	}
	t.Equal(key, v, want)
}

// Lacks fails the test if any operation finds a value for a key.
func (t *T) Lacks(m *working.Memory, key string) {
	t.Helper()
	v, found, err := m.Get(t.Ctx, key)
	t.OK(err)
	t.Equal("Get of "+key, []any{v, found}, []any{nil, false})
	exists, err := m.Exists(t.Ctx, key)
	t.OK(err)
	t.Equal("Exists of "+key, exists, false)
	_, found, err = m.TTL(t.Ctx, key)
	t.OK(err)
	t.Equal("TTL of "+key, found, false)
	_, found, err = m.Entry(t.Ctx, key)
	t.OK(err)
	t.Equal("Entry of "+key, found, false)
	many, err := m.GetMany(t.Ctx, key)
	t.OK(err)
	t.Equal("GetMany of "+key, many, map[string]any{})
	all, err := m.All(t.Ctx)
	t.OK(err)
	if _, ok := all[key]; ok {
		t.Errorf("All has %q", key)
	}
	keys, err := m.Keys(t.Ctx, "*")
	t.OK(err)
	for _, k := range keys {
		if k == key {
			t.Errorf("Keys has %q", key)
		}
	}
}

// Keys fails the test if the keys of the scope are not exactly those in want.
func (t *T) Keys(m *working.Memory, want ...string) {
	t.Helper()
	keys, err := m.Keys(t.Ctx, "*")
	t.OK(err)
	t.Equal("keys", append([]string{}, keys...), append([]string{}, want...))
}

// Stats returns the statistics of the scope.
func (t *T) Stats(m *working.Memory) working.Stats {
	t.Helper()
	s, err := m.Stats(t.Ctx)
	t.OK(err)
	return s
}

// TTL returns the remaining lifetime of a key, which must exist.
func (t *T) TTL(m *working.Memory, key string) time.Duration {
	t.Helper()
	d, found, err := m.TTL(t.Ctx, key)
	t.OK(err)
	if !found {
		t.Errorf("key %q is missing", key)
	}
	return d
}

// About fails the test if got, a remaining lifetime, is longer than want, or more than 20 seconds shorter. The
// clock of a server advances while a case runs, and a slow machine may need some time. label begins the message.
func (t *T) About(label string, got, want time.Duration) {
	t.Helper()
	if got > want || got < want-20*time.Second {
		t.Errorf("%s: %v remain, want %v", label, got, want)
	}
}
