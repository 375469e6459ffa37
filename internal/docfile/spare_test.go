package docfile

import (
	"strings"
	"testing"
)

// During a purge by this process the round keeps the displaced files of documents that are purged, and
// reuses all others: the purge has to overwrite only those few, and not the thousands of a busy store.
func TestSpare(t *testing.T) {
	purging := false
	b := newBed(t, func(o *Options) { o.Keeps = func() bool { return purging } })
	skipWithoutLeases(t, b)
	b.put(b.change("a.json", 0, 1), b.change("b.json", 0, 1), b.change("c.json", 0, 1), b.change("secret.json", 0, 1), b.change("told.json", 0, 1))
	b.put(b.change("a.json", 1, 2)) // the pool has a file of before
	before := b.files("tmp")
	if len(before) != 1 {
		t.Fatalf("the pool: %q", before)
	}
	purging = true
	b.fl.Spare(func(c *Change) bool { return c.Name != "secret.json" && c.Name != "told.json" })
	b.put(b.change("a.json", 2, 3), b.change("b.json", 1, 2), b.change("secret.json", 1, 2), b.change("c.json", 1, 2), b.change("told.json", 1, 0))
	want := map[string]bool{doc("secret.json", 1): true, doc("told.json", 1): true}
	for p, data := range b.files("tmp") {
		if data == before[p] {
			delete(before, p)
			continue
		}
		if !want[data] {
			t.Errorf("%s was kept: %q", p, data)
		}
		delete(want, data)
	}
	if len(want)+len(before) > 0 {
		t.Errorf("not kept: %v, and of what was there before the purge: %q", want, before)
	}
	b.fl.Spare(nil)
	b.put(b.change("b.json", 2, 3))
	kept := false
	for _, data := range b.files("tmp") {
		kept = kept || data == doc("b.json", 2)
	}
	if !kept {
		t.Error("a round that was told nothing did not keep what it displaced")
	}
	if _, err := b.fl.WipeTemp(b.surplus); err != nil {
		t.Fatal(err)
	}
	for p, data := range b.files("tmp") {
		if strings.Contains(data, "secret") {
			t.Errorf("%s: %q", p, data)
		}
	}
	b.want("a.json", 3)
	b.want("b.json", 3)
	b.want("secret.json", 2)
}
