package fuzz

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/crash"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// labelBegin is before all times of labelled memories, of which many have the same.
var labelBegin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// label sets the fields of a memory that filters use, by the number of its token.
func (w *write) label(m *varve.Memory) {
	n, _ := strconv.Atoi(w.token[1:])
	if m.Metadata == nil {
		m.Metadata = map[string]any{}
	}
	maps.Copy(m.Metadata, map[string]any{
		"caption": "labelled boat", "category": fmt.Sprint("c", n%3), "key": fmt.Sprint("k", n%4),
		"tags": []string{fmt.Sprint("t", n%5), fmt.Sprint("t", 5+n%2)},
	})
	m.Timestamp = labelBegin.Add(time.Duration(n%6) * time.Hour)
}

// sieve is a filter, and the memories that it must select.
type sieve struct {
	name   string
	filter varve.Filter
	passes func(m *varve.Memory) bool
}

func sieves(n int) []sieve {
	c, k, t, at := fmt.Sprint("c", n%3), fmt.Sprint("k", n%4), fmt.Sprint("t", n%7),
		labelBegin.Add(time.Duration(n%6)*time.Hour-30*time.Minute)
	return []sieve{
		{"category " + c, varve.InCategory(c), func(m *varve.Memory) bool { return m.Metadata["category"] == c }},
		{"key " + k, varve.WithKey(k), func(m *varve.Memory) bool { return m.Metadata["key"] == k }},
		{"tag " + t, varve.WithTag(t), func(m *varve.Memory) bool {
			list, _ := m.Metadata["tags"].([]any)
			return slices.Contains(list, any(t))
		}},
		{"since " + at.String(), varve.Since(at), func(m *varve.Memory) bool { return m.Timestamp.After(at) }},
		{"until " + at.String(), varve.Until(at), func(m *varve.Memory) bool { return m.Timestamp.Before(at) }},
	}
}

// sieved lists with a filter, with or without an order, while others write: every listed memory passes
// the filter.
func (a *actor) sieved() {
	list := sieves(a.rng.IntN(420))
	s := list[a.rng.IntN(len(list))]
	filters := []varve.Filter{s.filter}
	if a.rng.IntN(2) == 0 {
		filters = append(filters, inOrder(a.orderKey()))
	}
	for _, m := range a.list(filters...) {
		if !s.passes(&m) {
			a.h.bad("%s: with %s %.20q is listed: %v, %v", a.name, s.name, m.ID, m.Timestamp, m.Metadata)
		}
	}
}

// searched searches for the word of a write, while others write.
func (a *actor) searched() {
	if len(a.h.writes) == 0 {
		return
	}
	w := a.h.writes[a.rng.IntN(len(a.h.writes))]
	start := a.h.now()
	hits, err := a.st.Search(ctx, varve.Query{Text: w.token})
	if err != nil && !a.h.tolerates(err, "") {
		a.failed("search", err)
	}
	for _, hit := range hits {
		a.got("search", hit.ID, start, hit.Memory, nil)
	}
}

// switched changes the language of the words.
func (a *actor) switched(language string) {
	a.do("configure", a.st.Admin().UpdateConfig(ctx, func(c *varve.Config) error {
		c.TextLanguage = language
		return nil
	}))
}

// worded compares searches and filters with the present memories.
func (a *actor) worded(list []varve.Memory) {
	same := func(what string, got []varve.Memory, want []varve.Memory) {
		ids := func(list []varve.Memory) (ids []string) {
			for _, m := range list {
				ids = append(ids, fmt.Sprintf("%.20s %d", m.ID, m.Version))
			}
			slices.Sort(ids)
			return ids
		}
		if g, w := ids(got), ids(want); !slices.Equal(g, w) {
			a.h.bad("%s: %s: %q, and there are %q", a.name, what, g, w)
		}
	}
	found := func(text string, filters ...varve.Filter) (all []varve.Memory) {
		hits, err := a.st.Search(ctx, varve.Query{Text: text, Limit: 1000}, filters...)
		if err != nil {
			a.failed("search", err)
		}
		for _, h := range hits {
			all = append(all, h.Memory)
		}
		return all
	}
	alive := map[string]bool{}
	for _, m := range list {
		alive[tokenOf(m.Content)] = true
	}
	for i, m := range list {
		if (i+a.h.tick)%4 != 0 {
			continue
		}
		hits := found(tokenOf(m.Content)) // and its neighbours
		if !slices.ContainsFunc(hits, func(h varve.Memory) bool { return h.ID == m.ID && h.Version == m.Version }) {
			a.h.bad("%s: %.20q is not found by its word %s, but %d others", a.name, m.ID, tokenOf(m.Content), len(hits))
		}
		for _, h := range hits {
			if !slices.ContainsFunc(list, func(m varve.Memory) bool { return h.ID == m.ID && h.Version == m.Version }) {
				a.h.bad("%s: %.20q, version %d, is found, and not there", a.name, h.ID, h.Version)
			}
		}
	}
	for i, w := range a.h.writes {
		// Expired memories that were not swept yet are found as neighbours.
		if !alive[w.token] && w.expires.IsZero() && (i+a.h.tick)%8 == 0 {
			same("nothing has the word "+w.token, found(w.token), nil)
		}
	}
	for _, s := range sieves(a.h.tick) {
		want := slices.DeleteFunc(slices.Clone(list), func(m varve.Memory) bool { return !s.passes(&m) })
		same("with "+s.name, a.list(s.filter), want)
		same("in order, with "+s.name, a.list(s.filter, inOrder("-timestamp")), want)
		if n, err := a.st.Count(ctx, s.filter); err != nil || n != int64(len(want)) {
			a.h.bad("%s: with %s Count is %d (%v), %d are there", a.name, s.name, n, err, len(want))
		}
		want = slices.DeleteFunc(want, func(m varve.Memory) bool { return m.Metadata["caption"] != "labelled boat" })
		same("found with "+s.name, found("caption:boat", s.filter), want)
	}
}

