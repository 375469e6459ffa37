package workingtest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve/working"
)

var scopeCases = []Case{
	{"F60 two scopes never see each other", func(t *T) {
		scopes := []working.Scope{
			{}, {Project: "a"}, {AgentType: "a"}, {Agent: "a"}, {Session: "a"}, {Project: "a", Session: "a"},
			{Project: "a:b", Session: "c"}, {Project: "a", Session: "b:c"},
			{Project: "a/session:b"}, {Project: "a", Session: "b"}, {Session: "a%2Fb"}, {Session: "a/b"}, {Session: "{a}"},
			{Session: "}a{"}, {Session: "a}"}, {Session: "global"},
			{Session: "*"}, {Session: "A"}, {Session: " a"}, {Session: "a\n"}, {Session: "a\x00"}, {Session: "ü"},
			{Session: "u\u0308"}, {Session: "../a"}, {Session: strings.Repeat("x", working.MaxID)},
			{Project: "p", AgentType: "t", Agent: "i", Session: "s"},
		}
		all := make([]*working.Memory, len(scopes))
		for i, s := range scopes {
			all[i] = t.OpenOn(t.Home, s, nil)
			t.Set(all[i], "k", i)
			t.Set(all[i], fmt.Sprint("only ", i), i)
			_, err := all[i].Append(t.Ctx, fmt.Sprint(i))
			t.OK(err)
		}
		for i, m := range all {
			t.Has(m, "k", float64(i))
			t.Keys(m, "k", fmt.Sprint("only ", i))
			texts, err := m.Scratchpad(t.Ctx)
			t.OK(err)
			t.Equal("scratchpad", texts, []string{fmt.Sprint(i)})
		}
		listed := map[working.Scope]bool{}
		for s, err := range t.Home.Scopes(t.Ctx) {
			t.OK(err)
			listed[s] = true
		}
		for _, s := range scopes {
			t.Equal("listed "+s.Key(), listed[s], true)
		}
		t.Equal("listed", len(listed), len(scopes))
		dropped, err := all[0].Drop(t.Ctx)
		t.OK(err)
		t.Equal("dropped", dropped, true)
		t.Lacks(all[0], "k")
		t.Has(all[1], "k", 1.0)
	}},
	{"look-up falls through to the parents", func(t *T) {
		s, err := working.ForSession("s", "p", "i")
		t.OK(err)
		m := t.OpenOn(t.Home, s, nil)
		project, global := t.OpenOn(t.Home, working.Scope{Project: "p"}, nil), t.OpenOn(t.Home, working.Scope{}, nil)
		stranger := t.OpenOn(t.Home, working.Scope{Project: "q"}, nil)
		t.Set(stranger, "k", "stranger")
		look := func(want any, where working.Scope, found bool) {
			t.Helper()
			v, at, ok, err := m.Lookup(t.Ctx, "k")
			t.OK(err)
			t.Equal("look-up", []any{v, at, ok}, []any{want, where, found})
		}
		look(nil, working.Scope{}, false)
		t.Set(global, "k", "global")
		look("global", working.Scope{}, true)
		t.Set(project, "k", nil)
		look(nil, working.Scope{Project: "p"}, true)
		t.Set(m, "k", "own", working.Expires(time.Minute))
		look("own", s, true)
		t.Advance(time.Minute)
		look(nil, working.Scope{Project: "p"}, true)
		t.Lacks(m, "k")
	}},
	{"F56 attaching again keeps created_at", func(t *T) {
		m := t.Open(nil)
		created := m.Created()
		t.Set(m, "k", 1)
		t.OK(m.Close())
		t.Advance(time.Hour)
		again := t.Open(nil)
		t.Equal("created", []any{again.Created(), created.IsZero()}, []any{created, false})
		t.Equal("created", t.Stats(again).Created, created)
		t.Has(again, "k", 1.0)
		if t.Again != nil {
			other := t.OpenOn(t.Again(t.T), session, nil)
			t.Equal("created, elsewhere", other.Created(), created)
		}
	}},
	{"drop", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", 1, working.Expires(time.Hour))
		cp := t.Mark(m, "")
		_, err := m.SetTask(t.Ctx, working.Task{})
		t.OK(err)
		note, err := m.Append(t.Ctx, "x")
		t.OK(err)
		for _, want := range []bool{true, false} {
			dropped, err := m.Drop(t.Ctx)
			t.OK(err)
			t.Equal("dropped", dropped, want)
			s := t.Stats(m)
			t.Equal("counts", []any{s.Total, s.Bytes, s.Created.IsZero()}, []any{0, int64(0), true})
		}
		for s := range t.Home.Scopes(t.Ctx) {
			t.Errorf("scope %v is still listed", s)
		}
		_, err = m.Restore(t.Ctx, cp.ID)
		t.Fails(err, working.ErrNotFound)
		t.Set(m, "new", 1)
		t.Keys(m, "new")
		again, err := m.Append(t.Ctx, "y")
		t.OK(err)
		t.Equal("sequence numbers increase after Drop", again.Seq > note.Seq, true)
		t.Equal("created", t.Stats(m).Created.IsZero(), false)
	}},
	{"reading makes no scope", func(t *T) {
		m := t.Open(nil)
		_, err := m.Drop(t.Ctx)
		t.OK(err)
		t.Lacks(m, "k")
		_, err = m.Delete(t.Ctx, "k")
		t.OK(err)
		_, err = m.Touch(t.Ctx, "k", working.Expires(time.Hour))
		t.OK(err)
		_, err = m.Clear(t.Ctx)
		t.OK(err)
		_, err = m.ClearScratchpad(t.Ctx)
		t.OK(err)
		t.Equal("diff", t.Marks(m), []string{})
		for s := range t.Home.Scopes(t.Ctx) {
			t.Errorf("scope %v was created, but should not exist", s)
		}
	}},
	{"F61 stats are one snapshot", func(t *T) {
		s := working.Scope{Project: "p", Agent: "i"}
		m := t.OpenOn(t.Home, s, nil)
		t.Set(m, "a", "x")
		t.Set(m, "b", 1, working.Expires(time.Hour))
		_, err := m.SetTask(t.Ctx, working.Task{})
		t.OK(err)
		_, err = m.Append(t.Ctx, "x")
		t.OK(err)
		t.Mark(m, "")
		got := t.Stats(m)
		t.Equal("latency", []bool{got.Latency.Operations > 0, got.Latency.P50 <= got.Latency.P95,
			got.Latency.P95 <= got.Latency.P99}, []bool{true, true, true})
		got.Latency = working.Latency{}
		t.Equal("stats", got, working.Stats{Level: working.Agent, ID: "i", Scope: "project:p/agent_instance:i",
			Created: m.Created(), Total: 5, UserKeys: 2,
			Bytes: 6, Checkpoints: 1, Notes: 1, HasTask: true, Home: t.Home.Name()})
		t.Equal("fallback", m.UsingFallback(), false)
	}},
	{"closed Memories and canceled contexts", func(t *T) {
		m := t.Open(nil)
		ctx, cancel := context.WithCancel(t.Ctx)
		cancel()
		t.Fails(m.Set(ctx, "k", 1), context.Canceled)
		_, _, err := m.Get(ctx, "k")
		t.Fails(err, context.Canceled)
		t.OK(m.Check(t.Ctx))
		t.OK(m.Close())
		t.OK(m.Close())
		t.Fails(m.Set(t.Ctx, "k", 1), working.ErrClosed)
		t.Fails(m.Check(t.Ctx), working.ErrClosed)
		for name, err := range everyKey(t, m, "k") {
			if t.Fails(err, working.ErrClosed); err == nil {
				t.Errorf("%s works", name)
			}
		}
		again := t.Open(nil)
		t.Lacks(again, "k")
	}},
	{"release loses nothing that others can see, and all of a process's own", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", 1)
		t.OK(t.Home.Release(t.Ctx, session))
		t.OK(t.Home.Release(t.Ctx, working.Scope{Session: "never seen"}))
		if t.Again == nil {
			t.Lacks(m, "k")
		} else {
			t.Has(m, "k", 1.0)
		}
		t.Set(m, "k", 2)
		t.Has(m, "k", 2.0)
	}},
	{"a closed home", func(t *T) {
		m := t.Open(nil)
		t.Set(m, "k", 1)
		t.OK(t.Home.Close())
		t.OK(t.Home.Close())
		t.Fails(m.Set(t.Ctx, "k", 2), working.ErrClosed)
		_, _, err := m.Get(t.Ctx, "k")
		t.Fails(err, working.ErrClosed)
		_, err = m.Notes(t.Ctx, -1)
		t.Fails(err, working.ErrClosed)
		t.Fails(m.Check(t.Ctx), working.ErrClosed)
		_, err = working.Open(t.Ctx, t.Home, session, nil)
		t.Fails(err, working.ErrClosed)
		for _, err := range t.Home.Scopes(t.Ctx) {
			t.Fails(err, working.ErrClosed)
		}
		if t.Again != nil {
			t.Has(t.OpenOn(t.Again(t.T), session, nil), "k", 1.0)
		}
	}},
	{"bad scopes", func(t *T) {
		for _, s := range []working.Scope{{Session: strings.Repeat("x", working.MaxID+1)}, {Project: "\xff"}} {
			_, err := working.Open(t.Ctx, t.Home, s, nil)
			t.Fails(err, working.ErrInvalid)
		}
	}},
	{"what another process writes is seen at once", func(t *T) {
		if t.Again == nil {
			return // no other process can see this home
		}
		a, b := t.Open(nil), t.OpenOn(t.Again(t.T), session, nil)
		for i := range 20 {
			t.Set(a, "k", i)
			t.Has(b, "k", float64(i))
			n, err := b.Increment(t.Ctx, "k", 1)
			t.OK(err)
			t.Equal("sum", n, int64(i+1))
			t.Has(a, "k", float64(i+1))
		}
		cp := t.Mark(b, "")
		t.Set(b, "k", "later", working.Expires(time.Hour))
		t.Has(a, "k", "later")
		t.Restore(a, cp.ID)
		t.Has(b, "k", 20.0)
		_, err := a.SetTask(t.Ctx, working.Task{Status: "s"})
		t.OK(err)
		_, set, err := b.Task(t.Ctx)
		t.OK(err)
		t.Equal("task", set, true)
		_, err = b.Drop(t.Ctx)
		t.OK(err)
		t.Lacks(a, "k")
	}},
}