// scriptWords changes the view of words: rounds and merges of its files, another language, a rebuild.
func scriptWords(m *machine, h *history) {
	a := &actor{h: h, name: "words", now: m.now}
	open := func() bool {
		_, o := m.process("words")
		st, err := varve.Open(ctx, dir, o)
		if err != nil {
			a.failed("open", err)
			return false
		}
		a.st = st
		a.opened()
		return true
	}
	if !open() {
		return
	}
	for i := range 9 { // of eight segments one is made
		a.put(fmt.Sprint("m", i), 40, []string{"s1", "s2", ""}[i%3], 0)
		a.put(fmt.Sprint("m", i/2), 60, "s1", 0)
		a.do("flush", a.st.Flush(ctx))
	}
	a.delete("m1")
	a.switched("de")
	a.put("m2", 50, "s2", 0)
	a.do("flush", a.st.Flush(ctx))
	a.foundByWord("m2")
	a.switched("none")
	a.do("flush", a.st.Flush(ctx)) // of which no document has changed
	a.do("rebuild", a.st.Admin().RebuildIndex(ctx))
	a.put("m3", 50, "s1", 0)
	a.close()
	if !open() {
		return
	}
	a.delete("m4")
	a.do("flush", a.st.Flush(ctx))
	a.put("m5", 50, "s1", 0)
	a.close()
}

// foundByWord searches for a memory by its word.
func (a *actor) foundByWord(id string) {
	m, err := a.get(id)
	if err != nil {
		return
	}
	if hits, err := a.st.Search(ctx,
		varve.Query{Text: tokenOf(m.Content)}); err != nil || len(hits) == 0 || hits[0].ID != id {
		a.h.bad("%s: %s is not found: %v, %v", a.name, id, hits, err)
	}
}

// lookWords opens the store that a crash has left: everything is found, before and after a round, and
// then verify finds nothing.
func lookWords(h *history, o *varve.Options) {
	a := &actor{h: h, name: "recovery", now: o.Clock}
	st, err := varve.Open(ctx, h.dir, o)
	if err != nil {
		h.bad("the store does not open: %v", err)
		return
	}
	a.st = st
	storetest.Inner(st).Engine.Tune().Few = 0
	if d := st.Admin().OpenReport().Damage; d != nil {
		h.bad("damage after a crash: %v", d)
	}
	a.calm()
	a.put("after", 50, "s1", 0)
	if a.flush() == nil {
		a.calm()
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			if err != nil || f.Severity != varve.SeverityInfo {
				h.bad("verify: %+v, %v", f, err)
			}
		}
	}
	a.close()
}

// TestWordsCut cuts the power before each operation of scriptWords that changes the disk, with each pattern
// of loss.
func TestWordsCut(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	step, changes, cuts := proofs.Every(11), 0, 0
	m, h := newMachine(), newHistory()
	h.labelled = true
	m.hook = func(_ *crash.Process, op *wrap.Op) {
		if !op.Kind.Changes() || op.Kind == wrap.Store || op.Kind == wrap.CompareAndSwap {
			return
		}
		if changes++; *cutFlag == 0 && changes%step != 0 || *cutFlag != 0 && m.ops != *cutFlag {
			return
		}
		for i, p := range crash.Patterns() {
			f, fh := m.future(p, uint64(i+1)), h.clone()
			fh.powerLost()
			cuts++
			_, o := f.process("look")
			lookWords(fh, o)
			if wrong := fh.verdict(); len(wrong) > 0 {
				t.Fatalf("cut before operation %d (%s %s), %s:\n%s\n\tgo test ./fuzz -run %s -cut %d", m.ops, op.Kind, op.Path, p,
					joinWrong(wrong), t.Name(), m.ops)
			}
		}
	}
	scriptWords(m, h)
	if wrong := h.verdict(); len(wrong) > 0 {
		t.Fatalf("without any cut:\n%s", joinWrong(wrong))
	}
	t.Logf("%d cuts before %d operations that change the disk", cuts, changes)
}

// TestWordsKilled kills the process before each of them, or in the middle of a write; another one
// continues in the same boot.
func TestWordsKilled(t *testing.T) {
	proofs.OneGoroutine(t)
	t.Parallel()
	count, total := newMachine(), 0
	var at []int
	count.hook = func(_ *crash.Process, op *wrap.Op) {
		if total++; op.Kind.Changes() && op.Kind != wrap.Store && op.Kind != wrap.CompareAndSwap {
			at = append(at, total)
		}
	}
	labelled := newHistory()
	labelled.labelled = true
	scriptWords(count, labelled)
	step, kills := proofs.Every(4), 0
	for i := 0; i < len(at); i += step {
		if *cutFlag != 0 && at[i] != *cutFlag {
			continue
		}
		kills++
		m, h := newMachine(), newHistory()
		h.labelled = true
		m.killAt, m.tear = at[i], i%2 == 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			scriptWords(m, h)
		}()
		<-done
		_, o := m.process("look")
		lookWords(h, o)
		if wrong := h.verdict(); len(wrong) > 0 {
			t.Fatalf("killed before operation %d:\n%s\n\tgo test ./fuzz -run %s -cut %d", at[i], joinWrong(wrong), t.Name(),
				at[i])
		}
	}
	t.Logf("%d kills before %d operations that change the disk", kills, len(at))
}
